#pragma once

#include "trace/diagnosis.hpp"
#include "trace/step.hpp"
#include "trace/store.hpp"

namespace teller::locate {

/// What logs and collective records alone prove.
struct LogCauses {
  std::vector<trace::Finding> findings;  ///< first causes, not their echoes; evidence filled, ids not yet
  std::vector<trace::Note> notes;        ///< look-alikes: orderly shutdown, harmless tracebacks, profiler export
};

/// First cause in the logs: errors, deaths, out-of-memory, KV pressure, rejected requests, Xid and so on, each with
/// class, culprit process and rank, onset and the line that names it. Loud consequences are victims of a finding, never
/// one.
LogCauses FindLogCauses(const trace::Store& store);

/// Who diverged or stalled according to NCCL Flight Recorder dumps.
LogCauses FindCommRecordCauses(const trace::Store& store);

/// Late ranks, slow communicators and slow pairs according to NCCL Inspector's measurements.
LogCauses FindCommPerfCauses(const trace::Store& store);

/// Links and network paths that are worse than all that should be like them, according to NCCL's own words about its
/// topology. What is slow everywhere is a note.
LogCauses FindTopologyCauses(const trace::Store& store);

}  // namespace teller::locate
