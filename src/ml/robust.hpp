#pragma once

#include <span>
#include <vector>

namespace teller::ml {

/// The q-quantile (0..1) by linear interpolation; 0 for no values. Cost: O(n log n), copies.
double Quantile(std::span<const double> values, double q);

/// 1.4826 * median absolute deviation: the standard deviation of a normal sample, untouched by up to half outliers.
double RobustScale(std::span<const double> values);

/// The low mode of a positive sample: where it falls into two groups whose means differ by `apart` or more (as a ratio)
/// and the lower one holds at least `least_share`, that group's mean; else the 0.3-quantile. The split is the one with the
/// largest variance between groups of the logarithms (Otsu 1979). Sorts `values`. Cost: O(n log n).
double LowMode(std::vector<double>& values, double apart, double least_share);

/// y ~ intercept + sum(slope * x): coefficients, intercept first.
struct LinearFit {
  std::vector<double> coefficients;
  bool ok = false;

  double Predict(std::span<const double> x) const;
};

/// Linear regression by iteratively reweighted least squares with Tukey's biweight (Beaton & Tukey 1974), started from a
/// least-absolute-deviation fit, so that a minority of slow steps does not move it. Slopes are kept non-negative: more
/// work never costs less time. `rows` are of equal length. Fails (ok = false) with fewer rows than coefficients + 1.
LinearFit FitRobust(const std::vector<std::vector<double>>& rows, std::span<const double> y);

}  // namespace teller::ml
