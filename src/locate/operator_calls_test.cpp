#include "locate/operator_calls.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "locate/explain.hpp"
#include "locate/test_run.hpp"

namespace teller::locate {
namespace {

constexpr uint32_t kSteps = 20;

/// How often a rank calls an operator in a step: (rank, step, which of eight).
using Often = std::function<int(int, uint32_t, int)>;

/// All ranks take part in one collective a step.
void Join(TestRun& run, int first, int last) {
  for (uint32_t s = 0; s < kSteps; ++s) {
    trace::Collective collective;
    for (int r = first; r <= last; ++r) {
      trace::CollectiveMember member;
      member.rank = r;
      member.process = trace::ProcessRow(static_cast<uint32_t>(r));
      member.arrival = run.trees.steps[static_cast<uint32_t>(r) * kSteps + s].begin + base::kMilli;
      collective.members.push_back(member);
    }
    run.trees.collectives.push_back(collective);
  }
}

TestRun Ranks(int ranks, const Often& often, bool together = true) {
  TestRun run(ranks);
  for (int r = 0; r < ranks; ++r) {
    for (uint32_t s = 0; s < kSteps; ++s) {
      run.AddStep(r, s);
      for (int op = 0; op < 8; ++op) {
        for (int n = 0; n < often(r, s, op); ++n) run.AddSlot(SlotKey::Kind::kOp, "op" + std::to_string(op), 100'000);
      }
    }
  }
  if (together) Join(run, 0, ranks - 1);
  return run;
}

bool InFault(uint32_t s) {
  return s >= 6 && s < 12;
}

TEST(OperatorCalls, FindsTheRankThatRepeatsAnOperator) {
  for (const int ranks : {2, 4}) {
    TestRun run = Ranks(ranks, [](int r, uint32_t s, int op) { return r == 1 && op == 3 && InFault(s) ? 40 : 2; });
    const auto claims = SearchOperatorCalls(run.scene());
    ASSERT_EQ(claims.size(), 1u);
    EXPECT_EQ(claims[0].rank, 1);
    EXPECT_EQ(run.store.name(claims[0].span), "op3");
    EXPECT_EQ(claims[0].steps.size(), 6u);
    EXPECT_EQ(claims[0].calls, 40);
    EXPECT_EQ(claims[0].usual_calls, 2);
    EXPECT_LT(claims[0].false_alarm, 0.01);
    run.store.spans.parent.resize(run.store.spans.size());
    const trace::Finding finding = Explain(run.scene(), claims[0], std::nullopt);
    EXPECT_EQ(finding.fault, trace::FaultClass::kKernelRegression);
    EXPECT_EQ(finding.culprit.op, "op3");
    EXPECT_NE(finding.explanation.find("about 40 times"), std::string::npos) << finding.explanation;
    ASSERT_FALSE(finding.evidence.empty());
    EXPECT_NE(finding.evidence[0].text.find("as many as on the other ranks would take"), std::string::npos);
  }
}

TEST(OperatorCalls, ALayerThatIsRepeatedIsMoreWork) {
  const TestRun run = Ranks(2, [](int r, uint32_t s, int op) { return r == 1 && op > 2 && InFault(s) ? 40 : 2; });
  EXPECT_TRUE(SearchOperatorCalls(run.scene()).empty());
}

TEST(OperatorCalls, WhatAllRanksDoIsTheProgram) {
  const TestRun run = Ranks(2, [](int, uint32_t s, int op) { return op == 3 && InFault(s) ? 40 : 2; });
  EXPECT_TRUE(SearchOperatorCalls(run.scene()).empty());
}

TEST(OperatorCalls, WorkThatIsRoutedDiffersAtAllTimes) {
  const TestRun run = Ranks(2, [](int r, uint32_t s, int op) {
    if (op != 3) return 2;
    return r == 1 && InFault(s) ? 40 : 2 + (r + static_cast<int>(s)) % 3;
  });
  EXPECT_TRUE(SearchOperatorCalls(run.scene()).empty());
}

TEST(OperatorCalls, StagesOfAPipelineRunOtherPrograms) {
  const TestRun run = Ranks(2, [](int r, uint32_t, int op) { return r == 1 && op == 3 ? 40 : 2; });
  EXPECT_TRUE(SearchOperatorCalls(run.scene()).empty());
}

int Repeats(int r, uint32_t s, int op) {
  return r == 1 && op == 3 && InFault(s) ? 40 : 2;
}

TEST(OperatorCalls, ReplicasServeOtherRequests) {
  EXPECT_TRUE(SearchOperatorCalls(Ranks(2, Repeats, false).scene()).empty()) << "no collective joins them";
  TestRun run = Ranks(2, Repeats);
  for (uint32_t s = kSteps; s < 2 * kSteps; ++s) run.trees.steps[s].context_tokens = 512;
  EXPECT_TRUE(SearchOperatorCalls(run.scene()).empty()) << "experts are shared, requests are not";
}

TEST(OperatorCalls, RanksOfOneReplicaAreCompared) {
  TestRun run = Ranks(4, Repeats, false);
  Join(run, 0, 1);
  Join(run, 2, 3);
  for (uint32_t s = 2 * kSteps; s < 4 * kSteps; ++s) run.trees.steps[s].new_tokens = 5;
  EXPECT_EQ(SearchOperatorCalls(run.scene()).size(), 1u);
}

TEST(OperatorCalls, AFewCalmStepsAreNotEnough) {
  const auto after = [](uint32_t calm) {
    return Ranks(2, [=](int r, uint32_t s, int op) {
      return r == 1 && op == 3 && s >= calm && s < calm + 6 ? 40 : s < calm + 6 ? 2 : op == 3 ? 0 : 2;
    });
  };
  EXPECT_TRUE(SearchOperatorCalls(after(6).scene()).empty());
  EXPECT_EQ(SearchOperatorCalls(after(8).scene()).size(), 1u);
}

TEST(OperatorCalls, EachNameIsAChance) {
  const auto probability = [](int unused) {
    TestRun run = Ranks(2, Repeats);
    for (StepProfile& profile : run.profiles) {
      for (int n = 0; n < unused; ++n) {
        Slot slot = profile.slots.front();
        slot.key.name = run.store.strings.Intern("more" + std::to_string(n)).value();
        profile.slots.push_back(slot);
      }
    }
    return SearchOperatorCalls(run.scene()).at(0).false_alarm;
  };
  EXPECT_NEAR(probability(8), 2 * probability(0), 1e-9);
}

TEST(OperatorCalls, OneOddStepIsNoFault) {
  const TestRun run = Ranks(2, [](int r, uint32_t s, int op) { return r == 1 && op == 3 && s == 9 ? 40 : 2; });
  EXPECT_TRUE(SearchOperatorCalls(run.scene()).empty());
}

}  // namespace
}  // namespace teller::locate
