#include "locate/transfer_shift.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <tuple>

#include "locate/level_shift.hpp"
#include "ml/robust.hpp"
#include "tree/peer_pairs.hpp"

namespace teller::locate {

namespace {

constexpr ShiftRule kRule{.least = 0.4, .spread_floor = 0.1, .least_z = 4, .fewest = 4};
constexpr double kFelt = 0.05;      // of the steps' time: less is nobody's trouble
constexpr size_t kFewestEqual = 4;  // collectives of a kind, to know what is usual

/// A transfer that the kernels of all its ranks carry, and the steps that launched them.
struct Carried {
  double transfer = 0;  ///< ns
  double usual = 0;
  std::vector<uint32_t> steps;
};

using BySize = std::map<int64_t, std::vector<std::pair<uint32_t, Carried>>>;  // elements -> (index of the step, it)

/// What a transfer of any size may take when all is well, from those of the sizes that were met: less data never takes
/// longer, and more data at most in proportion. So a size that was only met while the link was slow is known too.
class UsualOfSize {
 public:
  explicit UsualOfSize(const BySize& sizes) {
    for (const auto& [elements, list] : sizes) {
      if (list.size() < kFewestEqual) continue;
      std::vector<double> all;
      for (const auto& [index, carried] : list) all.push_back(carried.transfer);
      const double low = std::max(1.0, ml::Quantile(all, 0.25));
      known_[elements] = {low, elements > 0 ? low / static_cast<double>(elements) : 0};
    }
    // Each size is bounded by all others.
    double least = 0;
    for (auto it = known_.rbegin(); it != known_.rend() && it->first > 0; ++it) {
      least = least == 0 ? it->second.low : std::min(least, it->second.low);
      it->second.low = least;
    }
    least = 0;
    for (auto it = known_.upper_bound(0); it != known_.end(); ++it) {
      least = least == 0 ? it->second.each : std::min(least, it->second.each);
      it->second.each = least;
    }
  }

  /// ns; 0 where nothing tells. Cost: O(log n).
  double Of(int64_t elements) const {
    const auto larger = known_.lower_bound(elements);
    if (elements <= 0) return larger != known_.end() && larger->first == elements ? larger->second.low : 0;
    double usual = larger == known_.end() ? 0 : larger->second.low;
    if (larger == known_.begin() || std::prev(larger)->first <= 0) return usual;
    const double most = std::prev(larger)->second.each * static_cast<double>(elements);
    return usual == 0 ? most : std::min(usual, most);
  }

 private:
  struct Known {
    double low = 0;   ///< ns that transfers of this size or a larger one take
    double each = 0;  ///< ns for each element that those of this size or a smaller one take
  };
  std::map<int64_t, Known> known_;  // by elements; those that are not known come first
};

class Search {
 public:
  explicit Search(const Scene& scene) : scene_(scene) {
    for (uint32_t s = 0; s < scene.trees.steps.size(); ++s)
      of_process_[scene.trees.steps[s].process.value()].push_back(s);
  }

  TransferShift Run() {
    Collect();
    TransferShift best;
    for (const auto& [route, by_index] : of_route_) {
      TransferShift shift = Test(by_index);
      // Each had its chance.
      shift.false_alarm = std::min(1.0, shift.false_alarm * static_cast<double>(of_route_.size()));
      if (shift.hits.empty() || (!best.hits.empty() && shift.false_alarm >= best.false_alarm)) continue;
      best = std::move(shift);
      best.route = route;
    }
    return best;
  }

 private:
  using ByIndex = std::map<uint32_t, std::vector<Carried>>;                               // by the job's step
  using Kind = std::tuple<std::optional<Route>, std::string, uint32_t, trace::StepKind>;  // group, name

  TransferShift Test(const ByIndex& by_index) const {
    std::vector<double> logs;
    std::vector<const std::vector<Carried>*> of;  // parallel
    for (const auto& [index, list] : by_index) {
      std::vector<double> ratios;
      for (const Carried& c : list) ratios.push_back(std::log(c.transfer / c.usual));
      logs.push_back(ml::Quantile(ratios, 0.5));
      of.push_back(&list);
    }
    TransferShift out;
    const auto shift = TestStretch(logs, HighestStretch(logs, kRule.least), kRule);
    if (!shift) return out;
    std::map<uint32_t, double> lost;  // step -> ns
    std::vector<double> usual;
    for (size_t k = shift->at.first; k < shift->at.last; ++k) {
      if (logs[k] < shift->Middle()) continue;
      for (const Carried& c : *of[k]) {
        usual.push_back(c.usual);
        for (const uint32_t s : c.steps) lost[s] += std::max(0.0, c.transfer - c.usual);
      }
    }
    double all = 0;
    double whole = 0;
    for (const auto& [s, ns] : lost) {
      all += ns;
      whole += static_cast<double>(scene_.trees.steps[s].duration());
      out.hits[scene_.trees.steps[s].process.value()].push_back({static_cast<Nanos>(ns), s});
    }
    if (all < kFelt * whole) return {};
    out.usual = static_cast<Nanos>(ml::Quantile(usual, 0.5));
    out.false_alarm = shift->false_alarm;
    return out;
  }

  void Collect() {
    std::map<Kind, BySize> kinds;
    for (const auto& collective : scene_.trees.collectives) {
      const uint32_t span = collective.members.front().span.value();
      const std::optional<Route> route = RouteOf(scene_.store, collective);
      const Nanos transfer = TransferOf(collective);
      if (transfer <= 0 || scene_.store.kind(span) != trace::SpanKind::kKernel) continue;
      Carried carried{.transfer = static_cast<double>(transfer)};
      for (const auto& member : collective.members) {
        const uint32_t step = LaunchedIn(member);
        if (step != kNoSpan) carried.steps.push_back(step);
      }
      if (carried.steps.size() < collective.members.size()) continue;
      const trace::Step& step = scene_.trees.steps[carried.steps.front()];
      if (step.observer) continue;
      const trace::CommArgs* args = scene_.store.comm_args.Find(span);
      const int64_t elements = args == nullptr ? -1 : args->in_elements;
      kinds[{route, collective.group, collective.name.value(), step.kind}][elements].emplace_back(step.index,
                                                                                                  std::move(carried));
    }
    for (auto& [kind, sizes] : kinds) {
      const UsualOfSize known(sizes);
      for (auto& [elements, list] : sizes) {
        const double usual = known.Of(elements);
        if (usual <= 0) continue;
        for (auto& [index, carried] : list) {
          carried.usual = usual;
          of_route_[std::get<0>(kind)][index].push_back(std::move(carried));
        }
      }
    }
  }

  /// The step of its process in which a member's kernel was launched; kNoSpan where that is between steps or unknown.
  uint32_t LaunchedIn(const trace::CollectiveMember& member) const {
    const Nanos at = LaunchedAt(scene_, member);
    const auto found = of_process_.find(member.process.value());
    if (found == of_process_.end()) return kNoSpan;
    const auto& list = found->second;
    const auto it = std::lower_bound(list.begin(), list.end(), at,
                                     [&](uint32_t s, Nanos t) { return scene_.trees.steps[s].end < t; });
    return it == list.end() || scene_.trees.steps[*it].begin > at ? kNoSpan : *it;
  }

  const Scene& scene_;
  std::map<uint32_t, std::vector<uint32_t>> of_process_;  ///< steps in order
  std::map<std::optional<Route>, ByIndex> of_route_;      ///< collectives have none
};

}  // namespace

std::optional<Route> RouteOf(const trace::Store& store, const trace::Collective& collective) {
  if (!collective.point_to_point || collective.members.size() != 2) return std::nullopt;
  const auto& low = collective.members.front();
  const auto& high = collective.members.back();
  const bool back = tree::PeerEndOf(store, low.span.value()) == tree::PeerEnd::kReceive &&
                    tree::PeerEndOf(store, high.span.value()) != tree::PeerEnd::kReceive;
  return back ? Route{high.process, low.process} : Route{low.process, high.process};
}

Nanos TransferOf(const trace::Collective& collective) {
  if (!collective.point_to_point) return collective.transfer;
  Nanos all = INT64_MIN;
  Nanos end = INT64_MIN;
  for (const auto& member : collective.members) {
    all = std::max(all, member.arrival);
    end = std::max(end, member.end);
  }
  return end - all;
}

Nanos LaunchedAt(const Scene& scene, const trace::CollectiveMember& member) {
  const auto& launches = scene.trees.launches;
  const auto it = std::lower_bound(launches.begin(), launches.end(), member.span,
                                   [](const trace::LaunchLink& link, trace::SpanRow row) { return link.work < row; });
  if (it == launches.end() || it->work != member.span) return member.arrival;
  return scene.store.spans.begin[it->launch.value()];
}

TransferShift FindTransferShift(const Scene& scene) {
  return Search(scene).Run();
}

}  // namespace teller::locate
