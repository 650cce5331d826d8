#pragma once

#include "trace/request.hpp"

namespace teller::align {

/// What all sources together state about one request: the first one that knows a field counts.
void Merge(const trace::RequestRecord& from, trace::RequestRecord& into);

/// Arrival, latencies and counts of `request` from what is stated, and its phases. Nothing is set that is not stated or
/// computed from what is: without an end-to-end time there are no phases.
void SetPhases(const trace::RequestRecord& stated, trace::Request& request);

/// Moves the phases to where a step proves them: `first_token` is when the first token existed in the engine (the end
/// of the last prefill step). Front end and output change, their sum does not. `last_token` (kNoTime when not known) is
/// when the last one existed; it counts where no source states how long decoding took.
void PinPhases(trace::Nanos first_token, trace::Nanos last_token, const trace::RequestRecord& stated,
               trace::Request& request);

}  // namespace teller::align
