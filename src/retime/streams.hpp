#pragma once

#include "retime/graph.hpp"

namespace teller::retime {

/// GPU work: begins when its launch reached the device and the work before it on its stream is done. The time that
/// launching and following on take are typical ones of the run. Work that began later than that waited for work of
/// another stream, where one ended just then; otherwise its delay is kept as recorded (Graph::kept_idle).
/// Needs lanes.
void AddStreams(const trace::Store& store, const trace::Trees& trees, Graph& graph);

}  // namespace teller::retime
