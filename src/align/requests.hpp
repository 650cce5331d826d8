#pragma once

#include "trace/step.hpp"
#include "trace/store.hpp"

namespace teller::align {

/// Builds one tree per request from whatever exists: OTLP spans and log records that state times and counts
/// (Store::request_records), log lines that carry an id, and the steps of the traces. Fills Trees::requests.
///
/// Phases: durations that a source states are taken as stated; what lies between them is the front end (before) and the
/// output (after). Their sum is the end-to-end time to the nanosecond, with an explicit rest that nobody explains.
/// Steps: those whose marks tell how many requests they prefill and decode, as far as times and token counts leave only
/// one choice (align/request_steps.hpp).
/// Call after AlignLogs.
void BuildRequests(trace::Store& store, trace::Trees& trees);

}  // namespace teller::align
