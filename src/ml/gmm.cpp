#include "ml/gmm.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "ml/robust.hpp"

namespace teller::ml {

namespace {

constexpr int kIterations = 200;
constexpr double kConverged = 1e-7;

double LogDensity(const Gaussian& g, double x) {
  const double z = (x - g.mean) / g.sigma;
  return std::log(g.weight) - std::log(g.sigma) - 0.5 * std::log(2 * std::numbers::pi) - 0.5 * z * z;
}

double LogSum(const std::vector<double>& parts) {
  const double top = *std::max_element(parts.begin(), parts.end());
  double sum = 0;
  for (const double p : parts) sum += std::exp(p - top);
  return top + std::log(sum);
}

}  // namespace

Mixture FitMixture(std::span<const double> values, int k, double sigma_floor) {
  Mixture mixture;
  if (values.empty() || k < 1) return mixture;
  const auto n = values.size();
  const double spread = std::max(RobustScale(values), sigma_floor);
  for (int c = 0; c < k; ++c) {
    mixture.components.push_back({1.0 / k, Quantile(values, (c + 0.5) / k), spread});
  }
  std::vector<std::vector<double>> share(n, std::vector<double>(static_cast<size_t>(k)));
  double before = -std::numeric_limits<double>::infinity();
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    double likelihood = 0;
    std::vector<double> logs(static_cast<size_t>(k));
    for (size_t i = 0; i < n; ++i) {
      for (size_t c = 0; c < logs.size(); ++c) logs[c] = LogDensity(mixture.components[c], values[i]);
      const double total = LogSum(logs);
      likelihood += total;
      for (size_t c = 0; c < logs.size(); ++c) share[i][c] = std::exp(logs[c] - total);
    }
    mixture.trail.push_back(likelihood);
    mixture.log_likelihood = likelihood;
    if (likelihood - before < kConverged * static_cast<double>(n)) break;
    before = likelihood;
    for (size_t c = 0; c < mixture.components.size(); ++c) {
      double weight = 0;
      double mean = 0;
      for (size_t i = 0; i < n; ++i) {
        weight += share[i][c];
        mean += share[i][c] * values[i];
      }
      if (weight < 1e-9) {
        mixture.components[c].weight = 1e-12;
        continue;
      }
      mean /= weight;
      double variance = 0;
      for (size_t i = 0; i < n; ++i) variance += share[i][c] * (values[i] - mean) * (values[i] - mean);
      mixture.components[c] = {weight / static_cast<double>(n), mean, std::max(std::sqrt(variance / weight), sigma_floor)};
    }
  }
  std::sort(mixture.components.begin(), mixture.components.end(), [](const auto& a, const auto& b) { return a.mean < b.mean; });
  return mixture;
}

Mixture FitBestMixture(std::span<const double> values, int max_k, double sigma_floor) {
  Mixture best;
  double best_bic = std::numeric_limits<double>::infinity();
  for (int k = 1; k <= max_k; ++k) {
    if (values.size() < static_cast<size_t>(3 * k)) break;  // fewer than three values a component prove nothing
    Mixture fitted = FitMixture(values, k, sigma_floor);
    const double bic = (3.0 * k - 1) * std::log(static_cast<double>(values.size())) - 2 * fitted.log_likelihood;
    if (bic < best_bic) {
      best_bic = bic;
      best = std::move(fitted);
    }
  }
  if (best.components.empty() && !values.empty()) best = FitMixture(values, 1, sigma_floor);
  return best;
}

const Gaussian& NormalComponent(const Mixture& mixture, double least_weight) {
  for (const Gaussian& g : mixture.components) {
    if (g.weight >= least_weight) return g;
  }
  return mixture.components.front();
}

double UpperTail(double z) { return 0.5 * std::erfc(z / std::numbers::sqrt2); }

}  // namespace teller::ml
