#include "retime/replay.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>

namespace teller::retime {

namespace {

using base::kNoTime;
using trace::Nanos;

/// Own times of the positions [from, to] are multiplied.
struct Range {
  uint32_t from = 0;
  uint32_t to = 0;
  double factor = 1;
};

Nanos Scaled(Nanos time, double factor) {
  if (factor == 1) return time;
  const double scaled = static_cast<double>(time) * factor;
  constexpr double kMost = 9e18;
  return static_cast<Nanos>(std::clamp(std::nearbyint(scaled), -kMost, kMost));
}

/// Added without leaving the range of times.
Nanos Plus(Nanos a, Nanos b) {
  Nanos sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return b > 0 ? INT64_MAX : INT64_MIN + 1;
  return sum;
}

/// Where a lane is.
struct Cursor {
  uint32_t next = 0;  ///< position
  uint32_t end = 0;
  uint32_t wait = 0;     ///< into Graph::waits: the first with `at` >= next
  uint32_t arrival = 0;  ///< into Graph::arrivals
  uint32_t range = 0;
  uint32_t pause = 0;
  Nanos now = kNoTime;
  double factor = 1;
  bool queued = false;
  std::vector<uint32_t> sleepers;  ///< lanes that wait for a point of this one
};

struct MeetingState {
  uint32_t missing = 0;
  Nanos last = INT64_MIN;
  double factor = 1;  ///< of the transfer time
  std::vector<uint32_t> sleepers;
};

class Replayer {
 public:
  Replayer(const trace::Store& store, const trace::Trees& trees, const Graph& graph, const Changes& changes)
      : store_(store), graph_(graph) {
    Prepare(changes);
    PrepareMeetings(trees, changes);
    PrepareCursors(changes);
  }

  Times Run() {
    times_.at.assign(store_.spans.size() * 2, kNoTime);
    for (uint32_t lane = 0; lane < cursors_.size(); ++lane) Wake(lane);
    while (true) {
      while (!ready_.empty()) {
        const uint32_t lane = ready_.front();
        ready_.pop_front();
        cursors_[lane].queued = false;
        Advance(lane);
      }
      if (!CutOne()) break;
    }
    return std::move(times_);
  }

 private:
  void Prepare(const Changes& changes) {
    for (const ScaleSpan& change : changes.spans) {
      const uint32_t begin = graph_.position[BeginOf(change.span)];
      const uint32_t end = graph_.position[EndOf(change.span)];
      if (begin == Graph::kNoPosition || end == Graph::kNoPosition) continue;
      ranges_.push_back({begin + 1, end, change.factor});
    }
    std::map<trace::TrackRow, std::vector<uint32_t>> lanes;  // of each track, where times change
    for (const ScaleTime& change : changes.times) lanes[change.track];
    for (uint32_t lane = 0; !lanes.empty() && lane < graph_.lanes.size(); ++lane) {
      const auto at = lanes.find(graph_.lanes[lane].track);
      if (at != lanes.end()) at->second.push_back(lane);
    }
    for (const ScaleTime& change : changes.times) AddTime(change, lanes[change.track]);
    std::sort(ranges_.begin(), ranges_.end(),
              [](const Range& a, const Range& b) { return std::pair(a.from, b.to) < std::pair(b.from, a.to); });
    uint32_t covered = 0;
    std::erase_if(ranges_, [&](const Range& range) {
      if (range.to <= covered) return true;
      covered = range.to;
      return false;
    });
    for (const Pause& pause : changes.pauses) {
      const uint32_t at = graph_.position[BeginOf(pause.before)];
      if (at != Graph::kNoPosition) pauses_.emplace_back(at, pause.length);
    }
    std::sort(pauses_.begin(), pauses_.end());
  }

  /// Own times that lie within the change, whole or in part. The own time before a point ends with it.
  void AddTime(const ScaleTime& change, const std::vector<uint32_t>& lanes) {
    for (const uint32_t l : lanes) {
      const Lane& lane = graph_.lanes[l];
      const auto begin = graph_.points.begin() + lane.first;
      const auto first = std::partition_point(begin, begin + lane.count,
                                              [&](Point p) { return RecordedAt(store_, p) <= change.begin; });
      auto at = static_cast<uint32_t>(first - graph_.points.begin());
      for (; at < lane.first + lane.count; ++at) {
        if (at == lane.first) continue;
        const Nanos end = RecordedAt(store_, graph_.points[at]);
        const Nanos own_begin = std::max(RecordedAt(store_, graph_.points[at - 1]), end - graph_.own[at]);
        const Nanos inside = std::min(end, change.end) - std::max(own_begin, change.begin);
        if (inside > 0) {
          const double share = static_cast<double>(inside) / static_cast<double>(graph_.own[at]);
          ranges_.push_back({at, at, std::max(0.0, 1 - (1 - change.factor) * share)});
        }
        if (end >= change.end) break;
      }
    }
  }

  void PrepareMeetings(const trace::Trees& trees, const Changes& changes) {
    for (const Meeting& meeting : graph_.meetings) {
      MeetingState state;
      state.missing = meeting.members;
      const auto& members = trees.collectives[meeting.collective].members;
      const auto has = [&](int rank) {
        return rank < 0 || std::any_of(members.begin(), members.end(), [&](const auto& m) { return m.rank == rank; });
      };
      for (const ScaleLink& link : changes.links) {
        if (has(link.rank) && has(link.peer)) state.factor *= link.factor;
      }
      meetings_.push_back(std::move(state));
    }
    for (const ScaleTransfer& change : changes.transfers) {
      for (size_t m = 0; m < graph_.meetings.size(); ++m) {
        if (graph_.meetings[m].collective == change.collective) meetings_[m].factor *= change.factor;
      }
    }
  }

  void PrepareCursors(const Changes& changes) {
    const auto first_at = [](const auto& list, uint32_t position, auto at) {
      return static_cast<uint32_t>(
          std::partition_point(list.begin(), list.end(), [&](const auto& x) { return at(x) < position; }) -
          list.begin());
    };
    for (const Lane& lane : graph_.lanes) {
      Cursor cursor;
      cursor.next = lane.first;
      cursor.end = lane.first + lane.count;
      cursor.wait = first_at(graph_.waits, lane.first, [](const auto& w) { return w.at; });
      cursor.arrival = first_at(graph_.arrivals, lane.first, [](const auto& a) { return a.at; });
      cursor.range = first_at(ranges_, lane.first, [](const auto& r) { return r.from; });
      cursor.pause = first_at(pauses_, lane.first, [](const auto& p) { return p.first; });
      const auto& process = store_.processes[store_.tracks[lane.track.value()].process.value()];
      for (const ScaleRank& change : changes.ranks) {
        if (process.rank == change.rank) cursor.factor *= lane.is_stream ? change.device : change.host;
      }
      cursors_.push_back(std::move(cursor));
      lane_firsts_.push_back(lane.first);
    }
  }

  uint32_t LaneOf(uint32_t position) const {
    return static_cast<uint32_t>(std::upper_bound(lane_firsts_.begin(), lane_firsts_.end(), position) -
                                 lane_firsts_.begin()) -
           1;
  }

  void Wake(uint32_t lane) {
    if (cursors_[lane].queued) return;
    cursors_[lane].queued = true;
    ready_.push_back(lane);
  }

  void WakeAll(std::vector<uint32_t>& sleepers) {
    for (const uint32_t lane : sleepers) Wake(lane);
    sleepers.clear();
  }

  /// When the dependency lets its point come; false and a sleeper entry when that is not known yet.
  bool Resolve(uint32_t lane, const Dependency& wait, Nanos& at) {
    if (wait.kind == DependencyKind::kCollective) {
      MeetingState& meeting = meetings_[wait.source];
      if (meeting.missing > 0) {
        meeting.sleepers.push_back(lane);
        return false;
      }
      at = Plus(meeting.last, Scaled(wait.latency, meeting.factor));
      return true;
    }
    at = times_.at[wait.source];
    if (at == kNoTime) {
      cursors_[LaneOf(graph_.position[wait.source])].sleepers.push_back(lane);
      return false;
    }
    at = Plus(at, wait.latency);
    return true;
  }

  double FactorAt(Cursor& cursor, uint32_t position) const {
    while (cursor.range < ranges_.size() && ranges_[cursor.range].to < position) ++cursor.range;
    if (cursor.range == ranges_.size() || ranges_[cursor.range].from > position) return cursor.factor;
    return cursor.factor * ranges_[cursor.range].factor;
  }

  /// Computes points of the lane until one has to wait.
  void Advance(uint32_t lane) {
    Cursor& cursor = cursors_[lane];
    const uint32_t start = cursor.next;
    while (cursor.next < cursor.end && Step(lane, cursor, false)) {
    }
    if (cursor.next != start) WakeAll(cursor.sleepers);
  }

  /// Computes one point. With `cut`, it does not wait for what is not known.
  bool Step(uint32_t lane, Cursor& cursor, bool cut) {
    const uint32_t position = cursor.next;
    const bool first = cursor.now == kNoTime;
    Nanos start = cursor.now;  // of the lane's own time
    Nanos at = kNoTime;
    uint32_t wait = cursor.wait;
    for (; wait < graph_.waits.size() && graph_.waits[wait].at == position; ++wait) {
      Nanos earliest = 0;
      if (!Resolve(lane, graph_.waits[wait], earliest)) {
        if (!cut) return false;
        // Nothing is known of when it comes: as long after the point before it as it was recorded.
        ++times_.dependencies_cut;
        const Nanos recorded = RecordedAt(store_, graph_.points[position]);
        at = std::max(at,
                      first ? recorded : Plus(cursor.now, recorded - RecordedAt(store_, graph_.points[position - 1])));
        continue;
      }
      Nanos& bound = graph_.waits[wait].before_own ? start : at;
      bound = std::max(bound, earliest);
    }
    if (start != kNoTime) at = std::max(at, Plus(start, Scaled(graph_.own[position], FactorAt(cursor, position))));
    const Point point = graph_.points[position];
    if (at == kNoTime) at = RecordedAt(store_, point);
    while (cursor.pause < pauses_.size() && pauses_[cursor.pause].first == position) {
      at = Plus(at, pauses_[cursor.pause++].second);
    }
    cursor.wait = wait;
    cursor.now = at;
    times_.at[point] = at;
    ++cursor.next;
    for (; cursor.arrival < graph_.arrivals.size() && graph_.arrivals[cursor.arrival].at == position;
         ++cursor.arrival) {
      MeetingState& meeting = meetings_[graph_.arrivals[cursor.arrival].meeting];
      meeting.last = std::max(meeting.last, at);
      if (--meeting.missing == 0) WakeAll(meeting.sleepers);
    }
    return true;
  }

  /// All lanes wait for each other: the dependency of the point that was recorded first is given up. False when done.
  bool CutOne() {
    uint32_t earliest = UINT32_MAX;
    Nanos time = INT64_MAX;
    for (uint32_t lane = 0; lane < cursors_.size(); ++lane) {
      if (cursors_[lane].next == cursors_[lane].end) continue;
      const Nanos at = RecordedAt(store_, graph_.points[cursors_[lane].next]);
      if (earliest != UINT32_MAX && at >= time) continue;
      earliest = lane;
      time = at;
    }
    if (earliest == UINT32_MAX) return false;
    Step(earliest, cursors_[earliest], true);
    WakeAll(cursors_[earliest].sleepers);
    Wake(earliest);
    return true;
  }

  const trace::Store& store_;
  const Graph& graph_;
  std::vector<Range> ranges_;                       ///< order: by from; apart
  std::vector<std::pair<uint32_t, Nanos>> pauses_;  ///< order: by position
  std::vector<MeetingState> meetings_;
  std::vector<Cursor> cursors_;
  std::vector<uint32_t> lane_firsts_;
  std::deque<uint32_t> ready_;
  Times times_;
};

}  // namespace

Times Replay(const trace::Store& store, const trace::Trees& trees, const Graph& graph, const Changes& changes) {
  return Replayer(store, trees, graph, changes).Run();
}

}  // namespace teller::retime
