#pragma once

#include "retime/graph.hpp"

namespace teller::retime {

/// Collectives: no member leaves before all have arrived and the data went over. Only those whose members' clocks are
/// tied together count; of the others each member's time is kept. Needs lanes.
void AddMeetings(const trace::Trees& trees, Graph& graph);

}  // namespace teller::retime
