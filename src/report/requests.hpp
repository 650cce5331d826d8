#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/status.hpp"
#include "engine/engine.hpp"
#include "report/page.hpp"
#include "report/sink.hpp"

namespace teller::report {

/// All requests of a run: percentiles of TTFT, TPOT, end-to-end time and queue, one line a request, and why the slowest
/// took so long.
std::string RequestsToText(const engine::Run& run, const TextOptions& options);
/// The same as one JSON object, schema "teller.requests/1", request by request. Errors: those of the sink.
base::Status WriteRequestsJson(const engine::Run& run, const Sink& sink);

/// The request that `id` names: its own id, or a part of it that no other has. Errors: kNotFound.
base::Result<trace::RequestRow> FindRequest(const engine::Run& run, const std::string& id);

/// The tree of one request: phases, steps with its share, who blocked it, log lines.
std::string RequestToText(const engine::Run& run, trace::RequestRow row, const TextOptions& options);
/// The same as one JSON object, schema "teller.request/1".
nlohmann::ordered_json RequestToJson(const engine::Run& run, trace::RequestRow row);

}  // namespace teller::report
