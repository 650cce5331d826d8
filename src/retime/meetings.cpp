#include "retime/meetings.hpp"

#include <algorithm>

namespace teller::retime {

namespace {

using trace::Nanos;

/// True when arrivals and ends of all members can be compared and each is on a lane.
bool CanMeet(const trace::Trees& trees, const Graph& graph, const trace::Collective& collective) {
  if (collective.point_to_point || collective.members.size() < 2) return false;
  return std::all_of(collective.members.begin(), collective.members.end(), [&](const trace::CollectiveMember& member) {
    return graph.position[BeginOf(member.span)] != Graph::kNoPosition &&
           trace::PairError(trees.clocks, collective.members.front().process, member.process) != trace::kUnknownClock;
  });
}

}  // namespace

void AddMeetings(const trace::Trees& trees, Graph& graph) {
  for (uint32_t c = 0; c < trees.collectives.size(); ++c) {
    const trace::Collective& collective = trees.collectives[c];
    if (!CanMeet(trees, graph, collective)) continue;
    const auto meeting = static_cast<uint32_t>(graph.meetings.size());
    graph.meetings.push_back({c, static_cast<uint32_t>(collective.members.size())});
    Nanos last = INT64_MIN;
    for (const trace::CollectiveMember& member : collective.members) last = std::max(last, member.arrival);
    for (const trace::CollectiveMember& member : collective.members) {
      const uint32_t begin = graph.position[BeginOf(member.span)];
      const uint32_t end = graph.position[EndOf(member.span)];
      graph.arrivals.push_back({begin, meeting});
      // Who left before the last arrival did not need it (or the clocks are not that good): its stay is kept.
      if (member.end <= last) continue;
      graph.waits.push_back({end, meeting, member.end - last, DependencyKind::kCollective});
      for (uint32_t at = begin + 1; at <= end; ++at) graph.own[at] = 0;
    }
  }
}

}  // namespace teller::retime
