#pragma once

#include <string>

#include "locate/hypothesis.hpp"

namespace teller::locate {

/// True when the other ranks had begun the next step and waited in it for half of the pause's worst piece or longer:
/// whoever schedules had done its part.
bool OthersHadBegun(const Scene& scene, const Hypothesis& pause);

/// True when the rank stood still where it takes in its next request, while the others had begun.
bool IsTakingRequestsIn(const Scene& scene, const Hypothesis& pause);

/// True when by host counters `process` used a part of a processor over the whole claim, neither next to nothing nor
/// most of one; false where there are no counters.
bool UsedAPart(const Scene& scene, const Hypothesis& pause, const std::string& process);

/// True when `process` (as host counters name it) stood still for equal parts of a scheduler's period in one step after
/// the other, each time until the same moment of it, and used a little of a processor all the while: a quota stops a
/// process that has used its part up until the next period. What is stopped as a whole uses nothing, and a collection
/// uses all of it.
bool IsThrottled(const Scene& scene, const Hypothesis& pause, const std::string& process);

}  // namespace teller::locate
