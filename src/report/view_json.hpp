#pragma once

#include <nlohmann/json.hpp>

#include "engine/engine.hpp"

namespace teller::report {

/// What the HTML page draws besides the verdict: timeline, call tree and log lines of the focus, step durations.
/// Times are relative to "base_ns" so that they stay exact in a browser. Bounded in size; says what was left out.
nlohmann::ordered_json ViewToJson(const engine::Run& run, const trace::Diagnosis& diagnosis);

}  // namespace teller::report
