#pragma once

#include <vector>

#include "trace/diagnosis.hpp"
#include "trace/step.hpp"
#include "trace/store.hpp"

namespace teller::locate {

/// Processes that died without a word: they are gone from counters of the host that go on (a sample of their own is
/// missing, not only the end of a round), requests that had arrived by then never ended, and the logs that there are
/// tell of nobody who asked for an end. At most one finding, PROC_DEATH of the process that went first; none where
/// `told` names a death already. Cost: O(n log n) in samples, requests and log records, however many processes are
/// gone.
std::vector<trace::Finding> FindVanished(const trace::Store& store, const trace::Trees& trees,
                                         const std::vector<trace::Finding>& told);

}  // namespace teller::locate
