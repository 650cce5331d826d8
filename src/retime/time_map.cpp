#include "retime/time_map.hpp"

#include <algorithm>
#include <tuple>

namespace teller::retime {

using trace::Nanos;

TimeMap::TimeMap(const trace::Store& store, const Graph& graph, const Times& times)
    : store_(store), graph_(graph), times_(times) {
  for (uint32_t lane = 0; lane < graph.lanes.size(); ++lane) {
    if (graph.lanes[lane].is_stream) continue;
    threads_[store.tracks[graph.lanes[lane].track.value()].process.value()].push_back(lane);
  }
}

uint32_t TimeMap::FirstAt(uint32_t lane_index, Nanos at) const {
  const Lane& lane = graph_.lanes[lane_index];
  const auto begin = graph_.points.begin() + lane.first;
  const auto first =
      std::partition_point(begin, begin + lane.count, [&](Point p) { return RecordedAt(store_, p) < at; });
  return static_cast<uint32_t>(first - graph_.points.begin());
}

Nanos TimeMap::NewTime(uint32_t lane_index, Nanos at) const {
  const Lane& lane = graph_.lanes[lane_index];
  const uint32_t next = FirstAt(lane_index, at);
  if (next == lane.first + lane.count) return times_.at[graph_.points[next - 1]] + (at - At(next - 1));
  const Nanos after = times_.at[graph_.points[next]];
  if (At(next) == at || next == lane.first) return after - (At(next) - at);
  const Nanos before = times_.at[graph_.points[next - 1]];
  const double part = static_cast<double>(at - At(next - 1)) / static_cast<double>(At(next) - At(next - 1));
  return before + static_cast<Nanos>(part * static_cast<double>(after - before));
}

uint32_t TimeMap::LaneOf(uint32_t position) const {
  const auto behind = std::upper_bound(graph_.lanes.begin(), graph_.lanes.end(), position,
                                       [](uint32_t at, const Lane& lane) { return at < lane.first; });
  return static_cast<uint32_t>(behind - graph_.lanes.begin()) - 1;
}

std::optional<uint32_t> TimeMap::BusiestThread(trace::ProcessRow process, Nanos begin, Nanos end) const {
  const auto threads = threads_.find(process.value());
  if (threads == threads_.end()) return {};
  uint32_t best = threads->second.front();
  uint32_t most = 0;
  for (const uint32_t lane : threads->second) {
    const uint32_t points = FirstAt(lane, end) - FirstAt(lane, begin);
    if (points > most) std::tie(best, most) = std::pair(lane, points);
  }
  return best;
}

}  // namespace teller::retime
