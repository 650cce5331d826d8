#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/engine.hpp"

namespace teller::report {

/// The verdict as one JSON object, schema "teller.diagnosis/1" (docs/reference/teller.diagnosis-1.schema.json).
/// Times are integers; what does not apply is null; bytes that are no UTF-8 are replaced. At most 20 findings unless
/// `all`.
nlohmann::ordered_json DiagnosisToJson(const engine::Run& run, const trace::Diagnosis& diagnosis, bool all);

/// JSON text of `value`, with bytes that are no UTF-8 replaced and a line break at the end.
std::string JsonText(const nlohmann::ordered_json& value);

/// Input diagnostics as in the verdict: [{code, severity, file, at, count, text}].
nlohmann::ordered_json DiagnosticsToJson(const trace::Store& store);

/// A time or null.
nlohmann::ordered_json JsonTime(base::Nanos at);

}  // namespace teller::report
