#pragma once

#include <vector>

#include "locate/cpu_witness.hpp"
#include "trace/diagnosis.hpp"
#include "trace/step.hpp"
#include "trace/store.hpp"

namespace teller::locate {

/// A front end that stood still although it had work: a scrape of its counters, which come regularly, was answered long
/// after its time, and by host counters the process used no processor meanwhile, although one was free and requests
/// were under way whose tokens it has to pass on. One of the two alone proves nothing: scrapes come late on a full
/// machine, and a process without work rests. One finding a process, the longest time; the more late scrapes were
/// looked at, the likelier one looks like it by chance.
std::vector<trace::Finding> FindUnanswered(const trace::Store& store, const trace::Trees& trees,
                                           const CpuWitness& witness, const std::vector<trace::Note>& notes = {});

/// Joins them into `findings`. What says more about the same process at that time stays alone.
void JoinUnanswered(std::vector<trace::Finding> unanswered, std::vector<trace::Finding>& findings);

}  // namespace teller::locate
