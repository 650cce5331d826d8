#include "locate/counterfactual.hpp"

#include <gtest/gtest.h>

#include "locate/test_run.hpp"

namespace teller::locate {
namespace {

/// A process whose operator takes twice as long in the first three steps; one claim a step.
TEST(Counterfactual, TestsThoseThatLostMost) {
  TestRun run(1);
  std::vector<Hypothesis> claims;
  for (uint32_t s = 0; s < 6; ++s) {
    run.AddStep(0, s);
    run.AddSlot(SlotKey::Kind::kOp, "mm", 2e6, s < 3 ? 2 : 1);
    if (s >= 3) continue;
    Hypothesis claim;
    claim.trouble = Trouble::kSlowOperator;
    claim.process = trace::ProcessRow(0);
    claim.rank = 0;
    claim.slot = run.profiles.back().slots.back().key;
    claim.steps = {s};
    claim.lost = s == 1 ? base::kMilli : 2 * base::kMilli;
    claim.lost_in = {claim.lost};
    claims.push_back(claim);
  }
  EXPECT_TRUE(TestClaims(run.scene(), claims)[1].has_value());
  const auto tests = TestClaims(run.scene(), claims, 2);
  ASSERT_EQ(tests.size(), 3u);
  EXPECT_TRUE(tests[0].has_value());
  EXPECT_FALSE(tests[1].has_value()) << "lost least";
  EXPECT_TRUE(tests[2].has_value());
}

}  // namespace
}  // namespace teller::locate
