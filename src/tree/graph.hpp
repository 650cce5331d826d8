#pragma once

#include "trace/step.hpp"
#include "trace/store.hpp"

namespace teller::tree {

/// Gives replayed kernels of CUDA and HIP graphs the module and the operator of the capture, or of the eager step, that
/// their sequence is aligned to: Trees::graph_replays and graph_origins. docs/concepts/graphs.md says what counts as a
/// proof. Needs nesting, launch links and steps; interns module paths. Cost: bounded (kMaxTableCells in all).
void AttributeGraphs(trace::Store& store, trace::Trees& trees);

}  // namespace teller::tree
