#pragma once

#include "retime/graph.hpp"

namespace teller::retime {

/// Fills lanes, points, positions and the recorded time between neighbouring points.
void BuildLanes(const trace::Store& store, Graph& graph);

}  // namespace teller::retime
