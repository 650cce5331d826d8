#include "locate/peer_shift.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "locate/deviation.hpp"
#include "locate/level_shift.hpp"
#include "locate/maybe.hpp"
#include "locate/parts.hpp"
#include "locate/program.hpp"
#include "locate/resources.hpp"
#include "ml/robust.hpp"

namespace teller::locate {

namespace {

// Where a device computes, its host and its kernels take the same time again and again.
constexpr ShiftRule kDeviceHostRule{.least = 0.3, .spread_floor = 0.06, .least_z = 4, .fewest = 4};
constexpr ShiftRule kComputingHostRule{.least = 0.405, .spread_floor = 0.09, .least_z = 4, .fewest = 4};
constexpr ShiftRule kDeviceRule{.least = 0.1, .spread_floor = 0.02, .least_z = 4, .fewest = 4};
constexpr double kFelt = 0.05;          // of the steps' time: less is nobody's trouble
constexpr double kSameWork = 1.1;       // times as much to compute, at most, is the same step of another rank
constexpr double kOfItself = 0.5;       // of the shift: seen against the rank's own other steps too
constexpr double kMostWithPeers = 0.5;  // of a rank's steps may lack a peer
constexpr size_t kMostPeers = 64;       // that a step is compared with: of a thousand ranks those tell what is usual

constexpr double kSudden = 4;  // times as long as usual: a few such steps are enough
constexpr size_t kFewSteps = 3;
constexpr size_t kFewestToCompare = 6;

enum class Resource : uint8_t { kHost, kDevice };

/// One rank's use of a resource, step after step.
struct Series {
  bool with_peers = false;
  std::vector<double> logs;     ///< of what it took to what its peers took, or to normal where it has none
  std::vector<double> own;      ///< parallel: of what it took to its own normal
  std::vector<uint32_t> steps;  ///< parallel: index into Trees::steps
  std::vector<double> took;     ///< parallel: ns
};

class Search {
 public:
  explicit Search(const Scene& scene) : scene_(scene), programs_(scene.trees, scene.profiles) {
    const auto& steps = scene.trees.steps;
    for (uint32_t s = 0; s < steps.size(); ++s) {
      host_.push_back(HostCost(scene, s));
      device_.push_back(DeviceCost(scene, s));
      if (!scene.normals[s].judged || scene.profiles[s].opaque) continue;
      of_process_[steps[s].process.value()].push_back(s);
      if (steps[s].rank.has_value()) of_index_[steps[s].index].push_back(s);
    }
  }

  std::vector<Hypothesis> Run() {
    std::vector<Hypothesis> out;
    for (const auto& [process, steps] : of_process_) {
      const bool device = UsesDevice(scene_, trace::ProcessRow(process));
      for (const Resource resource : {Resource::kHost, Resource::kDevice}) {
        if (resource == Resource::kDevice && !device) continue;
        const ShiftRule& rule = resource == Resource::kDevice ? kDeviceRule
                                : device                      ? kDeviceHostRule
                                                              : kComputingHostRule;
        if (auto h = Test(resource, steps, rule)) out.push_back(std::move(*h));
      }
      if (auto h = TestFewSteps(steps, device)) out.push_back(std::move(*h));
    }
    return out;
  }

 private:
  const Cost& Of(Resource resource, uint32_t step) const {
    return resource == Resource::kHost ? host_[step] : device_[step];
  }

  /// What other ranks took in the same step, the median; 0 where there is none with as much to do.
  double Peers(Resource resource, uint32_t s) const {
    const trace::Step& step = scene_.trees.steps[s];
    const auto found = of_index_.find(step.index);
    if (!step.rank || found == of_index_.end()) return 0;
    std::vector<double> took;
    const std::vector<uint32_t>& all = found->second;
    const size_t stride = 1 + (all.size() - 1) / kMostPeers;
    for (size_t k = 0; k < all.size(); k += stride) {
      const trace::Step& theirs = scene_.trees.steps[all[k]];
      const bool same = step.work < 0 || theirs.work < 0 ||
                        std::max(step.work, theirs.work) <= kSameWork * std::min(step.work, theirs.work);
      if (theirs.process == step.process || theirs.kind != step.kind || !same) continue;
      if (!programs_.Same(theirs.process, step.process)) continue;
      took.push_back(Of(resource, all[k]).took);
    }
    return ml::Quantile(took, 0.5);
  }

  /// Against the peers, where most steps have some.
  Series Collect(Resource resource, const std::vector<uint32_t>& steps) const {
    Series against_peers{.with_peers = true};
    Series alone;
    for (const uint32_t s : steps) {
      const Cost cost = Of(resource, s);
      if (cost.took <= 0 || cost.expected <= 0) continue;
      const auto add = [&](Series& series, double usual) {
        series.logs.push_back(std::log(cost.took / usual));
        series.own.push_back(std::log(cost.took / cost.expected));
        series.steps.push_back(s);
        series.took.push_back(cost.took);
      };
      if (const double peers = Peers(resource, s); peers > 0) add(against_peers, peers);
      if (scene_.normals[s].same_shape) add(alone, cost.expected);
    }
    const auto fewest = kMostWithPeers * static_cast<double>(steps.size());
    return static_cast<double>(against_peers.logs.size()) >= fewest ? against_peers : alone;
  }

  std::optional<Hypothesis> Test(Resource resource, const std::vector<uint32_t>& steps, const ShiftRule& rule) const {
    const Series series = Collect(resource, steps);
    // A host that is slower with nobody to compare it with is told by the search for stretches.
    if (resource == Resource::kHost && !series.with_peers) return std::nullopt;
    const auto shift = TestStretch(series.logs, HighestStretch(series.logs, rule.least), rule);
    if (!shift || Rise(series.own, shift->at) < kOfItself * shift->by) return std::nullopt;
    Hypothesis h = Start(resource == Resource::kHost ? Trouble::kStarvation : Trouble::kSlowDevice, steps);
    double whole = 0;
    for (size_t k = shift->at.first; k < shift->at.last; ++k) {
      if (series.logs[k] < shift->Middle()) continue;
      const trace::Step& step = scene_.trees.steps[series.steps[k]];
      AddStep(step, series.steps[k], series.took[k] * (1 - std::exp(shift->calm - series.logs[k])), h);
      whole += static_cast<double>(step.duration());
    }
    if (static_cast<double>(h.lost) < kFelt * whole || !IsBroad(resource, h.steps, shift->by)) return std::nullopt;
    h.even = IsEven(resource, series.steps, h.steps);
    h.rest_ratio = std::exp(shift->by);
    // Each rank and either resource had its chance.
    h.false_alarm = std::min(1.0, shift->false_alarm * 2 * static_cast<double>(of_process_.size()));
    if (h.even && MayShareItsCore(scene_, h, shift->by)) h.false_alarm = std::max(h.false_alarm, kMaybe);
    return h;
  }

  /// A few steps that are stretched so much and so evenly that no scheduler did it: it stops a thread, here and there.
  std::optional<Hypothesis> TestFewSteps(const std::vector<uint32_t>& steps, bool device) const {
    const Series series = Collect(Resource::kHost, steps);
    if (series.logs.size() < kFewestToCompare) return std::nullopt;
    const double calm = ml::Quantile(series.logs, 0.5);
    std::vector<size_t> hits;
    double noise = 0;
    std::vector<double> took;
    for (size_t k = 0; k < series.logs.size(); ++k) {
      took.push_back(series.took[k]);
      const bool hit = std::min(series.logs[k], series.own[k]) - calm >= std::log(kSudden);
      if (hit) hits.push_back(k);
      if (!hit) noise = std::max(noise, series.took[k] * (1 - std::exp(calm - series.logs[k])));
    }
    if (hits.empty() || hits.size() > kFewSteps || hits.front() < 2) return std::nullopt;
    const double typical = ml::Quantile(took, 0.5);
    const double least = std::max(typical, static_cast<double>(PauseFloor(device)));
    Hypothesis h = Start(Trouble::kStarvation, steps);
    h.even = true;
    double smallest = 0;
    for (const size_t k : hits) {
      const trace::Step& step = scene_.trees.steps[series.steps[k]];
      const double lost = series.took[k] * (1 - std::exp(calm - series.logs[k]));
      const std::vector<uint32_t> one = {series.steps[k]};
      if (lost < least || !IsBroad(Resource::kHost, one, series.logs[k] - calm)) return std::nullopt;
      AddStep(step, series.steps[k], lost, h);
      smallest = smallest == 0 ? lost : std::min(smallest, lost);
    }
    if (!IsEven(Resource::kHost, series.steps, h.steps)) return std::nullopt;
    const double few = std::max(1.0, 20.0 / static_cast<double>(series.logs.size()));
    h.false_alarm = std::min(
        1.0, few * static_cast<double>(of_process_.size()) * std::pow(smallest / std::max(noise, 0.1 * typical), -3.0));
    return h;
  }

  Hypothesis Start(Trouble trouble, const std::vector<uint32_t>& steps) const {
    Hypothesis h;
    h.trouble = trouble;
    h.process = scene_.trees.steps[steps.front()].process;
    h.rank = scene_.store.processes[h.process.value()].rank;
    return h;
  }

  static void AddStep(const trace::Step& step, uint32_t index, double lost, Hypothesis& h) {
    AddLoss(h, index, lost, step.begin, step.end);
    NoteWorst(h, {.length = step.duration(), .begin = step.begin, .usual = step.duration() - static_cast<Nanos>(lost)});
  }

  /// How far the values of a stretch lie above the others.
  static double Rise(const std::vector<double>& values, Stretch at) {
    const auto [inside, outside] = Part(values, at);
    return ml::Quantile(inside, 0.5) - ml::Quantile(outside, 0.5);
  }

  /// Whether most of what these steps consist of takes longer, not one part alone.
  bool IsBroad(Resource resource, const std::vector<uint32_t>& steps, double by) const {
    std::vector<Parts> parts;
    for (const uint32_t s : steps) parts.push_back(PartsOf(resource, s));
    return AreBroad(parts, std::exp(by));
  }

  bool IsEven(Resource resource, const std::vector<uint32_t>& all, const std::vector<uint32_t>& hits) const {
    std::vector<Parts> inside;
    std::vector<Parts> outside;
    for (const uint32_t s : all) {
      const bool hit = std::binary_search(hits.begin(), hits.end(), s);
      (hit ? inside : outside).push_back(PartsOf(resource, s));
    }
    return AreStretchedAlike(inside, outside);
  }

  /// A step's operators or kernels, by name.
  Parts PartsOf(Resource resource, uint32_t s) const {
    std::map<uint32_t, Cost> names;
    const auto& slots = scene_.profiles[s].slots;
    for (size_t k = 0; k < slots.size(); ++k) {
      const SlotKey::Kind kind = slots[k].key.kind;
      const bool device = kind == SlotKey::Kind::kGpu;
      if (device != (resource == Resource::kDevice) || kind == SlotKey::Kind::kGap) continue;
      if (!device && WaitsForOthers(scene_, slots[k])) continue;
      Cost& cost = names[slots[k].key.name];
      cost.took += static_cast<double>(slots[k].cost);
      cost.expected += static_cast<double>(scene_.normals[s].expected[k]);
    }
    Parts parts;
    for (const auto& [name, cost] : names) parts.push_back(cost);
    return parts;
  }

  const Scene& scene_;
  Programs programs_;
  std::vector<Cost> host_;                                ///< by step
  std::vector<Cost> device_;                              ///< by step
  std::map<uint32_t, std::vector<uint32_t>> of_process_;  ///< judged steps in order
  std::map<uint32_t, std::vector<uint32_t>> of_index_;    ///< judged steps of all ranks with this index
};

}  // namespace

std::vector<Hypothesis> SearchPeerShifts(const Scene& scene) {
  return Search(scene).Run();
}

}  // namespace teller::locate
