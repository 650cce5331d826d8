#pragma once

#include <vector>

#include "trace/store.hpp"

namespace teller::tree {

/// One period of a thread's operator sequence.
struct Repeat {
  trace::TrackRow track;
  trace::Nanos begin = trace::kNoTime;
  trace::Nanos end = trace::kNoTime;
};

/// Step boundaries of a process without marks: the outermost operators (or GPU kernels where there are none) of its
/// busiest lane repeat with a period; each repetition of the whole sequence is a step. Empty when nothing repeats at
/// least four times or less than 60 % of the sequence does.
std::vector<Repeat> FindRepeats(const trace::Store& store, trace::ProcessRow process);

/// The period of a sequence: the smallest p > 0 for which at least 90 % of positions i have s[i] = s[i + p] and a
/// symbol occurs that is not in every position; 0 when there is none. Cost: O(n * candidates); candidates are distances
/// between repeats of the rarest repeated symbol.
size_t FindPeriod(const std::vector<uint32_t>& sequence);

}  // namespace teller::tree
