#pragma once

#include <vector>

#include "locate/cpu_witness.hpp"
#include "trace/diagnosis.hpp"
#include "trace/step.hpp"
#include "trace/store.hpp"

namespace teller::locate {

/// An engine process that stood still while requests came to it, told from what requests' phases and the steps beside
/// them show:
/// - requests that came at different times, waited long and were taken in together although no step ran in between:
///   the front end went on stamping arrivals, so what did not take them was the scheduler's process;
/// - requests that were scheduled and whose step began long after, although no other ran: the process that computes.
///
/// Where steps were recorded, only stretches between two of the serving process count. Where none were, requests alone
/// can show the first of these: no other one was taken in or finished meanwhile, and the first of them would have had
/// its token before the last came. Then a log must be there and say that no profiler was at work (`notes`). `witness`
/// may clear or convict a process; it need not know any.
std::vector<trace::Finding> FindStandStills(const trace::Store& store, const trace::Trees& trees,
                                            const CpuWitness& witness, const std::vector<trace::Note>& notes = {});

/// Joins them into `findings`: a pause of the same process takes them as evidence. A pause between steps that steps
/// alone lay on the scheduler yields to a process that is shown not to have begun what it was given.
void JoinStandStills(std::vector<trace::Finding> still, std::vector<trace::Finding>& findings);

}  // namespace teller::locate
