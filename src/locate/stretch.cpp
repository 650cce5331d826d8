#include "locate/stretch.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "locate/level_shift.hpp"
#include "locate/maybe.hpp"
#include "locate/parts.hpp"
#include "locate/resources.hpp"
#include "ml/robust.hpp"

namespace teller::locate {

namespace {

constexpr ShiftRule kRule{.least = 0.405, .spread_floor = 0.09, .least_z = 4, .fewest = 4, .separated = false};
// Of a step without parts nothing says whether all of it is stretched; a growing context makes it longer too.
constexpr double kLeastOfOnePart = 0.6;  // logarithm
constexpr size_t kFewParts = 4;
constexpr double kStretchedSteps = 3.0;  // in all it costs at least this many typical steps
constexpr double kLeastLost = 50e6;      // ns, and this where the host computes: less is a busy machine's daily life
constexpr double kLargePart = 0.01;      // of a step

class Search {
 public:
  Search(const Scene& scene, const std::vector<Deviation>& deviations) : scene_(scene), deviations_(deviations) {}

  std::optional<Hypothesis> Find(Hypothesis h, double typical) {
    std::vector<double> logs;
    for (const Deviation& d : deviations_) {
      const Cost host = HostCost(scene_, d.step);
      own_.push_back(std::max(host.took, 1.0));
      logs.push_back(std::log(own_.back() / std::max(host.expected, 1.0)));
    }
    const Stretch at = HighestStretch(logs, kRule.least);
    Compare(at);
    const auto shift = TestStretch(logs_, compared_at_, kRule);
    if (!shift) return std::nullopt;
    std::vector<const Deviation*> hits;
    std::vector<const Deviation*> others;
    for (size_t k = 0; k < logs_.size(); ++k) {
      const bool inside = k >= shift->at.first && k < shift->at.last;
      if (!inside || logs_[k] >= shift->Middle()) (inside ? hits : others).push_back(&deviations_[compared_[k]]);
    }
    const std::vector<Parts> parts = PartsOf(hits);
    const bool few = AreFew(parts);
    const bool device = UsesDevice(scene_, h.process);
    if (few ? shift->by < kLeastOfOnePart : !AreBroad(parts, std::exp(shift->by))) return std::nullopt;
    AddAll(compared_[shift->at.first], compared_[shift->at.last - 1], *shift, h);
    const double least = device ? 0 : kLeastLost;
    if (static_cast<double>(h.lost) < std::max(kStretchedSteps * typical, least) || !Matters(h)) return std::nullopt;
    h.even = !few && AreStretchedAlike(parts, PartsOf(others));
    h.false_alarm = shift->false_alarm;
    if ((few || h.even) && MayShareItsCore(scene_, h, shift->by)) h.false_alarm = std::max(h.false_alarm, kMaybe);
    return h;
  }

 private:
  /// Of a step that waits for the device most of the time, the host's part may double and nobody feels it.
  bool Matters(const Hypothesis& h) const {
    constexpr Nanos kPart = 7;  // of the steps' time, one in so many
    Nanos all = 0;
    for (const uint32_t s : h.steps) all += scene_.trees.steps[s].duration() / kPart;
    return h.lost >= all;
  }

  /// What makes steps equal, as far as it is known; a growing context changes sizes slowly.
  using Shape = std::tuple<trace::StepKind, int64_t, int64_t, int64_t>;
  Shape ShapeOf(const Deviation& d) const {
    const trace::Step& step = scene_.trees.steps[d.step];
    const int64_t size = step.new_tokens >= 0 || step.work <= 0 ? 0 : static_cast<int64_t>(10 * std::log(step.work));
    return {step.kind, step.new_tokens, step.decode_requests, size};
  }

  /// Fills `logs_` with own time against that of equal steps outside the stretch. Steps that have none tell nothing.
  void Compare(Stretch at) {
    constexpr size_t kFewestEqual = 2;
    std::map<Shape, std::vector<double>> outside;
    for (size_t i = 0; i < deviations_.size(); ++i) {
      if (i < at.first || i >= at.last) outside[ShapeOf(deviations_[i])].push_back(std::log(own_[i]));
    }
    std::map<Shape, double> usual;
    for (const auto& [shape, logs] : outside) {
      if (logs.size() >= kFewestEqual) usual[shape] = ml::Quantile(logs, 0.5);
    }
    for (size_t i = 0; i < deviations_.size(); ++i) {
      if (i == at.first) compared_at_.first = logs_.size();
      if (i == at.last) compared_at_.last = logs_.size();
      const auto found = usual.find(ShapeOf(deviations_[i]));
      if (found == usual.end()) continue;
      logs_.push_back(std::log(own_[i]) - found->second);
      compared_.push_back(static_cast<uint32_t>(i));
    }
    if (at.last == deviations_.size()) compared_at_.last = logs_.size();
  }

  /// All steps of the stretch but those that are seen to be as usual; of those that cannot be compared it is assumed
  /// that they lost as large a part.
  void AddAll(uint32_t first, uint32_t last, const LevelShift& shift, Hypothesis& h) const {
    const double lost_part = 1 - std::exp(-shift.by);
    size_t k = 0;
    for (uint32_t i = first; i <= last; ++i) {
      const Deviation& d = deviations_[i];
      while (k < compared_.size() && compared_[k] < i) ++k;
      const bool compared = k < compared_.size() && compared_[k] == i;
      if (compared && logs_[k] < shift.Middle()) continue;
      const double part = compared ? 1 - std::exp(shift.calm - logs_[k]) : lost_part;
      Add(d, own_[i] * part, h);
    }
  }

  void Add(const Deviation& d, double lost, Hypothesis& h) const {
    const trace::Step& step = scene_.trees.steps[d.step];
    AddLoss(h, d.step, lost + d.gap_lost, step.begin, step.end);
    if (step.duration() <= h.worst) return;
    h.worst = step.duration();
    h.worst_begin = step.begin;
    h.usual = step.duration() - static_cast<Nanos>(lost);
  }

  /// Places of a step that matter.
  Parts PartsOf(const Deviation& d) const {
    Parts parts;
    const StepProfile& p = scene_.profiles[d.step];
    for (size_t k = 0; k < p.slots.size(); ++k) {
      const auto expected = static_cast<double>(scene_.normals[d.step].expected[k]);
      const SlotKey::Kind kind = p.slots[k].key.kind;
      if ((kind != SlotKey::Kind::kOp && kind != SlotKey::Kind::kHost) || WaitsForOthers(scene_, p.slots[k])) continue;
      if (expected < kLargePart * d.expected) continue;
      parts.push_back({static_cast<double>(p.slots[k].cost), expected});
    }
    return parts;
  }

  std::vector<Parts> PartsOf(const std::vector<const Deviation*>& steps) const {
    std::vector<Parts> parts;
    for (const Deviation* d : steps) parts.push_back(PartsOf(*d));
    return parts;
  }

  static bool AreFew(const std::vector<Parts>& steps) {
    std::vector<double> counts;
    for (const Parts& parts : steps) counts.push_back(static_cast<double>(parts.size()));
    return ml::Quantile(counts, 0.5) < static_cast<double>(kFewParts);
  }

  const Scene& scene_;
  const std::vector<Deviation>& deviations_;
  std::vector<double> own_;         ///< parallel to the deviations: time that is the process's own, ns
  std::vector<double> logs_;        ///< of own time to that of equal steps outside the stretch
  std::vector<uint32_t> compared_;  ///< parallel: index of the deviation
  Stretch compared_at_;             ///< the stretch, in `logs_`
};

}  // namespace

std::optional<Hypothesis> FindStretch(const Scene& scene, Hypothesis start, const std::vector<Deviation>& deviations,
                                      double typical) {
  return Search(scene, deviations).Find(std::move(start), typical);
}

}  // namespace teller::locate
