#include "locate/select.hpp"

#include <gtest/gtest.h>

namespace teller::locate {
namespace {

constexpr Nanos kMs = 1'000'000;

Hypothesis Claim(Trouble trouble, Nanos onset, Nanos end, Nanos lost) {
  Hypothesis h;
  h.trouble = trouble;
  h.process = trace::ProcessRow(0);
  h.onset = onset;
  h.end = end;
  h.worst_begin = onset;
  h.worst = end - onset;
  h.lost = lost;
  h.false_alarm = 1e-6;
  return h;
}

std::vector<Hypothesis> Select(std::vector<Hypothesis> claims) {
  const trace::Store store;
  const trace::Trees trees;
  const std::vector<StepProfile> profiles;
  const std::vector<StepNormal> normals;
  return SelectCauses({store, trees, profiles, normals}, std::move(claims), 0.01);
}

TEST(Select, WhatFollowsAPauseIsItsAftermath) {
  const Hypothesis pause = Claim(Trouble::kPause, 1000 * kMs, 1770 * kMs, 770 * kMs);
  const Hypothesis cold = Claim(Trouble::kSlowOperator, 1840 * kMs, 1870 * kMs, 7 * kMs);
  const auto kept = Select({pause, cold});
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].trouble, Trouble::kPause);
}

TEST(Select, TroubleThatIsLargeOrFarFromAPauseIsItsOwn) {
  const Hypothesis pause = Claim(Trouble::kPause, 1000 * kMs, 1770 * kMs, 770 * kMs);
  EXPECT_EQ(Select({pause, Claim(Trouble::kSlowOperator, 1840 * kMs, 1990 * kMs, 150 * kMs)}).size(), 2u);
  EXPECT_EQ(Select({pause, Claim(Trouble::kSlowOperator, 5000 * kMs, 5030 * kMs, 7 * kMs)}).size(), 2u);
  EXPECT_EQ(Select({pause, Claim(Trouble::kSlowOperator, 100 * kMs, 130 * kMs, 7 * kMs)}).size(), 2u);
}

TEST(Select, AnOperatorThatMakesARankLeaveLateIsTheCause) {
  const auto kept_with = [](Nanos lost, uint32_t until = 13) {
    Hypothesis late = Claim(Trouble::kPause, 1000 * kMs, 1700 * kMs, 490 * kMs);
    Hypothesis slow = Claim(Trouble::kSlowOperator, 1010 * kMs, 1690 * kMs, 5 * lost);
    late.collectives = {3, 4, 5, 6, 7};
    late.span = 1;
    slow.span = 2;
    for (uint32_t s = 8; s < 13; ++s) {
      late.steps.push_back(s);
      late.lost_in.push_back(98 * kMs);
      if (s >= until) continue;
      slow.steps.push_back(s);
      slow.lost_in.push_back(lost);
    }
    slow.lost = static_cast<Nanos>(slow.steps.size()) * lost;
    return Select({late, slow});
  };
  ASSERT_EQ(kept_with(97 * kMs).size(), 1u);
  EXPECT_EQ(kept_with(97 * kMs)[0].trouble, Trouble::kSlowOperator);
  ASSERT_EQ(kept_with(50 * kMs).size(), 1u);
  EXPECT_EQ(kept_with(50 * kMs)[0].trouble, Trouble::kPause) << "half of it is no reason";
  ASSERT_EQ(kept_with(97 * kMs, 10).size(), 1u);
  EXPECT_EQ(kept_with(97 * kMs, 10)[0].trouble, Trouble::kPause) << "in two of five steps";
}

TEST(Select, WhatCostNothingIsNoCause) {
  EXPECT_TRUE(Select({Claim(Trouble::kSlowTransfer, 1000 * kMs, 1770 * kMs, 0)}).empty());
  EXPECT_EQ(Select({Claim(Trouble::kSlowTransfer, 1000 * kMs, 1770 * kMs, 1)}).size(), 1u);
}

}  // namespace
}  // namespace teller::locate
