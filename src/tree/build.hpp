#pragma once

#include "trace/step.hpp"
#include "trace/store.hpp"

namespace teller::tree {

/// Builds everything above the spans: nesting, launch links, steps with shapes and gaps, collectives over ranks.
trace::Trees Build(trace::Store& store, unsigned threads);

}  // namespace teller::tree
