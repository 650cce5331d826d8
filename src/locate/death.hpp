#pragma once

#include "trace/diagnosis.hpp"
#include "trace/step.hpp"
#include "trace/store.hpp"

namespace teller::locate {

/// What traces add to a finding that a log makes of a process's death; other findings stay as they are.
/// Names the rank that no log names: the one rank of the job that left no trace, where all others did. Adds the steps
/// in which the others were when it happened: each process's last one, if it was not over before and had begun when
/// they complained.
void CompleteDeath(const trace::Store& store, const trace::Trees& trees, trace::Finding& finding);

}  // namespace teller::locate
