#pragma once

#include <vector>

#include "trace/diagnosis.hpp"
#include "trace/store.hpp"

namespace teller::locate {

/// Halves the confidence in what was found by comparing ranks, and says so, where a trace or part of it was lost:
/// what is missing may be the cause, and then the rank that is left looks guilty.
void DoubtWhatLostRanksMayExplain(const trace::Store& store, std::vector<trace::Finding>& findings);

}  // namespace teller::locate
