#pragma once

#include <vector>

#include "retime/replay.hpp"

namespace teller::retime {

/// A step as recorded and as recomputed. A step lasts from its begin on the host to the later of its end there and the
/// end of the last GPU work that was launched in it.
struct StepTime {
  trace::Nanos recorded = 0;
  trace::Nanos replayed = 0;
  trace::Nanos replayed_end = base::kNoTime;  ///< on the run's clock; of a step that no lane holds: kNoTime
  trace::Nanos host_wait =
      0;  ///< of the recorded time, what its thread waited for something known: recomputed, not kept
  trace::Nanos gpu_busy = 0;  ///< work of the stream that is busiest in the step
  trace::Nanos gpu_idle = 0;  ///< idle time of that stream between its first and last work in the step: recomputed
  bool gpu_bound = false;     ///< the device's busiest stream works for more than half of the step
};

/// One entry a step of `trees`, in its order.
std::vector<StepTime> StepTimes(const trace::Store& store, const trace::Trees& trees, const Graph& graph,
                                const Times& times);

/// The same for any stretch of time of one process, as the whole recording of a file that has no steps: from its first
/// point to its last.
StepTime WholeTime(const trace::Store& store, const trace::Trees& trees, const Graph& graph, const Times& times,
                   trace::ProcessRow process);

}  // namespace teller::retime
