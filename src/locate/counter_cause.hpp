#pragma once

#include <string>
#include <vector>

#include "trace/diagnosis.hpp"
#include "trace/step.hpp"
#include "trace/store.hpp"

namespace teller::locate {

/// What counters alone prove, each with class, process, interval and the figures:
/// a process that waits for a processor longer than it runs (run-queue time of the host), one that its control group
/// throttles or that does not run although it has work and a processor is free (`own_use`), a machine whose processors
/// others have taken while requests were being served, a process that reads its own pages from disk while it serves,
/// and requests that the engine throws back because its KV cache is full. Counters without times tell an amount, not
/// when. `notes`: what else was seen; while a profiler holds up serving, nobody is blamed for a service that gets
/// little.
std::vector<trace::Finding> FindCounterCauses(const trace::Store& store, const trace::Trees& trees,
                                              const std::vector<trace::Note>& notes = {});

/// Joins what counters prove into `findings`: a finding of the same class and time takes the figures as evidence; else
/// they stand as a finding of their own. Delays in the front end of a process that had no processor are their echo. A
/// service that uses little while one of its processes stands still does so because of that, however full the machine
/// is. `only`: the service's only process, which then is the one that a full machine leaves short.
void JoinCounterCauses(std::vector<trace::Finding> counters, std::vector<trace::Finding>& findings,
                       const std::string& only = {});

/// True when an engine's counter of requests that it threw back covers this time and stands still: whatever else its
/// logs make look likely, none was. Cost: O(counters).
bool CountsNobodyThrownBack(const trace::Store& store, trace::Nanos begin, trace::Nanos end);

/// The name of the only process that host counters tell of; empty where there are several or none.
std::string OnlyCountedProcess(const trace::Store& store);

}  // namespace teller::locate
