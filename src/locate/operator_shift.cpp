#include "locate/operator_shift.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "locate/level_shift.hpp"

namespace teller::locate {

namespace {

constexpr ShiftRule kRule{
    .least = 0.693, .spread_floor = 0.12, .least_z = 5, .fewest = 4, .most_uneven = 3, .separated = true};
constexpr double kFelt = 0.02;   // of the steps' time: less is nobody's trouble
constexpr double kEqual = 0.75;  // of the largest excess: the innermost of such operators is the one
constexpr double kOnePlace = 0.5;

/// One operator over the steps that call it.
struct Series {
  std::vector<double> logs;         ///< of cost to normal, against the rest of the step
  std::vector<uint32_t> deviation;  ///< parallel: index
};

/// What an operator's step took in all, and what is normal: own time, or GPU work.
struct Whole {
  double cost = 0;
  double expected = 0;
};

class Search {
 public:
  Search(const Scene& scene, const OperatorTable& table, SlotKey::Kind kind, const std::vector<Deviation>& deviations)
      : scene_(scene), table_(table), kind_(kind), deviations_(deviations) {}

  std::optional<Hypothesis> Run(const Hypothesis& start) {
    Collect();
    std::vector<Hypothesis> found;
    for (const auto& [name, series] : by_name_) {
      if (auto h = Test(name, series, start)) found.push_back(std::move(*h));
    }
    return Innermost(std::move(found));
  }

 private:
  bool IsGpu() const { return kind_ == SlotKey::Kind::kGpu; }

  Whole WholeOf(const Deviation& d, const OperatorCosts& names) const {
    if (!IsGpu()) return {d.own, d.expected};
    Whole whole;
    for (const auto& [name, c] : names) {
      whole.cost += c.cost;
      whole.expected += c.expected;
    }
    return whole;
  }

  /// A noisy or starved step stretches all of its operators: only what an operator grew more than the rest is its own.
  void Collect() {
    for (uint32_t i = 0; i < deviations_.size(); ++i) {
      const uint32_t step = deviations_[i].step;
      if (!scene_.normals[step].same_shape || scene_.profiles[step].opaque) continue;
      const OperatorCosts names = table_.Of(step, kind_);
      const Whole whole = WholeOf(deviations_[i], names);
      for (const auto& [name, c] : names) {
        if (c.expected <= 0 || c.cost <= 0) continue;
        const double rest = (whole.cost - c.cost) / std::max(whole.expected - c.expected, 1.0);
        Series& series = by_name_[name];
        series.logs.push_back(std::log(c.cost / c.expected) - std::log(std::max(rest, 1.0)));
        series.deviation.push_back(i);
      }
    }
  }

  std::optional<Hypothesis> Test(uint32_t name, const Series& series, const Hypothesis& start) const {
    const auto shift = TestStretch(series.logs, HighestStretch(series.logs, kRule.least), kRule);
    if (!shift) return std::nullopt;
    std::vector<std::pair<uint32_t, OperatorCost>> hits;
    double excess = 0;
    double time = 0;
    for (size_t k = shift->at.first; k < shift->at.last; ++k) {
      if (series.logs[k] < shift->Middle()) continue;
      const Deviation& d = deviations_[series.deviation[k]];
      const OperatorCosts names = table_.Of(d.step, kind_);
      hits.emplace_back(series.deviation[k], names.at(name));
      excess += hits.back().second.excess();
      // Of a device that idles most of the time, work may double and nobody feels it.
      const double step = IsGpu() ? static_cast<double>(scene_.trees.steps[d.step].duration()) : 0;
      time += std::max(WholeOf(d, names).expected, step - hits.back().second.excess());
    }
    if (hits.size() < kRule.fewest || excess < kFelt * time) return std::nullopt;
    Hypothesis h = start;
    h.trouble = Trouble::kSlowOperator;
    Fill(hits, h);
    if (!IsGpu() && IsNotFelt(scene_, h)) return std::nullopt;
    // Each operator had its chance.
    h.false_alarm = std::min(1.0, shift->false_alarm * static_cast<double>(by_name_.size()));
    return h;
  }

  void Fill(const std::vector<std::pair<uint32_t, OperatorCost>>& hits, Hypothesis& h) const {
    std::map<SlotKey, size_t> places;
    for (const auto& [i, c] : hits) {
      if (c.top >= kOnePlace * c.excess()) ++places[scene_.profiles[deviations_[i].step].slots[c.top_slot].key];
    }
    h.whole_operator =
        std::none_of(places.begin(), places.end(), [&](const auto& place) { return 2 * place.second > hits.size(); });
    double rest = 0;
    double rest_expected = 0;
    for (const auto& [i, c] : hits) {
      const Deviation& d = deviations_[i];
      const trace::Step& step = scene_.trees.steps[d.step];
      const Slot& slot = scene_.profiles[d.step].slots[c.top_slot];
      AddLoss(h, d.step, c.excess(), std::max(step.begin, slot.begin),
              std::min(step.end, slot.begin + std::max(slot.total, slot.largest)));
      NoteWorst(h, {slot.total, slot.begin, slot.span, scene_.normals[d.step].expected_total[c.top_slot], slot.key});
      rest += d.own - (IsGpu() ? 0 : c.cost);
      rest_expected += d.expected - (IsGpu() ? 0 : c.expected);
    }
    h.rest_ratio = rest / std::max(rest_expected, 1.0);
  }

  /// An operator takes what it calls takes: of those that lost about as much, the innermost.
  std::optional<Hypothesis> Innermost(std::vector<Hypothesis> found) const {
    Nanos most = 0;
    for (const Hypothesis& h : found) most = std::max(most, h.lost);
    const Hypothesis* best = nullptr;
    for (const Hypothesis& h : found) {
      if (static_cast<double>(h.lost) < kEqual * static_cast<double>(most)) continue;
      if (best == nullptr || Before(h, *best)) best = &h;
    }
    if (best == nullptr) return std::nullopt;
    return *best;
  }

  bool Before(const Hypothesis& a, const Hypothesis& b) const {
    const int deep_a = scene_.store.spans.depth[a.span];
    const int deep_b = scene_.store.spans.depth[b.span];
    // Equals by name: ids follow the order of the file and must not decide.
    return deep_a != deep_b ? deep_a > deep_b : scene_.store.name(a.span) < scene_.store.name(b.span);
  }

  const Scene& scene_;
  const OperatorTable& table_;
  SlotKey::Kind kind_;
  const std::vector<Deviation>& deviations_;
  std::map<uint32_t, Series> by_name_;
};

}  // namespace

std::optional<Hypothesis> FindShiftedOperator(const Scene& scene, const OperatorTable& table, SlotKey::Kind kind,
                                              const std::vector<Deviation>& deviations, const Hypothesis& start) {
  return Search(scene, table, kind, deviations).Run(start);
}

}  // namespace teller::locate
