#pragma once

#include "trace/step.hpp"
#include "trace/store.hpp"

namespace teller::tree {

/// Finds the steps of every traced process, their shapes and the gaps before them. Marks of engines are preferred
/// (step_name.hpp), then the most regular annotation family, then repetition of the operator sequence.
/// Needs Spans::parent (Nest). Order of the result: by process, then begin.
std::vector<trace::Step> FindSteps(trace::Store& store);

}  // namespace teller::tree
