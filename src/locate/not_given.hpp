#pragma once

#include <vector>

#include "trace/diagnosis.hpp"
#include "trace/step.hpp"
#include "trace/store.hpp"

namespace teller::locate {

/// The kinds of input that a run lacks, and what its answer lacks for it: what could not have been found, whatever is
/// wrong. Order: the most telling input first.
std::vector<trace::NotGiven> WhatWasNotGiven(const trace::Store& store, const trace::Trees& trees);

}  // namespace teller::locate
