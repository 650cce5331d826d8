#pragma once

#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "report/page.hpp"
#include "report/sink.hpp"

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

/// The same as one JSON object, schema "teller.logs/1", record by record. Errors: those of the sink.
base::Status WriteLogsJson(const engine::Run& run, const Sink& sink);

}  // namespace teller::report
