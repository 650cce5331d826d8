#include "retime/streams.hpp"

#include <map>
#include <unordered_map>
#include <utility>

#include "retime/typical.hpp"

namespace teller::retime {

namespace {

using base::kMicro;
using trace::Nanos;

/// Delays beyond this are no jitter of launching: something else was waited for.
constexpr Nanos kJitter = 20 * kMicro;
/// Longest time that one piece of work takes to follow another on a busy stream.
constexpr Nanos kLongestStep = 20 * kMicro;
constexpr Nanos kUsualLatency = 5 * kMicro;
constexpr Nanos kUsualStep = kMicro;
/// A call that takes longer than this many times its usual time launches at its end.
constexpr Nanos kSlowCall = 3;

/// How long after a launch call its work can begin, of one process and name of the call.
struct Latency {
  std::vector<Nanos> idle;      ///< begin of work since begin of the call, on an idle stream
  std::vector<Nanos> any;       ///< the same, of all work
  std::vector<Nanos> from_end;  ///< since the end of the call, on an idle stream
  std::vector<Nanos> call;      ///< durations of the calls
  Nanos after_begin = 0;
  Nanos after_end = 0;
  Nanos usual_call = 0;

  void Settle() {
    if (idle.empty() && !any.empty()) {
      std::sort(any.begin(), any.end());
      after_begin = any[any.size() / 10];
    } else {
      after_begin = Median(idle, kUsualLatency);
    }
    usual_call = Median(call, kUsualLatency);
    after_end = from_end.empty() ? after_begin - usual_call : Median(from_end, 0);
  }
};

/// GPU work with its launch and what ran before it on its stream.
struct Work {
  uint32_t at = 0;  ///< position of its begin
  trace::SpanRow row;
  trace::SpanRow launch;  ///< none when not in the file, or not the first of its launch on this stream
  bool in_graph = false;
};

class StreamBuilder {
 public:
  StreamBuilder(const trace::Store& store, const trace::Trees& trees, Graph& graph)
      : store_(store), trees_(trees), graph_(graph), spans_(store.spans) {}

  void Build() {
    for (uint32_t lane = 0; lane < graph_.lanes.size(); ++lane) {
      if (graph_.lanes[lane].is_stream) Collect(lane);
    }
    for (auto& [key, latency] : latencies_) latency.Settle();
    CollectSteps();
    for (auto& [process, ends] : ends_) std::sort(ends.begin(), ends.end());
    for (const auto& lane : lanes_) {
      for (size_t i = 0; i < lane.size(); ++i) Place(lane, i);
    }
  }

 private:
  uint32_t ProcessOf(trace::SpanRow row) const { return store_.track_of(row.value()).process.value(); }
  Nanos Begin(trace::SpanRow row) const { return spans_.begin[row.value()]; }
  Nanos End(trace::SpanRow row) const { return spans_.end(row.value()); }

  Latency& LatencyOf(trace::SpanRow launch) {
    return latencies_[uint64_t{ProcessOf(launch)} << 32 | spans_.name[launch.value()].value()];
  }

  trace::SpanRow LaunchOf(trace::SpanRow work) const {
    const auto it = std::lower_bound(trees_.launches.begin(), trees_.launches.end(), work,
                                     [](const trace::LaunchLink& link, trace::SpanRow row) { return link.work < row; });
    return it == trees_.launches.end() || it->work != work ? trace::SpanRow() : it->launch;
  }

  void Collect(uint32_t lane_index) {
    const Lane& lane = graph_.lanes[lane_index];
    auto& works = lanes_.emplace_back();
    trace::SpanRow last_launch;
    Nanos stream_end = INT64_MIN;
    for (uint32_t at = lane.first; at < lane.first + lane.count; at += 2) {
      Work work;
      work.at = at;
      work.row = SpanOf(graph_.points[at]);
      const trace::SpanRow launch = LaunchOf(work.row);
      work.in_graph = launch.valid() && launch == last_launch;
      if (launch.valid() && !work.in_graph) {
        work.launch = launch;
        Sample(work, stream_end);
      }
      last_launch = launch;
      stream_end = std::max(stream_end, End(work.row));
      ends_[ProcessOf(work.row)].emplace_back(End(work.row), work.row);
      works.push_back(work);
    }
  }

  void Sample(const Work& work, Nanos stream_end) {
    Latency& latency = LatencyOf(work.launch);
    const Nanos since = Begin(work.row) - Begin(work.launch);
    latency.call.push_back(spans_.duration[work.launch.value()]);
    latency.any.push_back(since);
    if (stream_end > Begin(work.launch) || since > kSlowCall * kJitter) return;
    latency.idle.push_back(since);
    latency.from_end.push_back(Begin(work.row) - End(work.launch));
  }

  /// The point that the begin of `work` follows, and by how long.
  std::pair<Point, Nanos> LaunchPoint(const Work& work) {
    const Latency& latency = LatencyOf(work.launch);
    // A blocking copy's call lasts as long as the copy itself.
    const bool blocking = End(work.launch) >= End(work.row);
    const bool slow = spans_.duration[work.launch.value()] > kSlowCall * latency.usual_call;
    if (slow && !blocking) return {EndOf(work.launch), latency.after_end};
    return {BeginOf(work.launch), latency.after_begin};
  }

  Nanos Ready(const Work& work) {
    if (!work.launch.valid()) return INT64_MIN;
    const auto [point, latency] = LaunchPoint(work);
    return RecordedAt(store_, point) + latency;
  }

  /// How long work takes to follow on, of a stream that had it waiting.
  void CollectSteps() {
    for (const auto& lane : lanes_) {
      for (size_t i = 1; i < lane.size(); ++i) {
        const Nanos step = Begin(lane[i].row) - End(lane[i - 1].row);
        if (step < 0 || step > kLongestStep || Ready(lane[i]) > End(lane[i - 1].row)) continue;
        steps_[{ProcessOf(lane[i].row), lane[i].in_graph}].push_back(step);
      }
    }
    for (auto& [key, samples] : steps_) usual_step_[key] = TrimmedMean(samples, kUsualStep);
  }

  Nanos UsualStep(const Work& work) const {
    const auto it = usual_step_.find({ProcessOf(work.row), work.in_graph});
    return it == usual_step_.end() ? kUsualStep : it->second;
  }

  void Place(const std::vector<Work>& lane, size_t i) {
    const Work& work = lane[i];
    const Nanos begin = Begin(work.row);
    Nanos expected = Ready(work);
    if (work.launch.valid()) {
      const auto [point, latency] = LaunchPoint(work);
      Wait(work.at, point, latency, DependencyKind::kLaunch);
    }
    if (i > 0) {
      const Nanos before = End(lane[i - 1].row);
      const Nanos step = begin < before ? begin - before : UsualStep(work);
      graph_.own[work.at] = step;
      expected = std::max(expected, before + step);
    }
    if (expected == INT64_MIN || begin - expected <= kJitter) return;
    const trace::SpanRow source = EndedJustBefore(work.row);
    if (source.valid()) {
      Wait(work.at, EndOf(source), begin - End(source), DependencyKind::kStream);
      return;
    }
    ++graph_.kept_idle;
    graph_.own[work.at] += begin - expected;
    for (auto wait = graph_.waits.rbegin(); wait != graph_.waits.rend() && wait->at == work.at; ++wait) {
      wait->latency += begin - expected;
    }
  }

  /// Work of another stream of the process whose end this one seems to have waited for.
  trace::SpanRow EndedJustBefore(trace::SpanRow row) const {
    const auto& ends = ends_.at(ProcessOf(row));
    const Nanos begin = Begin(row);
    auto it = std::upper_bound(ends.begin(), ends.end(), std::pair(begin, trace::SpanRow(UINT32_MAX)));
    while (it != ends.begin()) {
      --it;
      if (begin - it->first > kJitter) break;
      if (spans_.track[it->second.value()] != spans_.track[row.value()]) return it->second;
    }
    return {};
  }

  void Wait(uint32_t at, Point source, Nanos latency, DependencyKind kind) {
    graph_.waits.push_back({at, source, latency, kind});
  }

  const trace::Store& store_;
  const trace::Trees& trees_;
  Graph& graph_;
  const trace::Spans& spans_;
  std::vector<std::vector<Work>> lanes_;
  std::unordered_map<uint64_t, Latency> latencies_;  ///< by process and name of the call
  std::map<std::pair<uint32_t, bool>, std::vector<Nanos>> steps_;
  std::map<std::pair<uint32_t, bool>, Nanos> usual_step_;
  std::map<uint32_t, std::vector<std::pair<Nanos, trace::SpanRow>>> ends_;  ///< of a process's GPU work
};

}  // namespace

void AddStreams(const trace::Store& store, const trace::Trees& trees, Graph& graph) {
  StreamBuilder(store, trees, graph).Build();
}

}  // namespace teller::retime
