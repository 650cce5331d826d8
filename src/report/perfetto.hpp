#pragma once

#include "base/status.hpp"
#include "engine/engine.hpp"
#include "report/sink.hpp"

namespace teller::report {

/// Writes the run as Chrome-trace JSON that Perfetto and chrome://tracing open: every span, launch arrows, log records
/// as instants, and first a process "TELLER findings" with one track a finding that marks its steps and evidence.
/// Times are relative to `baseTimeNanoseconds`. Errors: those of the sink.
base::Status WritePerfetto(const engine::Run& run, const trace::Diagnosis& diagnosis, const Sink& sink);

}  // namespace teller::report
