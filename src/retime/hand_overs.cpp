#include "retime/hand_overs.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "retime/typical.hpp"

namespace teller::retime {

namespace {

using base::kMicro;
using trace::Nanos;
using trace::SpanRow;

/// Idle time from which on a thread is taken to wait rather than to compute between two spans.
constexpr Nanos kShortestHole = 50 * kMicro;
/// Waking a thread takes no longer than this, or than a quarter of the time it waited.
constexpr Nanos kLongestWake = 200 * kMicro;
/// A worker picks its work up within this time.
constexpr Nanos kLongestPickUp = 500 * kMicro;
/// A collective starts within this time of its enqueuing call.
constexpr Nanos kLongestQueue = base::kSecond;

/// Idle time on a thread.
struct Hole {
  uint32_t lane = 0;
  uint32_t at = 0;  ///< position of the point that ends it
  Nanos begin = 0;
  Nanos end = 0;
  bool in_leaf = false;  ///< inside a span that calls nothing: it may as well compute
};

/// What a thread does between two holes.
struct Stretch {
  uint32_t lane = 0;
  uint32_t first = 0;  ///< position
  uint32_t last = 0;
  Nanos begin = 0;
  Nanos end = 0;
  bool meets = false;  ///< a collective is part of it
};

/// What a dependency's latency is made of.
enum class Latency : uint8_t {
  kWake,    ///< from the end of the work to the thread that waited for it
  kStay,    ///< the same where the thread did not go on at once: kept as it was
  kPickUp,  ///< from the thread that hands work over to the one that does it
  kQueue,   ///< from the call that enqueues a collective to its begin
};

/// A dependency with the latency that it had.
struct Found {
  uint32_t at = 0;      ///< position
  uint32_t source = 0;  ///< position
  Nanos latency = 0;
  Latency kind = Latency::kWake;
};

class HandOverBuilder {
 public:
  HandOverBuilder(const trace::Store& store, const trace::Trees& trees, Graph& graph)
      : store_(store), trees_(trees), graph_(graph) {}

  void Build() {
    waits_at_.resize(graph_.points.size());
    meeting_ends_.resize(graph_.points.size());
    for (const auto& wait : graph_.waits) {
      waits_at_[wait.at] = true;
      if (wait.kind == DependencyKind::kCollective) meeting_ends_[wait.at] = true;
    }
    std::map<uint32_t, std::vector<uint32_t>> by_process;
    for (uint32_t lane = 0; lane < graph_.lanes.size(); ++lane) {
      if (!graph_.lanes[lane].is_stream) by_process[ProcessOf(lane)].push_back(lane);
    }
    for (const auto& [process, lanes] : by_process) {
      if (lanes.size() > 1) Join(lanes);
    }
    FollowEnqueues(by_process);
    Settle();
  }

 private:
  uint32_t ProcessOf(uint32_t lane) const { return store_.tracks[graph_.lanes[lane].track.value()].process.value(); }
  Nanos At(uint32_t position) const { return RecordedAt(store_, graph_.points[position]); }

  /// Holes and stretches of a thread, in order.
  void Split(uint32_t lane_index, std::vector<Hole>& holes, std::vector<Stretch>& stretches) const {
    const Lane& lane = graph_.lanes[lane_index];
    Stretch stretch{lane_index, lane.first, lane.first, At(lane.first), At(lane.first)};
    for (uint32_t at = lane.first + 1; at < lane.first + lane.count; ++at) {
      const Nanos now = At(at);
      const bool in_leaf = IsEnd(graph_.points[at]) && graph_.points[at - 1] == graph_.points[at] - 1;
      if (now - stretch.end >= kShortestHole && !waits_at_[at]) {
        holes.push_back({lane_index, at, stretch.end, now, in_leaf});
        stretches.push_back(stretch);
        stretch.first = at;
        stretch.begin = now;
        stretch.meets = false;
      }
      if (meeting_ends_[at]) stretch.meets = true;
      stretch.last = at;
      stretch.end = now;
    }
    stretches.push_back(stretch);
  }

  /// Finds for every hole the stretch of another thread that it waits for.
  void Join(const std::vector<uint32_t>& lanes) {
    std::vector<Hole> holes;
    std::vector<Stretch> stretches;
    for (const uint32_t lane : lanes) Split(lane, holes, stretches);
    std::sort(stretches.begin(), stretches.end(),
              [](const Stretch& a, const Stretch& b) { return std::pair(a.end, a.last) < std::pair(b.end, b.last); });
    for (const Hole& hole : holes) {
      const Nanos wake = std::min(kLongestWake, (hole.end - hole.begin) / 4);
      auto it = std::upper_bound(stretches.begin(), stretches.end(), hole.end,
                                 [](Nanos end, const Stretch& stretch) { return end < stretch.end; });
      while (it != stretches.begin()) {
        --it;
        if (hole.end - it->end > wake || it->end <= hole.begin) break;
        if (it->lane == hole.lane || it->begin < hole.begin - kLongestWake || (hole.in_leaf && !it->meets)) continue;
        Link(hole, *it, Latency::kWake);
        break;
      }
      if (!waits_at_[hole.at]) LinkEnqueued(hole, stretches);
    }
  }

  /// A thread that enqueued a collective and then did nothing waited for it at least, whatever kept it afterwards.
  void LinkEnqueued(const Hole& hole, const std::vector<Stretch>& stretches) {
    const Point before = graph_.points[hole.at - 1];
    if (!IsEnd(before) || !store_.name(SpanOf(before).value()).starts_with("c10d::")) return;
    auto it = std::upper_bound(stretches.begin(), stretches.end(), hole.begin,
                               [](Nanos begin, const Stretch& stretch) { return begin < stretch.end; });
    for (; it != stretches.end() && it->end < hole.end; ++it) {
      if (it->lane == hole.lane || !it->meets || it->begin > hole.begin + kLongestPickUp) continue;
      return Link(hole, *it, Latency::kStay);
    }
  }

  void Link(const Hole& hole, const Stretch& work, Latency kind) {
    const Nanos wake = hole.end - work.end;
    waits_at_[hole.at] = true;
    found_.push_back({hole.at, work.last, wake, kind});
    // The worker's own hole before it: it waited to be handed the work.
    const uint32_t handed = hole.at - 1;
    const Nanos pick_up = work.begin - At(handed);
    if (pick_up < 0 || pick_up > kLongestPickUp) return;
    Start(work.first, handed, pick_up, Latency::kPickUp);
  }

  /// The point at `position` begins because of the one at `source`.
  void Start(uint32_t position, uint32_t source, Nanos latency, Latency kind) {
    if (waits_at_[position]) return;
    waits_at_[position] = true;
    found_.push_back({position, source, latency, kind});
  }

  /// Turns what was found into dependencies, with the typical latency of each process and kind: the single ones are not
  /// known in a run that went differently.
  void Settle() {
    std::map<std::pair<uint32_t, Latency>, std::vector<Nanos>> samples;
    for (const Found& found : found_) samples[{ProcessOf(LaneOf(found.at)), found.kind}].push_back(found.latency);
    std::map<std::pair<uint32_t, Latency>, Nanos> typical;
    for (auto& [key, values] : samples) typical[key] = TrimmedMean(values, 0);
    for (const Found& found : found_) {
      const Nanos latency =
          found.kind == Latency::kStay ? found.latency : typical[{ProcessOf(LaneOf(found.at)), found.kind}];
      // The first point of a lane has no time of its own.
      const bool first = graph_.lanes[LaneOf(found.at)].first == found.at;
      const bool wakes = !first && (found.kind == Latency::kWake || found.kind == Latency::kStay);
      // Where the time since the lane's last point is no longer than that, the lane was busy rather than waiting.
      if (!first) graph_.own[found.at] = std::min(graph_.own[found.at], latency);
      graph_.waits.push_back(
          {found.at, graph_.points[found.source], wakes ? 0 : latency, DependencyKind::kHandOver, wakes});
    }
  }

  uint32_t LaneOf(uint32_t position) const {
    const auto it = std::upper_bound(graph_.lanes.begin(), graph_.lanes.end(), position,
                                     [](uint32_t at, const Lane& lane) { return at < lane.first; });
    return static_cast<uint32_t>(it - graph_.lanes.begin()) - 1;
  }

  /// Collectives that a worker thread runs follow the call that enqueued them.
  void FollowEnqueues(const std::map<uint32_t, std::vector<uint32_t>>& by_process) {
    std::map<uint32_t, std::vector<uint32_t>> calls;  // process -> positions of begins, by time
    for (const auto& [process, lanes] : by_process) {
      for (const uint32_t lane : lanes) {
        for (uint32_t at = graph_.lanes[lane].first; at < graph_.lanes[lane].first + graph_.lanes[lane].count; ++at) {
          const Point point = graph_.points[at];
          if (!IsEnd(point) && store_.name(SpanOf(point).value()).starts_with("c10d::")) calls[process].push_back(at);
        }
      }
      std::sort(calls[process].begin(), calls[process].end(),
                [this](uint32_t a, uint32_t b) { return std::pair(At(a), a) < std::pair(At(b), b); });
    }
    for (const Meeting& meeting : graph_.meetings) {
      for (const trace::CollectiveMember& member : trees_.collectives[meeting.collective].members) {
        if (store_.kind(member.span.value()) == trace::SpanKind::kKernel) continue;
        const uint32_t at = graph_.position[BeginOf(member.span)];
        if (waits_at_[at]) continue;
        const auto& known = calls[member.process.value()];
        const Nanos begin = At(at);
        auto it = std::upper_bound(known.begin(), known.end(), begin,
                                   [this](Nanos time, uint32_t call) { return time < At(call); });
        if (it == known.begin()) continue;
        const uint32_t call = *--it;
        if (begin - At(call) > kLongestQueue || LaneOf(call) == LaneOf(at)) continue;
        // An idle worker picks its work up at once: if it did not, something kept it. What the call did before it
        // handed the work over is its own, where it was over by then.
        const uint32_t over = graph_.position[EndOf(SpanOf(graph_.points[call]))];
        const uint32_t since = At(over) <= begin ? over : call;
        if (begin - At(since) > kLongestPickUp) {
          Start(at, since, begin - At(since), Latency::kStay);
        } else {
          Start(at, call, begin - At(call), Latency::kQueue);
        }
      }
    }
  }

  const trace::Store& store_;
  const trace::Trees& trees_;
  Graph& graph_;
  std::vector<bool> waits_at_;      ///< by position: has a dependency
  std::vector<bool> meeting_ends_;  ///< by position: a collective is left here
  std::vector<Found> found_;
};

}  // namespace

void AddHandOvers(const trace::Store& store, const trace::Trees& trees, Graph& graph) {
  HandOverBuilder(store, trees, graph).Build();
}

}  // namespace teller::retime
