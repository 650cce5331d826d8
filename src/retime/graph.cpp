#include "retime/graph.hpp"

#include <algorithm>
#include <tuple>

#include "retime/hand_overs.hpp"
#include "retime/lanes.hpp"
#include "retime/meetings.hpp"
#include "retime/streams.hpp"
#include "retime/syncs.hpp"

namespace teller::retime {

Graph BuildGraph(const trace::Store& store, const trace::Trees& trees) {
  Graph graph;
  BuildLanes(store, graph);
  AddStreams(store, trees, graph);
  AddSyncs(store, trees, graph);
  AddMeetings(trees, graph);
  AddHandOvers(store, trees, graph);
  std::erase_if(graph.waits, [&](const Dependency& wait) {
    return wait.kind != DependencyKind::kCollective && graph.position[wait.source] == Graph::kNoPosition;
  });
  std::sort(graph.waits.begin(), graph.waits.end(), [](const Dependency& a, const Dependency& b) {
    return std::tuple(a.at, a.kind, a.source, a.latency) < std::tuple(b.at, b.kind, b.source, b.latency);
  });
  std::sort(graph.arrivals.begin(), graph.arrivals.end(),
            [](const Arrival& a, const Arrival& b) { return std::pair(a.at, a.meeting) < std::pair(b.at, b.meeting); });
  return graph;
}

}  // namespace teller::retime
