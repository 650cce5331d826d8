#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "report/page.hpp"

namespace teller::report {

/// Range of one value of the statistics lines.
struct StatisticRange {
  std::string key;
  uint64_t count = 0;
  double smallest = 0;
  double median = 0;
  double largest = 0;
  double last = 0;
};
/// Order: by key.
std::vector<StatisticRange> StatisticRanges(const trace::Store& store);

/// Records, templates and statistics of the logs of a run.
std::string LogsToText(const engine::Run& run, const TextOptions& options);

/// The same as one JSON object, schema "teller.logs/1".
nlohmann::ordered_json LogsToJson(const engine::Run& run);

}  // namespace teller::report
