#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/engine.hpp"
#include "report/page.hpp"

namespace teller::report {

/// What a change would have made of a step, for a person.
std::string WhatIfToText(const engine::Run& run, const retime::Answer& answer, const TextOptions& options);
/// The same as one JSON object, schema "teller.whatif/1"; durations in ns.
nlohmann::ordered_json WhatIfToJson(const engine::Run& run, const retime::Answer& answer);

}  // namespace teller::report
