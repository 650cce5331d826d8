#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trace/clock.hpp"
#include "trace/store.hpp"

namespace teller::tree {

/// When each process that took part in a collective left it, by its own clock.
struct CollectiveEnds {
  struct Member {
    uint32_t process = 0;
    trace::Nanos end = 0;
  };
  uint32_t kind = 0;            ///< of which sort; sorts whose members leave in an order of their own widen the error
  std::vector<Member> members;  ///< each process once
};

/// What the collectives say about the clocks of a run.
struct ClockFit {
  std::vector<trace::ProcessClock> clocks;  ///< one a process; those in no collective are not linked
  trace::Nanos error = 0;                   ///< largest error between any two linked processes
  size_t linked = 0;                        ///< processes tied to the reference, itself among them
  size_t corrected = 0;
  std::vector<std::pair<uint32_t, uint32_t>> host_disagrees;  ///< processes of one host whose clocks do not agree
};

/// Ties the clocks together by what a trace itself proves: the members of a collective leave it together. The process
/// with the most collectives is the reference; every other one gets an offset and a drift against it, through the
/// fewest and best-proven steps (two communicators that share one rank are a chain of two). Robust: up to a quarter of
/// the collectives may be left late by any time. `hosts` (empty text: unknown) lets processes of one host share a clock
/// where the fit does not contradict. The error is a half width that holds over the whole window of a process's
/// collectives, for all processes at once, in 99 of 100 runs. It is what the *scatter* proves: a rank that always
/// leaves later by the same time looks like an offset. Clocks that agree within their error, or within the spread of
/// single collectives, are not corrected; the difference is then part of the error. A process with fewer than three
/// collectives, or whose error is as long as its window, is not linked: nothing orders its events against others.
/// Deterministic. Cost: collectives times members, plus members squared for groups of up to 128.
ClockFit FitClocks(size_t processes, const std::vector<std::string>& hosts,
                   const std::vector<CollectiveEnds>& collectives);

/// Puts every time of the store onto the reference clock, where FitClocks found a correction: spans, instants,
/// counters, flows, communication records, and requests that spans state. A process that reports requests (OTLP) has
/// the clock of the traced process with its process id or name, else that of its host's traced processes, where these
/// share one. What belongs to no corrected process stays. Log records and what they state are align's. Order and
/// nesting inside a process are kept.
void ShiftToReference(trace::Store& store, const std::vector<trace::ProcessClock>& clocks);

}  // namespace teller::tree
