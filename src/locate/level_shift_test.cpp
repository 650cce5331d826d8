#include "locate/level_shift.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/rng.hpp"

namespace teller::locate {
namespace {

constexpr ShiftRule kRule{.least = 0.4, .spread_floor = 0.1, .least_z = 4, .fewest = 4};

double Noise(base::Rng& rng, double size) {
  return size * (rng.Unit() + rng.Unit() + rng.Unit() + rng.Unit() - 2);
}

std::vector<double> Series(uint64_t seed, size_t n, double noise) {
  base::Rng rng(seed);
  std::vector<double> logs(n);
  for (double& x : logs) x = Noise(rng, noise);
  return logs;
}

std::optional<LevelShift> Find(const std::vector<double>& logs, const ShiftRule& rule = kRule) {
  return TestStretch(logs, HighestStretch(logs, rule.least), rule);
}

TEST(LevelShift, FindsAShiftAndItsEnds) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    std::vector<double> logs = Series(seed, 40, 0.1);
    for (size_t i = 12; i < 20; ++i) logs[i] += 0.8;
    const auto shift = Find(logs);
    ASSERT_TRUE(shift.has_value()) << seed;
    EXPECT_NEAR(shift->by, 0.8, 0.15);
    EXPECT_NEAR(static_cast<double>(shift->at.first), 12, 1);
    EXPECT_NEAR(static_cast<double>(shift->at.last), 20, 1);
    EXPECT_LT(shift->false_alarm, 0.01);
  }
}

TEST(LevelShift, NoiseAndSingleOutliersAreNone) {
  int alarms = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    std::vector<double> logs = Series(seed, 12 + seed % 60, 0.05 + 0.002 * static_cast<double>(seed % 100));
    base::Rng rng(seed + 1000);
    for (double& x : logs) {
      if (rng.Unit() < 0.08) x += 2 * rng.Unit();
    }
    const auto shift = Find(logs);
    alarms += shift && shift->false_alarm < 0.01;
  }
  EXPECT_LE(alarms, 3);
}

TEST(LevelShift, ADriftOfTheMachineIsNone) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    std::vector<double> logs = Series(seed, 60, 0.05);
    base::Rng rng(seed);
    double level = 0;
    for (double& x : logs) {
      if (rng.Unit() < 0.1) level = 0.3 * rng.Unit();  // another era begins
      x += level;
    }
    EXPECT_FALSE(Find(logs).has_value()) << seed;
  }
}

TEST(LevelShift, WhatIsSlowFromTheStartMayBeWarmingUp) {
  std::vector<double> logs = Series(1, 30, 0.05);
  for (size_t i = 0; i < 8; ++i) logs[i] += 1;
  EXPECT_FALSE(Find(logs).has_value());
}

TEST(LevelShift, MostOfTheSeriesIsNoShift) {
  std::vector<double> logs = Series(2, 30, 0.05);
  for (size_t i = 4; i < 29; ++i) logs[i] += 1;
  EXPECT_FALSE(Find(logs).has_value());
}

TEST(LevelShift, SeparatedAsksThatNothingElseReachesUp) {
  ShiftRule rule = kRule;
  std::vector<double> logs = Series(3, 40, 0.05);
  for (size_t i = 10; i < 18; ++i) logs[i] += 1;
  logs[30] += 1.2;
  EXPECT_TRUE(Find(logs, rule).has_value());
  rule.separated = true;
  EXPECT_FALSE(Find(logs, rule).has_value());
}

TEST(LevelShift, ValuesThatDifferWidelyAreOutliersWhereEvenOnesAreAskedFor) {
  ShiftRule rule = kRule;
  std::vector<double> logs = Series(4, 40, 0.05);
  for (size_t i = 10; i < 18; ++i) logs[i] += i % 2 == 0 ? 0.8 : 3;
  EXPECT_TRUE(Find(logs, rule).has_value());
  rule.most_uneven = 3;
  EXPECT_FALSE(Find(logs, rule).has_value());
}

TEST(LevelShift, ShortAndEmptySeriesAreNone) {
  EXPECT_FALSE(Find({}).has_value());
  EXPECT_FALSE(Find({0, 0, 1, 1, 1, 1}).has_value());
}

}  // namespace
}  // namespace teller::locate
