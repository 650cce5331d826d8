#include <gtest/gtest.h>

#include <algorithm>

#include "locate/test_run.hpp"

namespace teller::locate {
namespace {

/// Four ranks with devices. In some steps rank 2 stands still in an operator and the others wait for it in `wait`.
TestRun Standing(Nanos length, const std::vector<uint32_t>& at, const std::string& wait, bool device = true) {
  TestRun run(4);
  for (int r = 0; r < 4; ++r) {
    for (uint32_t s = 0; s < 30; ++s) {
      const bool stands = std::find(at.begin(), at.end(), s) != at.end();
      const double longer = stands ? static_cast<double>(length) : 0;
      run.AddStep(r, s);
      for (int part = 0; part < 6; ++part) {
        const double mine = r == 2 && part == static_cast<int>(s % 6) ? longer : 0;
        run.AddSlot(SlotKey::Kind::kOp, "aten::op" + std::to_string(part), 300'000, 1 + mine / 300'000);
        if (device) run.AddSlot(SlotKey::Kind::kGpu, "kernel" + std::to_string(part), 500'000);
      }
      run.AddSlot(SlotKey::Kind::kOp, wait, 800'000, 1 + (r == 2 ? 0 : longer / 800'000));
    }
  }
  run.trees.collectives.emplace_back();
  return run;
}

std::vector<Hypothesis> Sure(const TestRun& run) {
  std::vector<Hypothesis> claims = SearchVertical(run.scene());
  std::erase_if(claims, [](const Hypothesis& h) { return h.false_alarm >= 0.01; });
  return claims;
}

TEST(Vertical, TheRankThatStandsStillIsFoundAndNotThoseWhoseHostWaitsForTheDevice) {
  const auto claims = Sure(Standing(9 * base::kMilli, {9, 14, 19}, "cudaEventSynchronize"));
  ASSERT_EQ(claims.size(), 1u);
  EXPECT_EQ(claims[0].trouble, Trouble::kPause);
  EXPECT_EQ(claims[0].rank, 2);
  EXPECT_EQ(claims[0].steps.size(), 3u);
}

/// One rank whose engine needs `longer` times as long between steps from step 10 to 17.
TestRun Gaps(double longer, bool device) {
  TestRun run(1);
  for (uint32_t s = 0; s < 30; ++s) {
    run.AddStep(0, s, 3 * base::kMilli);
    for (int part = 0; part < 6; ++part) {
      run.AddSlot(SlotKey::Kind::kOp, "aten::op" + std::to_string(part), 400'000);
      if (device) run.AddSlot(SlotKey::Kind::kGpu, "kernel" + std::to_string(part), 300'000);
    }
    run.noise = 0.1;
    run.profiles.back().gap = run.Noisy(4'000'000 * (s >= 10 && s < 18 ? longer : 1));
    run.noise = 0.02;
    run.normals.back().expected_gap = 3'200'000;
  }
  return run;
}

TEST(Vertical, GapsThatBecomeLongerForAWhileAreTheEnginesOwnWork) {
  const auto claims = Sure(Gaps(2.2, true));
  ASSERT_EQ(claims.size(), 1u);
  EXPECT_EQ(claims[0].trouble, Trouble::kGapWork);
  EXPECT_GE(claims[0].steps.size(), 7u);
  EXPECT_TRUE(Sure(Gaps(1, true)).empty());
  EXPECT_TRUE(Sure(Gaps(2.2, false)).empty());
}

TEST(Vertical, WhereTheHostComputesShortInterruptionsAreDailyLife) {
  EXPECT_TRUE(Sure(Standing(9 * base::kMilli, {9, 14, 19}, "wait", false)).empty());
}

/// One process that computes on the host, 2 ms of each step of 10 ms; from step 12 to 19 one operator, called
/// `calls` times, takes `factor` times as long and everything else `rest` times.
TestRun Host(double factor, double rest, const std::string& name = "aten::copy_", int calls = 1) {
  TestRun run(1);
  for (uint32_t s = 0; s < 40; ++s) {
    const bool hit = s >= 12 && s < 20;
    run.AddStep(0, s, hit && rest > 1 ? 40 * base::kMilli : 10 * base::kMilli);
    for (int call = 0; call < calls; ++call) run.AddSlot(SlotKey::Kind::kOp, name, 200'000, hit ? factor : 1);
    for (int part = 0; part < 6; ++part)
      run.AddSlot(SlotKey::Kind::kOp, "aten::op" + std::to_string(part), 300'000, hit ? rest : 1);
  }
  return run;
}

bool AccusesAnOperator(const TestRun& run) {
  const auto claims = Sure(run);
  return std::any_of(claims.begin(), claims.end(),
                     [](const Hypothesis& h) { return h.trouble == Trouble::kSlowOperator; });
}

TEST(Vertical, MovingMemoryALittleLongerOnTheHostIsNoFinding) {
  EXPECT_FALSE(AccusesAnOperator(Host(4, 1)));  // 0.6 of 10 ms: memory that others use
  EXPECT_TRUE(AccusesAnOperator(Host(4, 1, "aten::mm")));
  EXPECT_TRUE(AccusesAnOperator(Host(9, 1)));  // 1.6 ms
}

TEST(Vertical, WhatTakesByPositionsThatNobodyShowsMayTakeMore) {
  EXPECT_FALSE(AccusesAnOperator(Host(6, 1, "aten::index")));
  EXPECT_TRUE(AccusesAnOperator(Host(6, 1, "aten::mm")));
  EXPECT_TRUE(AccusesAnOperator(Host(14, 1, "aten::index")));
}

TEST(Vertical, NoOperatorIsAccusedWhereEverythingTakesSeveralTimesAsLong) {
  EXPECT_FALSE(AccusesAnOperator(Host(14, 4)));
  EXPECT_TRUE(AccusesAnOperator(Host(14, 1)));
}

TEST(Vertical, AnOperatorThatIsNotTwiceAsMuchSlowerAsAHostThatIsSlowerIsNotAccused) {
  constexpr int kMost = 15;  // calls: most of the process's time
  EXPECT_TRUE(AccusesAnOperator(Host(1.9, 1, "aten::mm", kMost)));
  EXPECT_FALSE(AccusesAnOperator(Host(1.9, 1.35, "aten::mm", kMost)));
  EXPECT_TRUE(AccusesAnOperator(Host(3.2, 1.35, "aten::mm", kMost)));
}

}  // namespace
}  // namespace teller::locate
