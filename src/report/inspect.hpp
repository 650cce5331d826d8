#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/engine.hpp"
#include "report/page.hpp"

namespace teller::report {

/// What is in a run: files, processes, span counts by category, time range, links, input problems.
std::string InspectToText(const engine::Run& run, const TextOptions& options);

/// The same as one JSON object, schema "teller.inspect/1".
nlohmann::ordered_json InspectToJson(const engine::Run& run);

}  // namespace teller::report
