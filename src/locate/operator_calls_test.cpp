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

TestRun Ranks(int ranks, const Often& often) {
  TestRun run(ranks);
  for (int r = 0; r < ranks; ++r) {
    for (uint32_t s = 0; s < kSteps; ++s) {
      run.AddStep(r, s);
      for (int op = 0; op < 8; ++op) {
        for (int n = 0; n < often(r, s, op); ++n) run.AddSlot(SlotKey::Kind::kOp, "op" + std::to_string(op), 100'000);
      }
    }
  }
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

TEST(OperatorCalls, OneOddStepIsNoFault) {
  const TestRun run = Ranks(2, [](int r, uint32_t s, int op) { return r == 1 && op == 3 && s == 9 ? 40 : 2; });
  EXPECT_TRUE(SearchOperatorCalls(run.scene()).empty());
}

}  // namespace
}  // namespace teller::locate
