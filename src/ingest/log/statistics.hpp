#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace teller::ingest::log {

using Statistics = std::vector<std::pair<std::string, double>>;

/// Key/value pairs of a statistics line, empty for other lines. Engines add and reorder fields between releases, so the
/// line is read as a list, never by position. Keys are snake_case; those that mean the same in several engines share a
/// name (running, waiting, kv_usage, prefix_hit_rate, prompt_throughput, generation_throughput, iteration_ms, ...).
/// Units: percentages are fractions, throughputs tokens per second, *_ms milliseconds.
/// Source: docs/reference/log-grammars.md, section 4.
Statistics ParseStatistics(std::string_view message);

/// Status code of an access line ('"POST /v1/completions HTTP/1.1" 200 OK'), or 0.
int HttpStatus(std::string_view message);

}  // namespace teller::ingest::log
