#include "locate/peer_shift.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "locate/test_run.hpp"

namespace teller::locate {
namespace {

constexpr int kRanks = 4;
constexpr uint32_t kSteps = 24;
constexpr uint32_t kFirst = 8;
constexpr uint32_t kLast = 14;

/// How much longer a part takes than usual: (rank, step, on the device, which of six parts).
using Factor = std::function<double(int, uint32_t, bool, int)>;

TestRun Ranks(const Factor& factor, int ranks = kRanks, bool devices = true) {
  TestRun run(ranks);
  for (int r = 0; r < ranks; ++r) {
    for (uint32_t s = 0; s < kSteps; ++s) {
      run.AddStep(r, s);
      for (int part = 0; part < 6; ++part) {
        run.AddSlot(SlotKey::Kind::kOp, "op" + std::to_string(part), 400'000, factor(r, s, false, part));
        if (!devices) continue;
        run.AddSlot(SlotKey::Kind::kGpu, "kernel" + std::to_string(part), 600'000, factor(r, s, true, part));
      }
    }
  }
  return run;
}

bool InFault(uint32_t s) {
  return s >= kFirst && s < kLast;
}

TEST(PeerShift, FindsTheRankWhoseHostIsSlower) {
  const TestRun run =
      Ranks([](int r, uint32_t s, bool device, int) { return r == 2 && InFault(s) && !device ? 2.0 : 1.0; });
  const auto claims = SearchPeerShifts(run.scene());
  ASSERT_EQ(claims.size(), 1u);
  EXPECT_EQ(claims[0].trouble, Trouble::kStarvation);
  EXPECT_EQ(claims[0].rank, 2);
  EXPECT_TRUE(claims[0].even);
  ASSERT_EQ(claims[0].steps.size(), kLast - kFirst);
  EXPECT_EQ(run.trees.steps[claims[0].steps.front()].index, kFirst);
  EXPECT_NEAR(static_cast<double>(claims[0].lost), (kLast - kFirst) * 2.4e6, 1e6);
  EXPECT_LT(claims[0].false_alarm, 0.01);
}

TEST(PeerShift, FindsTheRankWhoseDeviceIsSlowerAmongTwo) {
  const TestRun run =
      Ranks([](int r, uint32_t s, bool device, int) { return r == 1 && InFault(s) && device ? 1.4 : 1.0; }, 2);
  const auto claims = SearchPeerShifts(run.scene());
  ASSERT_EQ(claims.size(), 1u);
  EXPECT_EQ(claims[0].trouble, Trouble::kSlowDevice);
  EXPECT_EQ(claims[0].rank, 1);
}

/// Those that may be a verdict.
size_t Sure(const std::vector<Hypothesis>& claims) {
  return static_cast<size_t>(
      std::count_if(claims.begin(), claims.end(), [](const Hypothesis& h) { return h.false_alarm < 0.01; }));
}

TEST(PeerShift, WhereTheHostComputesASharedCoreIsOnlySuspected) {
  const auto slower = [](double by, bool devices, Nanos step = 20 * base::kMilli) {
    TestRun run = Ranks(
        [by](int r, uint32_t s, bool device, int) { return r == 1 && InFault(s) && !device ? by : 1.0; }, 2, devices);
    for (trace::Step& s : run.trees.steps) {
      s.begin = base::kSecond + s.index * step;
      s.end = s.begin + 10 * base::kMilli;
    }
    return SearchPeerShifts(run.scene());
  };
  ASSERT_EQ(slower(1.75, false).size(), 1u);
  EXPECT_EQ(Sure(slower(1.75, false)), 0u);
  EXPECT_EQ(Sure(slower(2.4, false)), 1u);
  EXPECT_EQ(Sure(slower(1.75, true)), 1u) << "a host that computes nothing";
  EXPECT_EQ(Sure(slower(1.75, false, 10 * base::kSecond)), 1u) << "for a minute";
}

TEST(PeerShift, TheOtherRankIsNotAccusedAfterTheSlowOneHasRecovered) {
  const TestRun run =
      Ranks([](int r, uint32_t s, bool device, int) { return r == 0 && s >= 2 && s < 11 && device ? 1.4 : 1.0; }, 2);
  for (const Hypothesis& h : SearchPeerShifts(run.scene())) EXPECT_EQ(h.rank, 0);
}

TEST(PeerShift, OneSlowKernelIsNoSlowDevice) {
  const TestRun run = Ranks(
      [](int r, uint32_t s, bool device, int part) { return r == 2 && InFault(s) && device && part == 3 ? 4.0 : 1.0; });
  EXPECT_TRUE(SearchPeerShifts(run.scene()).empty());
}

TEST(PeerShift, WhatAllRanksShareIsNobodysFault) {
  const TestRun run = Ranks([](int, uint32_t s, bool device, int) { return InFault(s) && !device ? 2.0 : 1.0; });
  EXPECT_TRUE(SearchPeerShifts(run.scene()).empty());
}

TEST(PeerShift, ARankWithMoreToComputeHasNoPeers) {
  TestRun run = Ranks([](int r, uint32_t s, bool, int) { return r == 2 && InFault(s) ? 2.0 : 1.0; });
  for (trace::Step& step : run.trees.steps) step.work = step.rank == 2 && InFault(step.index) ? 2e6 : 1e6;
  for (const Hypothesis& h : SearchPeerShifts(run.scene())) EXPECT_NE(h.rank, 2);
}

TEST(PeerShift, OneStepThatIsSlowEverywhereIsEnough) {
  const auto slow = [](bool everywhere) {
    return Ranks(
        [everywhere](int r, uint32_t s, bool device, int part) {
          return r == 1 && s == 9 && !device && (everywhere || part == 2) ? 40.0 : 1.0;
        },
        2);
  };
  const auto claims = SearchPeerShifts(slow(true).scene());
  ASSERT_EQ(claims.size(), 1u);
  EXPECT_EQ(claims[0].rank, 1);
  EXPECT_EQ(claims[0].steps.size(), 1u);
  EXPECT_LT(claims[0].false_alarm, 0.01);
  EXPECT_TRUE(SearchPeerShifts(slow(false).scene()).empty());  // one operator: that is not the processor
}

TEST(PeerShift, HealthyRanksAreNotAccused) {
  size_t alarms = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    base::Rng pace(seed);
    std::vector<double> paces;
    for (int i = 0; i < kRanks * static_cast<int>(kSteps); ++i) paces.push_back(0.8 + 0.4 * pace.Unit());
    const TestRun run = Ranks(
        [&](int r, uint32_t s, bool device, int) { return device ? 1.0 : paces[static_cast<size_t>(r) * kSteps + s]; });
    for (const Hypothesis& h : SearchPeerShifts(run.scene())) alarms += h.false_alarm < 0.01 ? 1 : 0;
  }
  EXPECT_EQ(alarms, 0u);
}

}  // namespace
}  // namespace teller::locate
