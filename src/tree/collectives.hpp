#pragma once

#include "trace/step.hpp"
#include "trace/store.hpp"

namespace teller::tree {

/// Matches collectives over the ranks of a run, puts the run on one clock by them, and splits each rank's time into
/// wait and transfer. Members are NCCL kernels (by communicator, sequence where the file has one) or gloo worker spans;
/// where no sequence is recorded, by ordinal (LabelMembers). The clocks are what FitClocks makes of the members' ends;
/// the store's times are shifted (ShiftToReference), so call this before anything that keeps times. Needs nesting.
/// Fills collectives and the clock members of `trees`. Two arrivals closer than the ranks' PairError are not ordered:
/// late_rank is then -1. Where clocks are not tied, wait and transfer come from the durations alone and nobody is late.
void MatchCollectives(trace::Store& store, trace::Trees& trees);

/// The how-manieth process of its rank each process is: replicas of a service have equal ranks and are no peers.
std::vector<int> Replicas(const trace::Store& store);

/// True for spans that are one rank's part of a collective (not its enqueue): NCCL kernels, gloo worker spans, and
/// operators that block in one (vLLM's and SGLang's shared-memory all-reduce on CPUs).
bool IsCollectiveSpan(const trace::Store& store, uint32_t span);

/// True for names of calls that communicate, blocking or not.
bool IsCommunicationName(std::string_view name);

}  // namespace teller::tree
