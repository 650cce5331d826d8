#include "tree/line_fit.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace teller::tree {

namespace {

constexpr size_t kFewest = 3;
constexpr double kFarOff = 4.0;  // standard deviations; of honest noise hardly anything lies beyond
constexpr double kFarOffOfFew = 8.0;
constexpr int kRounds = 6;
constexpr double kDigits = 1.0;  // ns: nothing is known better than the files' own resolution
constexpr size_t kFewestOfKind = 5;

double QuantileOf(std::vector<double>& values, double q) {
  if (values.empty()) return 0;
  const auto at = values.begin() + static_cast<int64_t>(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

/// Upper quantile of the standard normal distribution, P(Z > z) = p, by Newton's method on erfc.
double NormalQuantile(double p) {
  double z = 2.5;
  for (int i = 0; i < 60; ++i) {
    const double tail = 0.5 * std::erfc(z / std::sqrt(2.0));
    const double density = std::exp(-z * z / 2) / std::sqrt(2 * M_PI);
    const double step = std::clamp((tail - p) / std::max(density, 1e-300), -0.5, 0.5);
    z += step;
    if (std::abs(step) < 1e-12) break;
  }
  return z;
}

/// The same for Student's t with `freedom` degrees: exact for 1 and 2, else an expansion in 1 / freedom
/// (Abramowitz and Stegun, 26.7.5), made exact enough for few degrees by its own last terms.
double StudentQuantile(double p, double freedom) {
  if (freedom < 1.5) return 1 / std::tan(M_PI * p);
  if (freedom < 2.5) return (1 - 2 * p) * std::sqrt(2 / (4 * p * (1 - p)));
  const double z = NormalQuantile(p);
  const double z2 = z * z;
  const double g1 = z * (z2 + 1) / 4;
  const double g2 = z * ((5 * z2 + 16) * z2 + 3) / 96;
  const double g3 = z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384;
  const double g4 = z * ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160;
  const double few = freedom < 8 ? 1 + 2 / (freedom * freedom) : 1;
  return few * (z + g1 / freedom + g2 / std::pow(freedom, 2) + g3 / std::pow(freedom, 3) + g4 / std::pow(freedom, 4));
}

/// Points, a line through them and which of them it is made from.
class Fitter {
 public:
  explicit Fitter(std::vector<ClockPoint> points)
      : points_(std::move(points)), in_(points_.size(), true), rest_(points_.size()) {
    std::sort(points_.begin(), points_.end(), [](const ClockPoint& a, const ClockPoint& b) {
      return std::tuple(a.x, a.y, a.kind) < std::tuple(b.x, b.y, b.kind);
    });
  }

  LineFit Run(double miss) {
    Start();
    for (int round = 0; round < kRounds; ++round) {
      if (!Select()) break;
      Least();
    }
    LineFit sloped = Judge(miss, true);
    LineFit level = Judge(miss, false);
    const double first = points_.front().x;
    const double last = points_.back().x;
    const auto worst = [&](const LineFit& fit) { return std::max(fit.ErrorAt(first), fit.ErrorAt(last)); };
    if (!sloped.ok) return level;
    return level.ok && worst(level) < worst(sloped) ? level : sloped;
  }

 private:
  /// A line that outliers do not move: the median slope over pairs far apart, or none when that fits better.
  void Start() {
    const size_t half = points_.size() / 2;
    std::vector<double> slopes;
    for (size_t i = 0; i + half < points_.size(); ++i) {
      const double away = points_[i + half].x - points_[i].x;
      if (away > 0) slopes.push_back((points_[i + half].y - points_[i].y) / away);
    }
    const double slope = std::clamp(QuantileOf(slopes, 0.5), -kMostDrift, kMostDrift);
    const double flat_spread = Center(0);
    const double flat = level_;
    if (Center(slope) <= flat_spread) return;
    slope_ = 0;
    level_ = flat;
    Residuals();
  }

  /// Sets the line of this slope through the median; returns the median distance from it.
  double Center(double slope) {
    slope_ = slope;
    level_ = 0;
    Residuals();
    std::vector<double> values = rest_;
    level_ = QuantileOf(values, 0.5);
    Residuals();
    for (size_t i = 0; i < rest_.size(); ++i) values[i] = std::abs(rest_[i]);
    return QuantileOf(values, 0.5);
  }

  void Residuals() {
    for (size_t i = 0; i < points_.size(); ++i) rest_[i] = points_[i].y - level_ - slope_ * points_[i].x;
  }

  /// Takes out what is far off, but never more than a quarter. False when that changes nothing.
  bool Select() {
    std::vector<double> away(rest_.size());
    for (size_t i = 0; i < rest_.size(); ++i) away[i] = std::abs(rest_[i]);
    const double few = static_cast<double>(rest_.size()) / static_cast<double>(rest_.size() - 1);
    // The upper one keeps coarse stamps (whole microseconds), where half of the differences are 0, from outlawing the
    // rest.
    const double median = QuantileOf(away, 0.5);
    const double scale = few * std::max(1.4826 * median, QuantileOf(away, 0.75) / 1.15);
    // Of few points the scale itself may be much too small.
    const double far = kFarOff * (1 + kFarOffOfFew / static_cast<double>(rest_.size()));
    double limit = std::max(far * scale, kDigits);
    limit = std::max(limit, QuantileOf(away, 0.75));  // QuantileOf reorders and keeps the values
    bool changed = false;
    for (size_t i = 0; i < rest_.size(); ++i) {
      const bool in = std::abs(rest_[i]) <= limit;
      changed = changed || in != in_[i];
      in_[i] = in;
    }
    return changed || !fitted_;
  }

  struct Sums {
    double n = 0;
    double x = 0;
    double y = 0;
    double xx = 0;
    double xy = 0;
  };

  /// Means and central moments of the points in use.
  Sums Moments() const {
    Sums s;
    for (size_t i = 0; i < points_.size(); ++i) {
      if (!in_[i]) continue;
      s.n += 1;
      s.x += points_[i].x;
      s.y += points_[i].y;
    }
    s.x /= s.n;
    s.y /= s.n;
    for (size_t i = 0; i < points_.size(); ++i) {
      if (!in_[i]) continue;
      s.xx += (points_[i].x - s.x) * (points_[i].x - s.x);
      s.xy += (points_[i].x - s.x) * (points_[i].y - s.y);
    }
    return s;
  }

  /// Least squares over the points in use.
  void Least() {
    const Sums s = Moments();
    slope_ = s.xx > 0 ? s.xy / s.xx : 0;
    level_ = s.y - slope_ * s.x;
    fitted_ = true;
    Residuals();
  }

  /// Neighbours that err alike carry less than their number says: the factor on the variance of a mean.
  double Alike(const std::vector<double>& rest) const {
    double same = 0;
    double next = 0;
    for (size_t i = 0; i < rest.size(); ++i) {
      same += rest[i] * rest[i];
      if (i > 0) next += rest[i] * rest[i - 1];
    }
    if (same <= 0) return 1;
    const double rho = next / same;
    if (rho < 2.5 / std::sqrt(static_cast<double>(rest.size()))) return 1;
    return (1 + std::min(rho, 0.95)) / (1 - std::min(rho, 0.95));
  }

  /// Largest mean residual of a sort of collectives, where it is more than chance: its members leave in an order of
  /// their own.
  double KindBias(const std::vector<double>& rest, const std::vector<uint32_t>& kinds, double spread) const {
    std::map<uint32_t, std::pair<double, size_t>> sums;
    for (size_t i = 0; i < rest.size(); ++i) {
      auto& [sum, n] = sums[kinds[i]];
      sum += rest[i];
      ++n;
    }
    double bias = 0;
    for (const auto& [kind, sum] : sums) {
      if (sum.second < kFewestOfKind || sum.second == rest.size()) continue;
      const double mean = std::abs(sum.first) / static_cast<double>(sum.second);
      if (mean > 3.5 * spread / std::sqrt(static_cast<double>(sum.second))) bias = std::max(bias, mean);
    }
    return bias;
  }

  LineFit Judge(double miss, bool sloped) const {
    const Sums s = Moments();
    LineFit fit;
    fit.used = static_cast<size_t>(s.n);
    fit.slope = sloped ? slope_ : 0;
    fit.level = sloped ? level_ : s.y;
    const double freedom = s.n - (sloped ? 2 : 1);
    if (freedom < 1 || (sloped && s.xx <= 0)) return fit;
    std::vector<double> rest;
    std::vector<uint32_t> kinds;
    double squares = 0;
    for (size_t i = 0; i < points_.size(); ++i) {
      if (!in_[i]) continue;
      rest.push_back(points_[i].y - fit.level - fit.slope * points_[i].x);
      kinds.push_back(points_[i].kind);
      squares += rest.back() * rest.back();
    }
    fit.spread = std::sqrt(squares / freedom);
    const double scale = StudentQuantile(miss / 2, freedom) * fit.spread * std::sqrt(Alike(rest));
    fit.center = s.x;
    fit.error_at_center = scale / std::sqrt(s.n) + KindBias(rest, kinds, fit.spread) + kDigits;
    fit.error_slope = sloped ? scale / std::sqrt(s.xx) : kMostDrift;
    fit.assumes_slope = !sloped;
    fit.ok = true;
    return fit;
  }

  std::vector<ClockPoint> points_;
  std::vector<bool> in_;
  std::vector<double> rest_;  // residuals, parallel to points_
  double level_ = 0;
  double slope_ = 0;
  bool fitted_ = false;
};

}  // namespace

double LineFit::ErrorAt(double x) const {
  const double grown = error_slope * std::abs(x - center);
  return assumes_slope ? error_at_center + grown : std::hypot(error_at_center, grown);
}

LineFit FitLine(std::vector<ClockPoint> points, double miss) {
  if (points.size() < kFewest) return {};
  return Fitter(std::move(points)).Run(miss);
}

}  // namespace teller::tree
