#pragma once

#include "retime/graph.hpp"

namespace teller::retime {

/// Calls that return when GPU work is done: synchronization, and copies that block their caller. Which work a call
/// waited for is told by what happened: the last to end before it returned, of what had been launched before. The time
/// that the call takes by itself, and that returning takes, are typical ones of the process. Needs lanes.
void AddSyncs(const trace::Store& store, const trace::Trees& trees, Graph& graph);

}  // namespace teller::retime
