#include "score/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "base/rng.hpp"

namespace teller::score {

Detection Detect(const Confusion& counts, std::optional<double> prior) {
  Detection out;
  const double positives = counts.true_positives + counts.false_negatives;
  const double negatives = counts.false_positives + counts.true_negatives;
  if (positives <= 0) return out;
  out.recall = counts.true_positives / positives;
  double hits = counts.true_positives;
  double alarms = counts.false_positives;
  if (prior) {
    if (negatives <= 0) return {};
    hits = *prior * *out.recall;
    alarms = (1 - *prior) * counts.false_positives / negatives;
  }
  if (hits + alarms > 0) out.precision = hits / (hits + alarms);
  const double p = out.precision.value_or(0);
  out.f1 = p + *out.recall > 0 ? 2 * p * *out.recall / (p + *out.recall) : 0;
  return out;
}

std::vector<Scored> ByScore(std::vector<Scored> items) {
  const auto key = [](const Scored& s) { return std::tuple(-s.score, s.cluster, s.positive, s.flagged); };
  std::sort(items.begin(), items.end(), [&](const Scored& a, const Scored& b) { return key(a) < key(b); });
  std::vector<Scored> out;
  for (const Scored& item : items) {
    if (!out.empty() && key(out.back()) == key(item)) {
      out.back().count += item.count;
    } else {
      out.push_back(item);
    }
  }
  return out;
}

std::optional<double> AveragePrecision(const std::vector<Scored>& items, std::optional<double> prior,
                                       const std::vector<uint32_t>& multiplicity) {
  const auto weight = [&](const Scored& item) {
    return static_cast<double>(multiplicity.empty() ? item.count : item.count * multiplicity[item.cluster]);
  };
  double positives = 0;
  double negatives = 0;
  for (const Scored& item : items) (item.positive ? positives : negatives) += weight(item);
  if (positives <= 0 || (prior && negatives <= 0)) return {};
  const double of_positive = prior ? *prior / positives : 1;
  const double of_negative = prior ? (1 - *prior) / negatives : 1;
  double area = 0;
  double hits = 0;
  double alarms = 0;
  for (size_t i = 0; i < items.size();) {
    const double score = items[i].score;
    double gained = 0;
    for (; i < items.size() && items[i].score == score; ++i) (items[i].positive ? gained : alarms) += weight(items[i]);
    hits += gained;
    if (gained > 0) area += gained / positives * (hits * of_positive / (hits * of_positive + alarms * of_negative));
  }
  return area;
}

std::optional<double> AccuracyAt(const std::vector<Place>& places, uint32_t k) {
  if (places.empty()) return {};
  const auto hit = std::count_if(places.begin(), places.end(), [&](Place place) { return place >= 1 && place <= k; });
  return static_cast<double>(hit) / static_cast<double>(places.size());
}

std::optional<double> AverageAt(const std::vector<Place>& places, uint32_t k) {
  if (places.empty() || k == 0) return {};
  double sum = 0;
  for (uint32_t i = 1; i <= k; ++i) sum += *AccuracyAt(places, i);
  return sum / k;
}

std::optional<double> MeanReciprocalRank(const std::vector<Place>& places) {
  if (places.empty()) return {};
  double sum = 0;
  for (const Place place : places) sum += place == 0 ? 0 : 1.0 / place;
  return sum / static_cast<double>(places.size());
}

std::optional<double> MacroF1(const std::vector<std::string>& truth, const std::vector<std::string>& said) {
  if (truth.empty()) return {};
  std::map<std::string, Confusion> by_class;
  for (const std::string& name : truth) by_class[name];
  for (size_t i = 0; i < truth.size(); ++i) {
    if (truth[i] == said[i]) {
      by_class[truth[i]].true_positives += 1;
      continue;
    }
    by_class[truth[i]].false_negatives += 1;
    if (const auto it = by_class.find(said[i]); it != by_class.end()) it->second.false_positives += 1;
  }
  double sum = 0;
  for (const auto& [name, counts] : by_class) sum += *Detect(counts, {}).f1;
  return sum / static_cast<double>(by_class.size());
}

std::optional<double> CalibrationError(const std::vector<Confident>& answers, unsigned bins) {
  if (answers.empty() || bins == 0) return {};
  struct Bin {
    double confidence = 0;
    double right = 0;
  };
  std::vector<Bin> sums(bins);
  for (const Confident& answer : answers) {
    const double clamped = std::clamp(answer.confidence, 0.0, 1.0);
    Bin& bin = sums[std::min<size_t>(bins - 1, static_cast<size_t>(clamped * bins))];
    bin.confidence += clamped;
    bin.right += answer.right;
  }
  double error = 0;
  for (const Bin& bin : sums) error += std::abs(bin.confidence - bin.right);
  return error / static_cast<double>(answers.size());
}

std::optional<double> RiskAt(const std::vector<Confident>& answers, size_t asked, double coverage) {
  const double wanted = coverage * static_cast<double>(asked);
  if (wanted <= 0 || wanted > static_cast<double>(answers.size()) + 1e-9) return {};
  std::map<double, std::pair<double, double>, std::greater<>> by_confidence;  // how many, how many wrong
  for (const Confident& answer : answers) {
    auto& [count, wrong] = by_confidence[answer.confidence];
    count += 1;
    wrong += !answer.right;
  }
  double left = wanted;
  double wrong = 0;
  for (const auto& [confidence, group] : by_confidence) {
    const double taken = std::min(left, group.first);
    wrong += taken * group.second / group.first;
    left -= taken;
    if (left <= 0) break;
  }
  return wrong / wanted;
}

std::vector<Interval95> Bootstrap(
    size_t clusters, unsigned resamples, uint64_t seed,
    const std::function<std::vector<std::optional<double>>(const std::vector<uint32_t>&)>& figures) {
  std::vector<std::vector<double>> drawn;
  base::Rng rng(seed);
  std::vector<uint32_t> multiplicity(clusters);
  for (unsigned r = 0; r < resamples && clusters > 0; ++r) {
    std::fill(multiplicity.begin(), multiplicity.end(), 0u);
    for (size_t i = 0; i < clusters; ++i) ++multiplicity[rng.Below(clusters)];
    const auto values = figures(multiplicity);
    drawn.resize(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i]) drawn[i].push_back(*values[i]);
    }
  }
  std::vector<Interval95> out(drawn.size());
  for (size_t i = 0; i < drawn.size(); ++i) {
    std::vector<double>& values = drawn[i];
    if (values.empty()) continue;
    std::sort(values.begin(), values.end());
    const auto at = [&](double share) {
      return values[static_cast<size_t>(std::lround(share * static_cast<double>(values.size() - 1)))];
    };
    out[i] = {at(0.025), at(0.975)};
  }
  return out;
}

}  // namespace teller::score
