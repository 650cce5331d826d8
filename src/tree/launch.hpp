#pragma once

#include "trace/step.hpp"
#include "trace/store.hpp"

namespace teller::tree {

/// Joins GPU work to the API call that launched it, found by (process, correlation); fills launches and counts. All
/// kernels of a graph launch join the one call; the graph node tells them apart.
void LinkLaunches(const trace::Store& store, trace::Trees& trees);

}  // namespace teller::tree
