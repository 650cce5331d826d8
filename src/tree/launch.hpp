#pragma once

#include "trace/step.hpp"
#include "trace/store.hpp"

namespace teller::tree {

/// Joins GPU work to the API call that launched it, on (process, correlation, graph node); fills launches and counts.
void LinkLaunches(const trace::Store& store, trace::Trees& trees);

}  // namespace teller::tree
