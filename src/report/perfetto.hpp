#pragma once

#include <functional>
#include <string_view>

#include "base/status.hpp"
#include "engine/engine.hpp"

namespace teller::report {

/// Takes the next piece of output. Errors: kUnreadable when the system refuses it.
using Sink = std::function<base::Status(std::string_view)>;

/// Writes the run as Chrome-trace JSON that Perfetto and chrome://tracing open: every span, launch arrows, log records
/// as instants, and first a process "TELLER findings" with one track a finding that marks its steps and evidence.
/// Times are relative to `baseTimeNanoseconds`. Errors: those of the sink.
base::Status WritePerfetto(const engine::Run& run, const trace::Diagnosis& diagnosis, const Sink& sink);

}  // namespace teller::report
