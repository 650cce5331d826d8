#pragma once

#include <vector>

#include "trace/diagnosis.hpp"
#include "trace/step.hpp"
#include "trace/store.hpp"

namespace teller::locate {

/// Processes that by host counters used far less of a processor than they always do while they serve, for a while in
/// which a processor was idle and requests were in the engine: what has work and a free processor and does not run is
/// held back. A little in each sample is a quota (CPU_STARVED), next to nothing is a stop (RUNTIME_PAUSE).
///
/// Asked only of processes whose use hardly varies otherwise: those that compute or spin whenever requests are in the
/// engine (then their time there counts), or at all times (then any time with a request under way does). Times at which
/// a profiler held up serving (`notes`) do not count.
std::vector<trace::Finding> FindUnusedProcessors(const trace::Store& store, const trace::Trees& trees,
                                                 const std::vector<trace::Note>& notes);

}  // namespace teller::locate
