#pragma once

#include "trace/step.hpp"
#include "trace/store.hpp"

namespace teller::tree {

/// Matches collectives over the ranks of a run and splits each rank's time into wait and transfer.
/// Members are NCCL kernels (by communicator, sequence where the file has one) or gloo worker spans. Where no sequence
/// is recorded, the n-th of a name on one rank meets the n-th on the others, after the shift that makes their ends agree
/// best (profilers start at unequal steps). Fills collectives, clock_error and clock_method of `trees`.
/// Ends of members agree when clocks do: the median disagreement per rank is taken out when it is larger than its own
/// spread, and half the remaining spread is the clock error.
void MatchCollectives(const trace::Store& store, trace::Trees& trees);

/// True for spans that are one rank's part of a collective (not its enqueue): NCCL kernels, gloo worker spans, and
/// operators that block in one (vLLM's and SGLang's shared-memory all-reduce on CPUs).
bool IsCollectiveSpan(const trace::Store& store, uint32_t span);

/// True for names of calls that communicate, blocking or not.
bool IsCommunicationName(std::string_view name);

}  // namespace teller::tree
