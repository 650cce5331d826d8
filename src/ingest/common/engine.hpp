#pragma once

#include <string>
#include <string_view>

#include "trace/store.hpp"

namespace teller::ingest {

/// The engine whose process bears this name or title ("VLLM::Worker_TP0"); empty when it tells none.
std::string EngineOfName(std::string_view name);

/// The engine that the spans of tracks [first_track, last_track) prove by their names (step marks, frames, operators);
/// empty when none does.
std::string EngineOfSpans(const trace::Store& store, size_t first_track, size_t last_track);

/// Engine's own process name: what follows "VLLM::" or "sglang::"; empty for an interpreter's name, which tells
/// nothing.
std::string EngineProcessName(std::string_view process_name);

}  // namespace teller::ingest
