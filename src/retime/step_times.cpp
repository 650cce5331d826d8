#include "retime/step_times.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "retime/time_map.hpp"

namespace teller::retime {

namespace {

using trace::Nanos;
using trace::SpanRow;

/// GPU work of one launch.
struct Launched {
  Nanos launched = 0;
  SpanRow work;
};

class Measurer {
 public:
  Measurer(const trace::Store& store, const trace::Trees& trees, const Graph& graph, const Times& times)
      : store_(store), graph_(graph), times_(times), map_(store, graph, times) {
    for (const auto& link : trees.launches) {
      launched_[store.track_of(link.work.value()).process.value()].push_back(
          {store.spans.begin[link.launch.value()], link.work});
    }
    for (auto& [process, works] : launched_) {
      std::sort(works.begin(), works.end(), [](const auto& a, const auto& b) {
        return std::pair(a.launched, a.work) < std::pair(b.launched, b.work);
      });
    }
  }

  StepTime Measure(trace::ProcessRow process, SpanRow mark, Nanos begin, Nanos end) const {
    StepTime out;
    const std::optional<uint32_t> thread = Thread(process, mark, begin, end);
    if (!thread) return out;
    const uint32_t lane = *thread;
    Nanos last = end;
    Nanos new_last = map_.NewTime(lane, end);
    const Nanos new_begin = map_.NewTime(lane, begin);
    std::map<uint32_t, std::pair<Nanos, Nanos>> streams;  // track -> busy, idle
    std::map<uint32_t, Nanos> stream_ends;
    if (const auto works = launched_.find(process.value()); works != launched_.end()) {
      auto it = std::lower_bound(works->second.begin(), works->second.end(), begin,
                                 [](const Launched& l, Nanos at) { return l.launched < at; });
      for (; it != works->second.end() && it->launched < end; ++it) {
        const uint32_t row = it->work.value();
        if (times_.at[EndOf(it->work)] == base::kNoTime) continue;
        last = std::max(last, store_.spans.end(row));
        new_last = std::max(new_last, times_.end(it->work));
        auto& [busy, idle] = streams[store_.spans.track[row].value()];
        busy += store_.spans.duration[row];
        auto [before, fresh] = stream_ends.try_emplace(store_.spans.track[row].value(), store_.spans.end(row));
        if (!fresh) idle += std::max<Nanos>(0, store_.spans.begin[row] - before->second);
        before->second = std::max(before->second, store_.spans.end(row));
      }
    }
    out.recorded = last - begin;
    out.replayed = new_last - new_begin;
    out.replayed_end = new_last;
    for (const auto& [track, busy_idle] : streams) {
      if (busy_idle.first > out.gpu_busy) std::tie(out.gpu_busy, out.gpu_idle) = busy_idle;
    }
    out.gpu_bound = out.gpu_busy * 2 > out.recorded;
    out.host_wait = HostWait(lane, begin, end);
    return out;
  }

 private:
  Nanos At(uint32_t position) const { return RecordedAt(store_, graph_.points[position]); }

  /// The thread that the step's mark is on; without a mark the busiest one.
  std::optional<uint32_t> Thread(trace::ProcessRow process, SpanRow mark, Nanos begin, Nanos end) const {
    if (mark.valid() && graph_.position[BeginOf(mark)] != Graph::kNoPosition) {
      return map_.LaneOf(graph_.position[BeginOf(mark)]);
    }
    return map_.BusiestThread(process, begin, end);
  }

  Nanos HostWait(uint32_t lane, Nanos begin, Nanos end) const {
    const uint32_t from = std::max(map_.FirstAt(lane, begin), graph_.lanes[lane].first + 1);
    const uint32_t to = map_.FirstAt(lane, end);
    Nanos sum = 0;
    for (uint32_t at = from; at < to; ++at) {
      const Nanos recorded = At(at) - At(at - 1);
      sum += std::clamp<Nanos>(recorded - graph_.own[at], 0, std::max<Nanos>(0, At(at) - std::max(At(at - 1), begin)));
    }
    return sum;
  }

  const trace::Store& store_;
  const Graph& graph_;
  const Times& times_;
  TimeMap map_;
  std::map<uint32_t, std::vector<Launched>> launched_;  ///< by process; order: by launch
};

}  // namespace

std::vector<StepTime> StepTimes(const trace::Store& store, const trace::Trees& trees, const Graph& graph,
                                const Times& times) {
  const Measurer measurer(store, trees, graph, times);
  std::vector<StepTime> out;
  for (const trace::Step& step : trees.steps)
    out.push_back(measurer.Measure(step.process, step.span, step.begin, step.end));
  return out;
}

StepTime WholeTime(const trace::Store& store, const trace::Trees& trees, const Graph& graph, const Times& times,
                   trace::ProcessRow process) {
  Nanos begin = INT64_MAX;
  Nanos end = INT64_MIN;
  for (const Lane& lane : graph.lanes) {
    if (lane.is_stream || store.tracks[lane.track.value()].process != process) continue;
    begin = std::min(begin, RecordedAt(store, graph.points[lane.first]));
    end = std::max(end, RecordedAt(store, graph.points[lane.first + lane.count - 1]));
  }
  if (begin > end) return {};
  return Measurer(store, trees, graph, times).Measure(process, {}, begin, end);
}

}  // namespace teller::retime
