#include "retime/lanes.hpp"

#include <algorithm>
#include <utility>

namespace teller::retime {

namespace {

using trace::Nanos;
using trace::SpanKind;

bool DoesWork(SpanKind kind, bool is_stream) {
  switch (kind) {
    case SpanKind::kService:
    case SpanKind::kProfiler:
    case SpanKind::kSync:
    case SpanKind::kGpuAnnotation: return false;
    default: return is_stream == trace::IsGpuWork(kind);
  }
}

/// Points of a thread in order of time; at equal times what ends comes first, so that a span never begins inside one
/// that is over, and a span without length ends after its own begin.
void AddThread(const trace::Store& store, const trace::Track& track, Graph& graph,
               std::vector<std::pair<Nanos, Point>>& ends) {
  ends.clear();
  const uint32_t last = track.first_span + track.span_count;
  for (uint32_t row = track.first_span; row < last; ++row) {
    if (DoesWork(store.kind(row), false)) ends.emplace_back(store.spans.end(row), row * 2 + 1);
  }
  // Equal ends: the innermost, which began last, ends first.
  const auto before = [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  };
  std::sort(ends.begin(), ends.end(), before);
  size_t next = 0;
  for (uint32_t row = track.first_span; row < last; ++row) {
    if (!DoesWork(store.kind(row), false)) continue;
    const Nanos begin = store.spans.begin[row];
    while (next < ends.size() && ends[next].first <= begin && SpanOf(ends[next].second).value() < row) {
      graph.points.push_back(ends[next++].second);
    }
    graph.points.push_back(row * 2);
  }
  while (next < ends.size()) graph.points.push_back(ends[next++].second);
}

void AddStream(const trace::Store& store, const trace::Track& track, Graph& graph) {
  for (uint32_t row = track.first_span; row < track.first_span + track.span_count; ++row) {
    if (!DoesWork(store.kind(row), true)) continue;
    graph.points.push_back(row * 2);
    graph.points.push_back(row * 2 + 1);
  }
}

}  // namespace

void BuildLanes(const trace::Store& store, Graph& graph) {
  const size_t n = store.spans.size() * 2;
  graph.points.reserve(n);
  graph.position.assign(n, Graph::kNoPosition);
  std::vector<std::pair<Nanos, Point>> ends;
  for (uint32_t t = 0; t < store.tracks.size(); ++t) {
    const trace::Track& track = store.tracks[t];
    if (!track.process.valid() || store.processes[track.process.value()].service) continue;
    Lane lane;
    lane.track = trace::TrackRow(t);
    lane.is_stream = track.is_stream;
    lane.first = static_cast<uint32_t>(graph.points.size());
    if (track.is_stream) {
      AddStream(store, track, graph);
    } else {
      AddThread(store, track, graph, ends);
    }
    lane.count = static_cast<uint32_t>(graph.points.size()) - lane.first;
    if (lane.count > 0) graph.lanes.push_back(lane);
  }
  graph.own.resize(graph.points.size());
  for (const Lane& lane : graph.lanes) {
    Nanos before = RecordedAt(store, graph.points[lane.first]);
    for (uint32_t at = lane.first; at < lane.first + lane.count; ++at) {
      const Nanos now = RecordedAt(store, graph.points[at]);
      graph.own[at] = now - before;
      graph.position[graph.points[at]] = at;
      before = now;
    }
  }
}

}  // namespace teller::retime
