#include "locate/death.hpp"

#include <gtest/gtest.h>

namespace teller::locate {
namespace {

using trace::Nanos;

struct Job {
  trace::Store store;
  trace::Trees trees;

  Job() {
    for (int rank = 0; rank < 2; ++rank) {
      trace::Process process;
      process.rank = rank;
      process.world_size = 3;
      store.processes.push_back(process);
      for (uint32_t i = 0; i < 5; ++i) {
        trace::Step step;
        step.process = trace::ProcessRow(static_cast<uint32_t>(rank));
        step.rank = rank;
        step.index = i;
        step.begin = static_cast<Nanos>(i) * base::kSecond;
        step.end = step.begin + base::kSecond / 2;
        trees.steps.push_back(step);
      }
    }
  }

  trace::Finding Complete(trace::FaultClass fault, Nanos onset, Nanos end) const {
    trace::Finding finding;
    finding.fault = fault;
    finding.onset = onset;
    finding.end = end;
    CompleteDeath(store, trees, finding);
    return finding;
  }
};

TEST(Death, TheRankWithoutATraceIsNamedAndTheStepThatNeverEndedWell) {
  const Nanos at = 4 * base::kSecond + 100 * base::kMilli;
  const auto finding = Job().Complete(trace::FaultClass::kProcDeath, at, at + base::kSecond);
  EXPECT_EQ(finding.culprit.rank, 2);
  ASSERT_EQ(finding.steps.size(), 2u);
  for (const auto& step : finding.steps) EXPECT_EQ(step.index, 4u);
}

TEST(Death, AStepThatWasOverOrHadNotBegunIsNoPartOfIt) {
  const Job run;
  EXPECT_TRUE(run.Complete(trace::FaultClass::kProcDeath, 6 * base::kSecond, 7 * base::kSecond).steps.empty());
  EXPECT_TRUE(run.Complete(trace::FaultClass::kProcDeath, base::kSecond, 2 * base::kSecond).steps.empty());
}

TEST(Death, OtherFindingsStayAsTheyAre) {
  const auto finding = Job().Complete(trace::FaultClass::kCpuStarved, 4 * base::kSecond, 5 * base::kSecond);
  EXPECT_FALSE(finding.culprit.rank.has_value());
  EXPECT_TRUE(finding.steps.empty());
}

}  // namespace
}  // namespace teller::locate
