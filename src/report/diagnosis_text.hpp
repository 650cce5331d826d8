#pragma once

#include <string>

#include "engine/engine.hpp"
#include "report/page.hpp"

namespace teller::report {

/// The verdict for a person at a terminal: verdict, what was read, findings with evidence, notes, input problems.
std::string DiagnosisToText(const engine::Run& run, const trace::Diagnosis& diagnosis, const TextOptions& options);

/// The table of input diagnostics, or nothing when there are none.
void AddDiagnostics(const trace::Store& store, Page& page);
/// Files that gave nothing, and why; nothing when all were used.
void AddUnusedFiles(const trace::Store& store, Page& page);
/// "Read   2 traces ...": counts, time range and clock.
void AddWhatWasRead(const engine::Run& run, Page& page);

}  // namespace teller::report
