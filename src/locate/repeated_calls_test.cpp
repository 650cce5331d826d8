#include "locate/repeated_calls.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "locate/explain.hpp"
#include "locate/test_run.hpp"

namespace teller::locate {
namespace {

constexpr uint32_t kSteps = 40;

/// One process that calls eight operators; `often(step, operator)` times each.
TestRun Process(const std::function<int(uint32_t, int)>& often) {
  TestRun run(1);
  for (uint32_t s = 0; s < kSteps; ++s) {
    run.AddStep(0, s);
    for (int op = 0; op < 8; ++op) {
      for (int n = 0; n < often(s, op); ++n) run.AddSlot(SlotKey::Kind::kOp, "op" + std::to_string(op), 100'000);
    }
  }
  return run;
}

bool InFault(uint32_t s) {
  return s >= 10 && s < 18;
}

TEST(RepeatedCalls, AnOperatorThatIsRepeatedForAWhileIsFound) {
  const TestRun run = Process([](uint32_t s, int op) { return op == 3 && InFault(s) ? 60 : 4; });
  const auto claims = SearchRepeatedCalls(run.scene());
  ASSERT_EQ(claims.size(), 1u);
  EXPECT_EQ(claims[0].steps.size(), 8u);
  EXPECT_EQ(claims[0].calls, 60);
  EXPECT_EQ(claims[0].usual_calls, 4);
  EXPECT_LT(claims[0].false_alarm, 0.001);
  const trace::Finding finding = Explain(run.scene(), claims[0], std::nullopt);
  EXPECT_EQ(finding.fault, trace::FaultClass::kKernelRegression);
  EXPECT_EQ(finding.view, "vertical");
  EXPECT_EQ(finding.culprit.op, "op3");
  EXPECT_NE(finding.explanation.find("4 times in its other steps"), std::string::npos) << finding.explanation;
}

TEST(RepeatedCalls, MoreSequencesAreOtherWork) {
  TestRun run = Process([](uint32_t s, int op) { return op == 3 && InFault(s) ? 60 : 4; });
  for (uint32_t s = 0; s < kSteps; ++s) run.trees.steps[s].batch = InFault(s) ? 15 : 1;
  EXPECT_TRUE(SearchRepeatedCalls(run.scene()).empty()) << "a sampler that runs once for each";
  for (uint32_t s = 30; s < 33; ++s) run.trees.steps[s].batch = 16;
  EXPECT_EQ(SearchRepeatedCalls(run.scene()).size(), 1u) << "other steps had as many";
}

TEST(RepeatedCalls, RareOperatorsDoNotHideThatAllElseIsRepeatedToo) {
  TestRun run(1);
  for (uint32_t s = 0; s < kSteps; ++s) {
    run.AddStep(0, s);
    for (int op = 0; op < 8; ++op) {
      for (int n = 0; n < (InFault(s) ? 60 : 4); ++n)
        run.AddSlot(SlotKey::Kind::kOp, "op" + std::to_string(op), 100'000);
    }
    for (int rare = 0; s == 2 && rare < 100; ++rare)
      run.AddSlot(SlotKey::Kind::kOp, "rare" + std::to_string(rare), 100);
  }
  EXPECT_TRUE(SearchRepeatedCalls(run.scene()).empty());
}

TEST(RepeatedCalls, WhatDoesNotGoBackIsOnlySuspected) {
  const TestRun run = Process([](uint32_t s, int op) { return op == 3 && s > 31 ? 60 : 4; });
  for (const Hypothesis& claim : SearchRepeatedCalls(run.scene())) EXPECT_GE(claim.false_alarm, 0.05);
}

TEST(RepeatedCalls, OtherWorkIsNot) {
  EXPECT_TRUE(SearchRepeatedCalls(Process([](uint32_t, int) { return 4; }).scene()).empty());
  EXPECT_TRUE(SearchRepeatedCalls(Process([](uint32_t s, int) { return InFault(s) ? 60 : 4; }).scene()).empty())
      << "all operators: more layers, more requests, another path";
  EXPECT_TRUE(
      SearchRepeatedCalls(Process([](uint32_t s, int op) { return op == 3 ? (s % 3 == 0 ? 60 : 4) : 4; }).scene())
          .empty())
      << "now and then at all times";
  EXPECT_TRUE(SearchRepeatedCalls(
                  Process([](uint32_t s, int op) { return op == 3 ? InFault(s) ? 60 : 2 + int(s % 4) : 4; }).scene())
                  .empty())
      << "the number varies anyway";
  EXPECT_TRUE(
      SearchRepeatedCalls(Process([](uint32_t s, int op) { return op == 3 && s > 15 ? 60 : 4; }).scene()).empty())
      << "the program changed";
  EXPECT_TRUE(
      SearchRepeatedCalls(Process([](uint32_t s, int op) { return op == 3 && s < 8 ? 60 : 4; }).scene()).empty())
      << "from the start: warm-up";
  EXPECT_TRUE(
      SearchRepeatedCalls(Process([](uint32_t s, int op) { return op == 3 && InFault(s) ? 10 : 4; }).scene()).empty())
      << "a few more";
}

}  // namespace
}  // namespace teller::locate
