#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace teller::tree {

/// One difference of two clocks: what was `y` ahead at `x`. ns, both small enough for a double to hold exactly.
struct ClockPoint {
  double x = 0;
  double y = 0;
  uint32_t kind = 0;  ///< of which sort of collective
};

/// y = level + slope * x, and how far off that can be at any x.
struct LineFit {
  bool ok = false;
  double level = 0;
  double slope = 0;
  double spread = 0;  ///< standard deviation of one difference about the line, outliers apart
  double center = 0;  ///< the x at which the line is known best
  double error_at_center = 0;
  double error_slope = 0;      ///< how the error grows per ns away from `center`
  bool assumes_slope = false;  ///< too short for a slope: it is taken as 0 and the largest one possible is in the error
  size_t used = 0;             ///< points that were not outliers

  double ErrorAt(double x) const;
};

/// Two clocks drift apart by no more than this. Crystals are within 100 ppm of the truth, each.
inline constexpr double kMostDrift = 200e-6;

/// Fits a line robustly: up to a quarter of the points may be wrong by any amount. ErrorAt is passed with a probability
/// of at most `miss` at each x, for noise that is independent from point to point; noise that is not (neighbours alike,
/// sorts of collectives that leave differently) widens it. Not ok for fewer than three points. Deterministic; never NaN
/// for finite input. Cost: n log n.
LineFit FitLine(std::vector<ClockPoint> points, double miss);

}  // namespace teller::tree
