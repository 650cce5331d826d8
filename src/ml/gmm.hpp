#pragma once

#include <span>
#include <vector>

namespace teller::ml {

/// One component of a one-dimensional Gaussian mixture.
struct Gaussian {
  double weight = 0;
  double mean = 0;
  double sigma = 1;
};

/// A mixture; order: by mean.
struct Mixture {
  std::vector<Gaussian> components;
  double log_likelihood = 0;   ///< of the data it was fitted on
  std::vector<double> trail;   ///< log likelihood after each iteration; never falls
};

/// Fits by EM (Dempster, Laird & Rubin 1977) with `k` components started at quantiles; sigma never below `sigma_floor`.
/// Deterministic.
Mixture FitMixture(std::span<const double> values, int k, double sigma_floor);

/// Fits 1..max_k components and keeps the one with the lowest BIC (Schwarz 1978).
Mixture FitBestMixture(std::span<const double> values, int max_k, double sigma_floor);

/// The component that stands for normal behaviour: the lowest mean that holds at least `least_weight`; faults only add time.
const Gaussian& NormalComponent(const Mixture& mixture, double least_weight);

/// P(Z > z) of the standard normal.
double UpperTail(double z);

}  // namespace teller::ml
