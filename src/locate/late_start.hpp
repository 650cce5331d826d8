#pragma once

#include <cstdint>
#include <vector>

#include "locate/profile.hpp"
#include "trace/step.hpp"

namespace teller::locate {

/// For each step, in the order of `Trees::steps`: how long all other members of a collective had waited for its process
/// while that was between two steps. They have work to do, so this part of the gap is a stall, whatever the steps
/// around it say. Less than scheduling costs anyway is 0.
std::vector<Nanos> LateStarts(const trace::Trees& trees);

/// True when a process is hardly ever between two steps without running sequences, but for late starts. What stops a
/// process at no place of its own hardly meets it there.
bool IsHardlyEverIdle(const trace::Trees& trees, const std::vector<StepProfile>& profiles, trace::ProcessRow process);

}  // namespace teller::locate
