#include "ml/robust.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace teller::ml {

namespace {

constexpr int kIterations = 30;
constexpr double kTukey = 4.685;  // 95 % efficiency on normal residuals

/// Solves the normal equations of a weighted least-squares fit by Gaussian elimination with a small ridge.
bool Solve(const std::vector<std::vector<double>>& rows, std::span<const double> y, std::span<const double> w,
           const std::vector<bool>& used, std::vector<double>& beta) {
  std::vector<size_t> columns;
  for (size_t c = 0; c < used.size(); ++c) {
    if (used[c]) columns.push_back(c);
  }
  const size_t k = columns.size();
  std::vector<std::vector<double>> a(k, std::vector<double>(k + 1, 0.0));
  const auto value = [&](size_t row, size_t column) { return column == 0 ? 1.0 : rows[row][column - 1]; };
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t i = 0; i < k; ++i) {
      for (size_t j = 0; j < k; ++j) a[i][j] += w[r] * value(r, columns[i]) * value(r, columns[j]);
      a[i][k] += w[r] * value(r, columns[i]) * y[r];
    }
  }
  for (size_t i = 0; i < k; ++i) a[i][i] += 1e-9 * (a[i][i] + 1e-12);
  for (size_t i = 0; i < k; ++i) {
    size_t pivot = i;
    for (size_t r = i + 1; r < k; ++r) {
      if (std::abs(a[r][i]) > std::abs(a[pivot][i])) pivot = r;
    }
    std::swap(a[i], a[pivot]);
    if (std::abs(a[i][i]) < 1e-300) return false;
    for (size_t r = 0; r < k; ++r) {
      if (r == i) continue;
      const double f = a[r][i] / a[i][i];
      for (size_t c = i; c <= k; ++c) a[r][c] -= f * a[i][c];
    }
  }
  std::fill(beta.begin(), beta.end(), 0.0);
  for (size_t i = 0; i < k; ++i) beta[columns[i]] = a[i][k] / a[i][i];
  return true;
}

/// As Solve, dropping columns whose slope would be negative, worst first.
bool SolveNonNegative(const std::vector<std::vector<double>>& rows, std::span<const double> y, std::span<const double> w,
                      std::vector<double>& beta) {
  std::vector<bool> used(beta.size(), true);
  for (;;) {
    if (!Solve(rows, y, w, used, beta)) return false;
    size_t worst = 0;
    for (size_t c = 1; c < beta.size(); ++c) {
      if (used[c] && beta[c] < 0 && (worst == 0 || beta[c] < beta[worst])) worst = c;
    }
    if (worst == 0) return true;
    used[worst] = false;
  }
}

}  // namespace

double Quantile(std::span<const double> values, double q) {
  if (values.empty()) return 0;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

double RobustScale(std::span<const double> values) {
  const double median = Quantile(values, 0.5);
  std::vector<double> deviations;
  deviations.reserve(values.size());
  for (const double v : values) deviations.push_back(std::abs(v - median));
  return 1.4826 * Quantile(deviations, 0.5);
}

double LowMode(std::vector<double>& values, double apart, double least_share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  const double at = 0.3 * (n - 1);
  const auto low = static_cast<size_t>(at);
  const double quantile =
      values[low] + (at - static_cast<double>(low)) * (values[std::min(low + 1, values.size() - 1)] - values[low]);
  const double floor = std::max(values.back() * 1e-3, 1e-12);  // zeros must not reach to minus infinity
  double total = 0;
  for (const double v : values) total += std::log(v + floor);
  double best = 0;
  size_t split = 0;
  double below = 0;
  for (size_t i = 0; i + 1 < values.size(); ++i) {
    below += std::log(values[i] + floor);
    const auto k = static_cast<double>(i + 1);
    const double gap = (total - below) / (n - k) - below / k;
    const double between = k * (n - k) * gap * gap;
    if (between > best) {
      best = between;
      split = i + 1;
    }
  }
  if (split == 0 || static_cast<double>(split) < least_share * n) return quantile;
  double mean_low = 0;
  double mean_high = 0;
  for (size_t i = 0; i < values.size(); ++i) (i < split ? mean_low : mean_high) += values[i];
  mean_low /= static_cast<double>(split);
  mean_high /= static_cast<double>(values.size() - split);
  return mean_high >= apart * mean_low ? std::min(mean_low, quantile * 1.2 + floor) : quantile;
}

double LinearFit::Predict(std::span<const double> x) const {
  double y = coefficients.empty() ? 0 : coefficients[0];
  for (size_t i = 0; i + 1 < coefficients.size() && i < x.size(); ++i) y += coefficients[i + 1] * x[i];
  return y;
}

LinearFit FitRobust(const std::vector<std::vector<double>>& rows, std::span<const double> y) {
  LinearFit fit;
  if (rows.empty()) return fit;
  const size_t k = rows[0].size() + 1;
  if (rows.size() < k + 1) return fit;
  std::vector<double> beta(k, 0.0);
  std::vector<double> w(rows.size(), 1.0);
  const auto residual = [&](size_t r) {
    double p = beta[0];
    for (size_t c = 1; c < k; ++c) p += beta[c] * rows[r][c - 1];
    return y[r] - p;
  };
  if (!SolveNonNegative(rows, y, w, beta)) return fit;
  std::vector<double> r(rows.size());
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    for (size_t i = 0; i < rows.size(); ++i) r[i] = residual(i);
    const double scale = std::max(RobustScale(r), 1e-12);
    for (size_t i = 0; i < rows.size(); ++i) {
      // The first half minimizes absolute deviations; the second half cuts off what is then clearly outside.
      if (iteration < kIterations / 2) {
        w[i] = 1.0 / std::max(std::abs(r[i]), 0.01 * scale);
      } else {
        const double u = r[i] / (kTukey * scale);
        w[i] = std::abs(u) < 1 ? (1 - u * u) * (1 - u * u) : 0.0;
      }
    }
    const std::vector<double> before = beta;
    if (!SolveNonNegative(rows, y, w, beta)) {
      beta = before;
      break;
    }
  }
  fit.coefficients = std::move(beta);
  fit.ok = true;
  return fit;
}

}  // namespace teller::ml
