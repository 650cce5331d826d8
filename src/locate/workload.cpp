#include "locate/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "locate/naming.hpp"
#include "locate/transfer_shift.hpp"
#include "ml/robust.hpp"

namespace teller::locate {

namespace {

constexpr double kMoreWork = 1.3;  // a step that touches this much more than the other ranks' at the time
constexpr double kLongStep = 3.0;  // times the median of its process
constexpr size_t kMostNotes = 8;   // of one kind

/// First and last step of each process in Trees::steps; they are contiguous and in order.
std::vector<std::pair<uint32_t, uint32_t>> Processes(const Scene& scene) {
  std::vector<std::pair<uint32_t, uint32_t>> ranges;
  for (uint32_t s = 0; s < scene.trees.steps.size(); ++s) {
    if (s == 0 || scene.trees.steps[s].process != scene.trees.steps[s - 1].process) ranges.emplace_back(s, s);
    ranges.back().second = s + 1;
  }
  return ranges;
}

/// Work of the other ranks' steps that overlap `step` in time; empty where it is not known.
std::vector<double> OthersWork(const Scene& scene, const std::vector<std::pair<uint32_t, uint32_t>>& ranges,
                               const trace::Step& step) {
  std::vector<double> work;
  for (const auto& [first, last] : ranges) {
    const auto& steps = scene.trees.steps;
    if (steps[first].process == step.process) continue;
    auto it = std::lower_bound(steps.begin() + first, steps.begin() + last, step.begin,
                               [](const trace::Step& other, Nanos t) { return other.end <= t; });
    for (; it != steps.begin() + last && it->begin < step.end; ++it) {
      if (it->work < 0) continue;
      const Nanos overlap = std::min(it->end, step.end) - std::max(it->begin, step.begin);
      if (2 * overlap > std::min(it->duration(), step.duration())) work.push_back(it->work);
    }
  }
  return work;
}

bool HasMoreWork(const Scene& scene, const std::vector<std::pair<uint32_t, uint32_t>>& ranges,
                 const trace::Step& step) {
  if (step.work < 0) return false;
  const std::vector<double> others = OthersWork(scene, ranges, step);
  return !others.empty() && step.work > kMoreWork * ml::Quantile(others, 0.5);
}

/// True when the claim holds for the first steps of a process's trace and for hardly anything later. What runs for the
/// first time loads code, compiles and fills caches; without a calm step before it a fault cannot be told from that.
bool IsWarmUp(const Scene& scene, const std::vector<std::pair<uint32_t, uint32_t>>& ranges, const Hypothesis& h) {
  constexpr uint32_t kFewSteps = 4;   // that a program warms up in,
  constexpr uint32_t kSomeSteps = 8;  // or one in so many of those traced
  constexpr double kNearlyAll = 0.9;  // of what is lost; a busy machine adds a little elsewhere
  const bool own = h.trouble != Trouble::kSlowTransfer && h.trouble != Trouble::kLateRank && !h.in_gap;
  if (!own || h.steps.empty()) return false;
  const uint32_t process = h.process.value();
  for (const auto& [first, last] : ranges) {
    if (scene.trees.steps[first].process.value() != process) continue;
    uint32_t judged = first;  // the first step that could be accused
    while (judged < last && !scene.normals[judged].judged) ++judged;
    const uint32_t warm = first + std::max(kFewSteps, (last - first) / kSomeSteps);
    bool from_the_start = false;
    Nanos inside = 0;
    for (size_t i = 0; i < h.steps.size(); ++i) {
      from_the_start = from_the_start || h.steps[i] <= judged;
      inside += h.steps[i] <= warm ? h.lost_in[i] : 0;
    }
    return from_the_start && static_cast<double>(inside) >= kNearlyAll * static_cast<double>(h.lost);
  }
  return false;
}

/// When the stages that send to a process began their steps. Where all send to all, a table by receiver would hold each
/// step once for every other rank.
class BeginsBefore {
 public:
  explicit BeginsBefore(const Scene& scene) {
    std::set<uint32_t> sending;
    for (const trace::Collective& collective : scene.trees.collectives) {
      const auto route = RouteOf(scene.store, collective);
      if (!route) continue;
      senders_[route->to.value()].insert(route->from.value());
      sending.insert(route->from.value());
    }
    for (const trace::Step& step : scene.trees.steps) {
      if (sending.count(step.process.value()) == 0) continue;
      const auto [it, fresh] = begins_.try_emplace(Key(step.process.value(), step.index), step.begin);
      it->second = std::max(it->second, step.begin);
    }
  }

  /// Of the last sender to begin the step of this index; none where nobody sends or no sender has that step.
  std::optional<Nanos> Of(trace::ProcessRow receiver, uint32_t index) const {
    std::optional<Nanos> last;
    const auto senders = senders_.find(receiver.value());
    if (senders == senders_.end()) return last;
    for (const uint32_t sender : senders->second) {
      const auto begin = begins_.find(Key(sender, index));
      if (begin != begins_.end()) last = std::max(last.value_or(begin->second), begin->second);
    }
    return last;
  }

 private:
  static uint64_t Key(uint32_t process, uint32_t index) { return uint64_t{process} << 32 | index; }

  std::map<uint32_t, std::set<uint32_t>> senders_;  ///< by receiver
  std::unordered_map<uint64_t, Nanos> begins_;      ///< by sender and index
};

/// True for gaps of a stage in which its next batch was not even under way: the stage before had not begun it either.
bool WasWithoutWork(const Scene& scene, const BeginsBefore& begins_before, const Hypothesis& h) {
  if (!h.in_gap || h.steps.empty()) return false;
  Nanos explained = 0;
  for (size_t i = 0; i < h.steps.size(); ++i) {
    const trace::Step& step = scene.trees.steps[h.steps[i]];
    const auto before = begins_before.Of(step.process, step.index);
    if (!before) continue;
    const Nanos idle_since = step.begin - scene.profiles[h.steps[i]].gap;
    const Nanos left_waiting = step.begin - std::max(*before, idle_since);
    explained += std::clamp<Nanos>(h.lost_in[i] - std::max<Nanos>(left_waiting, 0), 0, h.lost_in[i]);
  }
  return 2 * explained >= h.lost;
}

}  // namespace

void DropExplained(const Scene& scene, std::vector<Hypothesis>& claims, std::vector<trace::Note>& notes) {
  const auto ranges = Processes(scene);
  const BeginsBefore begins_before(scene);
  std::erase_if(claims, [&](const Hypothesis& h) { return WasWithoutWork(scene, begins_before, h); });
  std::set<uint32_t> warming;
  std::erase_if(claims, [&](const Hypothesis& h) {
    if (!IsWarmUp(scene, ranges, h)) return false;
    if (warming.insert(h.process.value()).second) {
      notes.push_back({fmt::format("the first steps of {} take up to {:.0f} ms longer and no later one does: what runs "
                                   "for the first time warms up",
                                   ProcessName(scene.store, h.process), static_cast<double>(h.worst) / 1e6),
                       h.onset, h.end});
    }
    return true;
  });
  std::erase_if(claims, [&](const Hypothesis& h) {
    const bool left_late = h.trouble == Trouble::kPause && !h.collectives.empty();
    if (h.trouble != Trouble::kStarvation && h.trouble != Trouble::kLateRank && h.trouble != Trouble::kSlowTransfer &&
        !left_late)
      return false;
    size_t more = 0;
    size_t all = 0;
    for (uint32_t s = 0; s < scene.trees.steps.size(); ++s) {
      const trace::Step& step = scene.trees.steps[s];
      if (step.begin >= h.end || step.end <= h.onset) continue;
      if (h.trouble == Trouble::kSlowTransfer ? false : step.process != h.process) continue;
      ++all;
      more += HasMoreWork(scene, ranges, step);
    }
    const bool explained = all > 0 && 2 * more > all;
    if (explained) {
      notes.push_back(
          {fmt::format(
               "rank {} takes longer because it has more to compute than the others at that time; they wait for it and "
               "nothing is broken",
               h.rank.value_or(-1)),
           h.onset, h.end});
    }
    return explained;
  });
}

void NoteLongSteps(const Scene& scene, std::vector<trace::Note>& notes) {
  std::map<uint32_t, std::vector<double>> durations;
  std::map<uint32_t, std::vector<double>> works;
  for (const trace::Step& step : scene.trees.steps) {
    durations[step.process.value()].push_back(static_cast<double>(step.duration()));
    works[step.process.value()].push_back(step.new_tokens > 0 ? static_cast<double>(step.new_tokens) : step.work);
  }
  std::map<uint32_t, std::pair<double, double>> usual;  // process -> (duration, work)
  for (const auto& [process, values] : durations)
    usual[process] = {ml::Quantile(values, 0.5), ml::Quantile(works[process], 0.5)};
  size_t written = 0;
  for (uint32_t s = 0; s < scene.trees.steps.size() && written < kMostNotes; ++s) {
    const trace::Step& step = scene.trees.steps[s];
    const auto& [median, usual_work] = usual[step.process.value()];
    const double work = step.new_tokens > 0 ? static_cast<double>(step.new_tokens) : step.work;
    if (static_cast<double>(step.duration()) < kLongStep * median || work < kLongStep * usual_work || usual_work <= 0)
      continue;
    notes.push_back({fmt::format("step {} ({}) takes {:.0f} ms where {:.0f} ms is usual because it computes {:.0f} "
                                 "times as much: its shape explains it",
                                 step.index, step.name, static_cast<double>(step.duration()) / 1e6, median / 1e6,
                                 work / usual_work),
                     step.begin, step.end});
    ++written;
  }
}

}  // namespace teller::locate
