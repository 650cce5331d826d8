#include "score/metrics.hpp"

#include <gtest/gtest.h>

#include "base/rng.hpp"

namespace teller::score {
namespace {

std::vector<Scored> Items(std::initializer_list<std::pair<double, bool>> list) {
  std::vector<Scored> items;
  for (const auto& [score, positive] : list)
    items.push_back({.score = score,
                     .positive = positive,
                     .flagged = score >= 0.5,
                     .cluster = static_cast<uint32_t>(items.size())});
  return items;
}

TEST(Detect, CountsAsTheDefinitionsSay) {
  const Detection d =
      Detect({.true_positives = 6, .false_positives = 2, .false_negatives = 4, .true_negatives = 88}, {});
  EXPECT_DOUBLE_EQ(*d.precision, 0.75);
  EXPECT_DOUBLE_EQ(*d.recall, 0.6);
  EXPECT_NEAR(*d.f1, 2 * 0.75 * 0.6 / 1.35, 1e-12);
}

TEST(Detect, PriorOfTheSampleChangesNothing) {
  const Confusion counts{.true_positives = 7, .false_positives = 3, .false_negatives = 13, .true_negatives = 177};
  EXPECT_NEAR(*Detect(counts, 0.1).f1, *Detect(counts, {}).f1, 1e-12);
}

TEST(Detect, RareFaultsCostPrecisionByHand) {
  // Recall 0.9, false alarms 0.01: at 1 % the precision is 0.009 / (0.009 + 0.0099).
  const Detection d =
      Detect({.true_positives = 9, .false_positives = 1, .false_negatives = 1, .true_negatives = 99}, 0.01);
  EXPECT_NEAR(*d.precision, 0.009 / (0.009 + 0.0099), 1e-12);
  EXPECT_DOUBLE_EQ(*d.recall, 0.9);
}

TEST(Detect, WhatIsNotDefinedIsAbsent) {
  EXPECT_FALSE(Detect({.false_positives = 3}, {}).f1);
  EXPECT_FALSE(Detect({.true_positives = 3}, 0.01).f1);
  const Detection none = Detect({.false_negatives = 3, .true_negatives = 3}, {});
  EXPECT_FALSE(none.precision);
  EXPECT_DOUBLE_EQ(*none.f1, 0);
}

TEST(AveragePrecision, ByHand) {
  // Sorted: + - + - : precision 1 at recall 1/2, 2/3 at recall 1.
  const auto items = Items({{0.9, true}, {0.8, false}, {0.7, true}, {0.1, false}});
  EXPECT_NEAR(*AveragePrecision(ByScore(items), {}), 0.5 + 0.5 * 2 / 3, 1e-12);
}

TEST(AveragePrecision, EqualScoresGiveTheShareOfPositives) {
  const auto items = Items({{0, true}, {0, false}, {0, false}, {0, false}});
  EXPECT_DOUBLE_EQ(*AveragePrecision(ByScore(items), {}), 0.25);
  EXPECT_NEAR(*AveragePrecision(ByScore(items), 0.01), 0.01, 1e-12);
}

TEST(AveragePrecision, DrawingTwiceEqualsStandingTwice) {
  base::Rng rng(5);
  std::vector<Scored> once;
  std::vector<Scored> twice;
  for (uint32_t i = 0; i < 50; ++i) {
    const Scored item{
        .score = static_cast<double>(rng.Below(10)), .positive = rng.Below(3) == 0, .flagged = false, .cluster = i};
    once.push_back(item);
    twice.push_back(item);
    if (i % 2 == 0) twice.push_back(item);
  }
  std::vector<uint32_t> multiplicity(50);
  for (uint32_t i = 0; i < 50; ++i) multiplicity[i] = i % 2 == 0 ? 2 : 1;
  for (const std::optional<double> prior : {std::optional<double>(), std::optional<double>(0.05)}) {
    EXPECT_NEAR(*AveragePrecision(ByScore(once), prior, multiplicity), *AveragePrecision(ByScore(twice), prior), 1e-12);
  }
}

TEST(Ranking, ByHand) {
  const std::vector<Place> places{1, 3, 0, 2};
  EXPECT_DOUBLE_EQ(*AccuracyAt(places, 1), 0.25);
  EXPECT_DOUBLE_EQ(*AccuracyAt(places, 3), 0.75);
  EXPECT_DOUBLE_EQ(*AverageAt(places, 3), (0.25 + 0.5 + 0.75) / 3);
  EXPECT_DOUBLE_EQ(*MeanReciprocalRank(places), (1 + 1.0 / 3 + 0.5) / 4);
  EXPECT_FALSE(AccuracyAt({}, 1));
}

TEST(MacroF1, ByHand) {
  // a: 1 of 2 found, 1 false; b: found, 1 false (said for a); c is said, but never true.
  const std::vector<std::string> truth{"a", "a", "b", "b"};
  const std::vector<std::string> said{"a", "b", "b", "c"};
  EXPECT_NEAR(*MacroF1(truth, said), (2.0 / 3 + 0.5) / 2, 1e-12);
}

TEST(CalibrationError, ZeroForHonestOnesAndTheDistanceForOthers) {
  EXPECT_NEAR(*CalibrationError({{0.75, true}, {0.75, true}, {0.75, true}, {0.75, false}}), 0, 1e-12);
  EXPECT_NEAR(*CalibrationError({{1.0, false}, {0.0, false}}), 0.5, 1e-12);
  EXPECT_FALSE(CalibrationError({}));
}

TEST(RiskAt, TheSurestComeFirst) {
  const std::vector<Confident> answers{{0.9, true}, {0.8, false}, {0.7, true}};
  EXPECT_DOUBLE_EQ(*RiskAt(answers, 4, 0.25), 0);
  EXPECT_DOUBLE_EQ(*RiskAt(answers, 4, 0.5), 0.5);
  EXPECT_NEAR(*RiskAt(answers, 4, 0.75), 1.0 / 3, 1e-12);
  EXPECT_FALSE(RiskAt(answers, 4, 1.0));  // one abstained
}

TEST(RiskAt, EquallySureOnesShareTheRisk) {
  EXPECT_DOUBLE_EQ(*RiskAt({{0.5, true}, {0.5, false}}, 2, 0.5), 0.5);
}

TEST(Bootstrap, SameSeedSameIntervalAndItHoldsTheMean) {
  std::vector<double> values;
  base::Rng rng(3);
  for (int i = 0; i < 200; ++i) values.push_back(rng.Unit());
  const auto mean = [&](const std::vector<uint32_t>& times) -> std::vector<std::optional<double>> {
    double sum = 0;
    double n = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      sum += times[i] * values[i];
      n += times[i];
    }
    return {sum / n, std::nullopt};
  };
  const auto a = Bootstrap(values.size(), 400, 7, mean);
  const auto b = Bootstrap(values.size(), 400, 7, mean);
  ASSERT_EQ(a.size(), 2u);
  EXPECT_EQ(a[0].low, b[0].low);
  EXPECT_EQ(a[0].high, b[0].high);
  const double center = *mean(std::vector<uint32_t>(values.size(), 1))[0];
  EXPECT_LT(*a[0].low, center);
  EXPECT_GT(*a[0].high, center);
  // The standard error of the mean of 200 uniform draws is 0.0204; the interval is about four of them wide.
  EXPECT_NEAR(*a[0].high - *a[0].low, 4 * 0.0204, 0.03);
  EXPECT_FALSE(a[1].low);
}

TEST(Bootstrap, OneCaseHasNoSpread) {
  const auto out = Bootstrap(1, 50, 1, [](const std::vector<uint32_t>& times) -> std::vector<std::optional<double>> {
    return {times[0] * 0.5};
  });
  EXPECT_DOUBLE_EQ(*out[0].low, 0.5);
  EXPECT_DOUBLE_EQ(*out[0].high, 0.5);
}

}  // namespace
}  // namespace teller::score
