#pragma once

#include <nlohmann/json.hpp>

#include "report/page.hpp"
#include "trace/store.hpp"

namespace teller::report {

/// What NCCL Inspector measured, by communicator, operation and size: calls, bandwidth, and how often each rank came
/// last.
void AddMeasurements(const trace::Store& store, Page& page);
nlohmann::ordered_json MeasurementsToJson(const trace::Store& store);

}  // namespace teller::report
