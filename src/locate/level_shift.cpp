#include "locate/level_shift.hpp"

#include <algorithm>
#include <cmath>

#include "ml/robust.hpp"

namespace teller::locate {

namespace {

constexpr double kUpper = 0.9;       // quantile of the calm values that their upper tail is read from
constexpr double kUpperZ = 1.2816;   // of the normal distribution
constexpr double kMost = 0.2;        // share of a stretch's values that may be lower than it asks for
constexpr double kLongest = 0.67;    // of the series: beyond that nobody knows which of the two levels is the calm one
constexpr double kTail = 3;          // values so many spreads up are as rare as that power says: the tail is heavy
constexpr double kMostZ = 20;        // no single value proves more
constexpr double kObservations = 2;  // successive values that count as one
constexpr size_t kBefore = 2;    // calm values that have to come first: what is slow from the start may be warming up
constexpr size_t kMany = 12;     // values of a stretch that make up for a smaller distance...
constexpr double kManyZ = 0.6;   // ... of this part of what is asked for otherwise...
constexpr double kManyBy = 1.5;  // ... if it is so many times the least one

}  // namespace

Parted Part(std::span<const double> values, Stretch at) {
  const auto begin = values.begin() + static_cast<std::ptrdiff_t>(at.first);
  const auto end = values.begin() + static_cast<std::ptrdiff_t>(at.last);
  Parted parted{{begin, end}, {values.begin(), begin}};
  parted.outside.insert(parted.outside.end(), end, values.end());
  return parted;
}

Stretch HighestStretch(std::span<const double> logs, double least) {
  // Kadane's largest sum of what lies above a level. One extreme value must not bridge many calm ones.
  const double level = ml::Quantile(logs, 0.25) + least / 2;
  Stretch best;
  double best_sum = 0;
  double sum = 0;
  size_t start = 0;
  for (size_t i = 0; i < logs.size(); ++i) {
    sum += std::clamp(logs[i] - level, -least, least);
    if (sum <= 0) {
      sum = 0;
      start = i + 1;
    } else if (sum > best_sum) {
      best_sum = sum;
      best = {start, i + 1};
    }
  }
  return best;
}

std::optional<LevelShift> TestStretch(std::span<const double> logs, Stretch at, const ShiftRule& rule) {
  const auto [inside, outside] = Part(logs, at);
  if (at.first < kBefore || inside.size() < rule.fewest || outside.size() <= rule.fewest) return std::nullopt;
  if (static_cast<double>(inside.size()) > kLongest * static_cast<double>(logs.size())) return std::nullopt;
  LevelShift shift{.at = at};
  shift.calm = ml::Quantile(outside, 0.5);
  shift.by = ml::Quantile(inside, 0.5) - shift.calm;
  const double upper = ml::Quantile(outside, kUpper);
  shift.spread = std::max({rule.spread_floor, ml::RobustScale(outside), (upper - shift.calm) / kUpperZ});
  const bool many = inside.size() >= kMany && shift.by >= kManyBy * rule.least;
  if (shift.by < rule.least || shift.by < (many ? kManyZ : 1.0) * rule.least_z * shift.spread) return std::nullopt;
  const double below = rule.separated ? *std::max_element(outside.begin(), outside.end()) : upper;
  if (ml::Quantile(inside, rule.separated ? 0.1 : kMost) <= std::max(below, shift.calm + rule.least / 2))
    return std::nullopt;
  const double uneven = ml::Quantile(inside, kUpper) - ml::Quantile(inside, 1 - kUpper);
  if (rule.most_uneven > 0 && uneven > rule.most_uneven * shift.spread) return std::nullopt;
  double log_chance = 0;
  for (const double x : inside)
    log_chance -= kTail * std::log(std::clamp((x - shift.calm) / shift.spread, 1.0, kMostZ));
  // It may begin and end anywhere.
  const auto stretches = 3 * static_cast<double>(logs.size());
  shift.false_alarm = std::clamp(stretches * std::exp(log_chance / kObservations), 1e-9, 1.0);
  return shift;
}

}  // namespace teller::locate
