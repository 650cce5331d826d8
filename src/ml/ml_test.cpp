#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.hpp"
#include "ml/gmm.hpp"
#include "ml/robust.hpp"

namespace teller::ml {
namespace {

/// Normal draw by Box-Muller.
double Normal(base::Rng& rng) {
  const double u = std::max(rng.Unit(), 1e-12);
  return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * rng.Unit());
}

TEST(Robust, QuantileInterpolates) {
  const std::vector<double> v = {4, 1, 3, 2};
  EXPECT_DOUBLE_EQ(Quantile(v, 0), 1);
  EXPECT_DOUBLE_EQ(Quantile(v, 1), 4);
  EXPECT_DOUBLE_EQ(Quantile(v, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(Quantile({}, 0.5), 0);
}

TEST(Robust, FitIgnoresAThirdOfSlowSteps) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    base::Rng rng(seed);
    std::vector<std::vector<double>> x;
    std::vector<double> y;
    for (int i = 0; i < 60; ++i) {
      const double tokens = static_cast<double>(rng.Below(500));
      x.push_back({tokens});
      y.push_back(10 + 0.3 * tokens + Normal(rng) + (i % 3 == 0 ? 200 + rng.Unit() * 100 : 0));
    }
    const LinearFit fit = FitRobust(x, y);
    ASSERT_TRUE(fit.ok);
    EXPECT_NEAR(fit.coefficients[0], 10, 3) << seed;
    EXPECT_NEAR(fit.coefficients[1], 0.3, 0.02) << seed;
  }
}

TEST(Robust, SlopesNeverNegative) {
  const std::vector<std::vector<double>> x = {{1}, {2}, {3}, {4}, {5}};
  const std::vector<double> y = {5, 4, 3, 2, 1};
  const LinearFit fit = FitRobust(x, y);
  ASSERT_TRUE(fit.ok);
  EXPECT_GE(fit.coefficients[1], 0);
}

TEST(Robust, TooFewRowsFail) {
  const std::vector<std::vector<double>> x = {{1}, {2}};
  const std::vector<double> y = {1, 2};
  EXPECT_FALSE(FitRobust(x, y).ok);
}

TEST(Gmm, LikelihoodNeverFalls) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    base::Rng rng(seed);
    std::vector<double> v;
    for (int i = 0; i < 100; ++i) v.push_back(Normal(rng) + (i % 4 == 0 ? 5 : 0));
    const Mixture m = FitMixture(v, 1 + static_cast<int>(seed % 3), 1e-3);
    for (size_t i = 1; i < m.trail.size(); ++i) EXPECT_GE(m.trail[i], m.trail[i - 1] - 1e-6) << seed;
  }
}

TEST(Gmm, FindsTwoModesAndTheNormalOne) {
  base::Rng rng(7);
  std::vector<double> v;
  for (int i = 0; i < 80; ++i) v.push_back((i % 4 == 0 ? 3.0 : 0.0) + 0.1 * Normal(rng));
  const Mixture m = FitBestMixture(v, 3, 0.05);
  ASSERT_EQ(m.components.size(), 2u);
  EXPECT_NEAR(NormalComponent(m, 0.15).mean, 0, 0.1);
  EXPECT_NEAR(m.components[1].weight, 0.25, 0.05);
}

TEST(Gmm, TailOfTheNormal) {
  EXPECT_NEAR(UpperTail(0), 0.5, 1e-12);
  EXPECT_NEAR(UpperTail(1.6449), 0.05, 1e-4);
}

}  // namespace
}  // namespace teller::ml
