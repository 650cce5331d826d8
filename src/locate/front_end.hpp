#pragma once

#include <vector>

#include "locate/cpu_witness.hpp"
#include "trace/diagnosis.hpp"
#include "trace/step.hpp"
#include "trace/store.hpp"

namespace teller::locate {

/// What request trees prove about the front end: HTTP server, tokenizer, event loop before the scheduler; detokenizer
/// and the way out after it. These write no spans of their own; they show as time between a request's arrival and its
/// admission while the engine took others or began further steps, and between the making of a token and its leaving.
///
/// Only time that the engine cannot have caused counts. Before admission that is up to the last moment at which the
/// engine demonstrably took work without this request; where the front end states when it handed the request on, up to
/// that. So a stopped engine, a profiler that writes its file or a full queue blame nobody here.
/// What grows with the prompt, and what one request waits for others that arrived together with it, is expected.
///
/// Waits that reach into a time at which a profiler held up serving (`notes`) do not tell what is usual.
///
/// `witness` tells, where it can, a front end that stood still as a whole from one that worked.
std::vector<trace::Finding> FindFrontEndCauses(const trace::Store& store, const trace::Trees& trees,
                                               const std::vector<trace::Note>& notes = {},
                                               const CpuWitness* witness = nullptr);

}  // namespace teller::locate
