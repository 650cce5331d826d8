#pragma once

#include "retime/graph.hpp"

namespace teller::retime {

/// Threads of one process that wait for each other: a thread that does nothing until another one, which began after it
/// stopped, has finished its piece of work (autograd threads, the worker threads of gloo, thread pools). Told by what
/// happened: the hole on the one ends with the other's work. Collectives on a worker thread follow the call that
/// enqueued them even where nobody waits at once. Needs lanes and syncs.
void AddHandOvers(const trace::Store& store, const trace::Trees& trees, Graph& graph);

}  // namespace teller::retime
