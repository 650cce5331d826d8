#pragma once

#include <string>
#include <vector>

#include "locate/normal.hpp"
#include "trace/step.hpp"
#include "trace/store.hpp"

namespace teller::locate {

/// What stands in the way of an answer when nothing was found, as sentences that say what to capture; the first is the
/// most important. Empty: what was given suffices to call the run normal.
std::vector<std::string> WhatIsMissing(const trace::Store& store, const trace::Trees& trees,
                                       const std::vector<StepNormal>& normals);

}  // namespace teller::locate
