#pragma once

#include <cstdint>
#include <map>

#include "trace/step.hpp"

namespace teller::locate {

/// Requests whose wait before the scheduler is the front end's own although the engine was idle: request row -> wait.
///
/// Several requests in a row (two that agree to within a hundredth, or three that agree roughly) each waited alone, from their own arrival on, for about the same time (or the same time
/// for each token of their prompts). Whatever stops or slows an engine begins and ends at times of its own and cuts
/// such waits to different lengths; what begins with each arrival is work on that request. Where steps were recorded,
/// only requests whose place in time they prove are looked at.
std::map<uint32_t, trace::Nanos> OwnDelays(const trace::Trees& trees);

}  // namespace teller::locate
