#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace teller::locate {

/// Successive values of a series: [first, last).
struct Stretch {
  size_t first = 0;
  size_t last = 0;
};

/// A stretch of a series that lies above all others.
struct LevelShift {
  Stretch at;
  double calm = 0;         ///< median of the other values
  double by = 0;           ///< median of the stretch above it
  double spread = 0;       ///< of the other values, with their upper tail; never below the floor that was asked for
  double false_alarm = 1;  ///< probability of as much in a series without a shift, neighbours taken as dependent

  /// Half way up: values above it belong to the shift.
  double Middle() const { return calm + by / 2; }
};

/// What a shift has to show.
struct ShiftRule {
  double least = 0;         ///< smallest `by` that matters
  double spread_floor = 0;  ///< values vary at least this much, even where few of them happen to agree
  double least_z = 4;       ///< `by` in spreads
  size_t fewest = 4;        ///< values in the stretch, and one more outside
  double most_uneven = 0;   ///< eight of ten values of the stretch lie within so many spreads; 0: it does not matter
  bool separated = false;   ///< nine of ten values of the stretch lie above every other one, not only above most
};

/// The values of a stretch, and all others.
struct Parted {
  std::vector<double> inside;
  std::vector<double> outside;
};
Parted Part(std::span<const double> values, Stretch at);

/// The stretch of a series of logarithms (of measured to normal) that lies highest above the lower quarter, by what is
/// more than half of `least`. Empty where nothing does. Cost: O(n log n).
Stretch HighestStretch(std::span<const double> logs, double least);

/// Whether something became slower in a stretch and stayed so for a while. A machine's own weather lengthens single
/// values anywhere; a shift needs nearly all of its values above nearly all others, by several times what the others
/// vary; and calm ones before it: what is slow from the start may be warming up. Cost: O(n log n).
std::optional<LevelShift> TestStretch(std::span<const double> logs, Stretch at, const ShiftRule& rule);

}  // namespace teller::locate
