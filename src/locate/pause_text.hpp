#pragma once

#include <string_view>

#include "locate/naming.hpp"

namespace teller::locate {

// What findings say of why a process stood still.
inline constexpr std::string_view kCrowdedOut =
    "By host counters no processor was idle meanwhile and other programs had a good part of them: it waited for one.";
inline constexpr std::string_view kThrottled =
    "These pauses are alike and come in one step after the other, and by host counters it used a little of a processor "
    "all the while: as under a quota.";
inline constexpr std::string_view kInPeriods =
    "These pauses are alike, come soon after each other and end at the same moment of periods of 100 ms, as under a "
    "processor quota.";
inline constexpr std::string_view kTakingIn =
    " No sequence of its own ran: it was between two requests, where it hardly ever is, and the other ranks waited for "
    "it to begin the next one.";

/// The same of what its host time was spent on.
inline std::string_view PauseReason(HostTime time) {
  switch (time) {
    case HostTime::kWorking: return "Interpreter frames come and go all the while: that code works.";
    case HostTime::kBlocked: return "All of it is inside that one call.";
    case HostTime::kCollecting: return "It is inside the garbage collector.";
    case HostTime::kStopped:
      return "The open frames do nothing meanwhile, as when a process is stopped or collects garbage.";
    case HostTime::kUnknown:
      return "Without interpreter frames a stopped process, a collection and host work look alike; it happens at no "
             "place of its own.";
  }
  return {};
}

}  // namespace teller::locate
