#include "locate/own_excess.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include "locate/level_shift.hpp"
#include "locate/naming.hpp"
#include "locate/resources.hpp"
#include "ml/robust.hpp"

namespace teller::locate {

namespace {

constexpr size_t kFewestSteps = 8;     // that are judged: fewer say nothing about what is usual
constexpr double kLeastSpread = 0.02;  // of a typical step's time
constexpr double kMostSpreads = 20;    // no single value says more
constexpr double kStandsOut = 2;       // spreads
constexpr size_t kFewestCalls = 6;     // steps that call an operator
constexpr double kLeastShift = 0.2;    // of a logarithm: a fifth longer
constexpr double kVaries = 0.1;        // an operator at least, in calm steps
constexpr double kMostOfAll = 0.75;    // of the steps: beyond that nobody knows which level is the calm one
constexpr double kUpper = 0.9;         // quantile that the upper tail is read from
constexpr double kUpperZ = 1.2816;     // of the normal distribution
constexpr double kTail = 1.5;  // values so many spreads up are as rare as that power says, neighbours taken as one

constexpr size_t kKinds = 4;

/// Excess of one part over the steps of a process that have it.
using Values = std::vector<std::pair<uint32_t, double>>;  // (position among the steps, ns)

/// How many spreads each value lies above the usual, from 0. Steps without the part count as 0.
class Spreads {
 public:
  Spreads(const Values& values, size_t steps, double least) {
    std::vector<double> all(steps, 0.0);
    // A part that fewer than half of the steps have is usually not there.
    if (2 * values.size() >= steps) {
      for (const auto& [at, x] : values) all[at] = x;
      usual_ = ml::Quantile(all, 0.5);
      least = std::max(least, ml::RobustScale(all));
    }
    spread_ = std::max(least, 1.0);
  }
  double Of(double x) const { return std::clamp((x - usual_) / spread_, 0.0, kMostSpreads); }

 private:
  double usual_ = 0;
  double spread_ = 1;
};

/// Judged steps of each process, in order.
std::map<uint32_t, std::vector<uint32_t>> JudgedSteps(const Scene& scene) {
  std::map<uint32_t, std::vector<uint32_t>> of;
  for (uint32_t s = 0; s < scene.trees.steps.size(); ++s) {
    if (scene.normals[s].judged) of[scene.trees.steps[s].process.value()].push_back(s);
  }
  return of;
}

/// What one process lost, part by part.
class Process {
 public:
  Process(const Scene& scene, const std::vector<uint32_t>& steps) : scene_(scene), steps_(steps) {
    whole_.resize(steps.size());
    for (uint32_t i = 0; i < steps.size(); ++i) AddStep(i);
  }

  OwnExcess Sum() const {
    OwnExcess out;
    out.process = scene_.trees.steps[steps_.front()].process;
    const double least = kLeastSpread * ml::Quantile(expected_, 0.5);
    std::vector<double> weights;
    for (const auto& [part, values] : parts_) {
      const Spreads spreads(values, steps_.size(), least);
      double weight = 0;
      for (const auto& [at, x] : values) weight += std::max(x, 0.0) * spreads.Of(x);
      weights.push_back(weight);
      if (part == kGapPart) out.gap_weight = weight;
    }
    // Parts lie by ids, which follow the order of the files; that must not show in the last digit of a sum.
    std::sort(weights.begin(), weights.end());
    out.weight = std::accumulate(weights.begin(), weights.end(), 0.0);
    Values whole;
    for (uint32_t i = 0; i < whole_.size(); ++i) whole.emplace_back(i, whole_[i]);
    const Spreads spreads(whole, steps_.size(), least);
    for (const auto& [at, x] : whole) {
      if (spreads.Of(x) < kStandsOut || x <= 0) continue;
      out.steps.emplace_back(steps_[at], static_cast<Nanos>(x));
      out.lost += static_cast<Nanos>(x);
    }
    std::stable_sort(out.steps.begin(), out.steps.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    return out;
  }

 private:
  static constexpr uint64_t kGapPart = ~uint64_t{0};

  void AddStep(uint32_t i) {
    const StepProfile& profile = scene_.profiles[steps_[i]];
    const StepNormal& normal = scene_.normals[steps_[i]];
    double expected = 0;
    for (size_t k = 0; k < profile.slots.size();) {
      // Slots lie by name.
      const uint32_t name = profile.slots[k].key.name;
      std::array<double, kKinds> excess{};
      for (; k < profile.slots.size() && profile.slots[k].key.name == name; ++k) {
        const Slot& slot = profile.slots[k];
        if (WaitsForOthers(scene_, slot)) continue;
        excess[static_cast<size_t>(slot.key.kind)] += static_cast<double>(slot.cost - normal.expected[k]);
        expected += static_cast<double>(normal.expected[k]);
      }
      for (size_t kind = 0; kind < kKinds; ++kind) Add(uint64_t{name} * kKinds + kind, i, excess[kind]);
    }
    if (profile.gap > 0) Add(kGapPart, i, static_cast<double>(profile.gap - normal.expected_gap));
    expected_.push_back(expected);
  }

  void Add(uint64_t part, uint32_t i, double excess) {
    if (excess == 0) return;
    parts_[part].emplace_back(i, excess);
    whole_[i] += excess;
  }

  const Scene& scene_;
  const std::vector<uint32_t>& steps_;
  std::map<uint64_t, Values> parts_;
  std::vector<double> whole_;     ///< excess of each step
  std::vector<double> expected_;  ///< normal time of each step
};

/// An operator over the steps that call it.
struct Series {
  std::vector<double> logs;  ///< of cost to normal, against the rest of the step
  std::vector<double> lost;  ///< parallel: ns
  std::vector<uint32_t> steps;
  uint32_t span = kNoSpan;
  Nanos worst = -1;
};

class Operators {
 public:
  explicit Operators(const Scene& scene) : scene_(scene) {}

  void AddStep(uint32_t s) {
    if (!scene_.normals[s].same_shape || scene_.profiles[s].opaque) return;
    std::map<std::pair<SlotKey::Kind, uint32_t>, Cost> names;
    const StepProfile& profile = scene_.profiles[s];
    for (size_t k = 0; k < profile.slots.size(); ++k) {
      const Slot& slot = profile.slots[k];
      const bool work = slot.key.kind == SlotKey::Kind::kOp || slot.key.kind == SlotKey::Kind::kGpu;
      if (!work || WaitsForOthers(scene_, slot)) continue;
      const std::pair key{slot.key.kind, slot.key.name};
      Cost& cost = names[key];
      cost.took += static_cast<double>(slot.cost);
      cost.expected += static_cast<double>(scene_.normals[s].expected[k]);
      Series& series = by_name_[key];
      const Nanos excess = slot.cost - scene_.normals[s].expected[k];
      if (excess <= series.worst) continue;
      series.worst = excess;
      series.span = slot.span;
    }
    const std::array<Cost, 2> whole = {HostCost(scene_, s), DeviceCost(scene_, s)};
    for (const auto& [key, cost] : names) {
      if (cost.took <= 0 || cost.expected <= 0) continue;
      const Cost& all = whole[key.first == SlotKey::Kind::kGpu ? 1 : 0];
      const double rest = (all.took - cost.took) / std::max(all.expected - cost.expected, 1.0);
      Series& series = by_name_[key];
      series.logs.push_back(std::log(cost.took / cost.expected) - std::log(std::max(rest, 1.0)));
      series.lost.push_back(cost.took - cost.expected);
      series.steps.push_back(s);
    }
  }

  std::vector<OperatorExcess> Rank() const {
    std::vector<OperatorExcess> out;
    for (const auto& [key, series] : by_name_) {
      OperatorExcess excess = Weigh(series);
      excess.kind = key.first;
      if (excess.weight > 0) out.push_back(std::move(excess));
    }
    // Equals by name: ids follow the order of the file and must not decide.
    std::sort(out.begin(), out.end(), [&](const auto& a, const auto& b) {
      return a.weight != b.weight ? a.weight > b.weight : scene_.store.name(a.span) < scene_.store.name(b.span);
    });
    return out;
  }

 private:
  static OperatorExcess Weigh(const Series& series) {
    OperatorExcess out;
    out.span = series.span;
    if (series.logs.size() < kFewestCalls) return out;
    const Stretch at = HighestStretch(series.logs, kLeastShift);
    const auto [inside, outside] = Part(series.logs, at);
    const auto most = kMostOfAll * static_cast<double>(series.logs.size());
    if (inside.size() < 2 || outside.size() <= 2 || static_cast<double>(inside.size()) > most) return out;
    const double calm = ml::Quantile(outside, 0.5);
    const double spread =
        std::max({kVaries, ml::RobustScale(outside), (ml::Quantile(outside, kUpper) - calm) / kUpperZ});
    // It may begin and end anywhere.
    double surprise = -std::log(3 * static_cast<double>(series.logs.size()));
    double lost = 0;
    for (size_t i = at.first; i < at.last; ++i) {
      surprise += kTail * std::log(std::clamp((series.logs[i] - calm) / spread, 1.0, kMostSpreads));
      lost += series.lost[i];
      if (series.lost[i] > 0) out.steps.emplace_back(series.steps[i], static_cast<Nanos>(series.lost[i]));
    }
    if (surprise <= 0 || lost <= 0) return out;
    std::stable_sort(out.steps.begin(), out.steps.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    out.lost = static_cast<Nanos>(lost);
    out.weight = lost * surprise * surprise;
    return out;
  }

  const Scene& scene_;
  std::map<std::pair<SlotKey::Kind, uint32_t>, Series> by_name_;
};

}  // namespace

std::vector<OwnExcess> RankOwnExcess(const Scene& scene) {
  std::vector<OwnExcess> out;
  for (const auto& [process, steps] : JudgedSteps(scene)) {
    if (steps.size() < kFewestSteps) continue;
    OwnExcess excess = Process(scene, steps).Sum();
    if (excess.weight > 0) out.push_back(std::move(excess));
  }
  const auto who = [&](const OwnExcess& excess) {
    return std::pair(scene.store.processes[excess.process.value()].rank, ProcessName(scene.store, excess.process));
  };
  std::stable_sort(out.begin(), out.end(), [&](const auto& a, const auto& b) {
    return a.weight != b.weight ? a.weight > b.weight : who(a) < who(b);
  });
  return out;
}

std::vector<OperatorExcess> RankOperators(const Scene& scene, trace::ProcessRow process) {
  Operators operators(scene);
  const auto judged = JudgedSteps(scene);
  const auto found = judged.find(process.value());
  if (found == judged.end() || found->second.size() < kFewestSteps) return {};
  for (const uint32_t s : found->second) operators.AddStep(s);
  return operators.Rank();
}

}  // namespace teller::locate
