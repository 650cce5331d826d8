#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/store.hpp"

namespace teller::logs {

/// A shape that many messages share: "slot release: id <int> | task <int> | stop processing: n_tokens = <int>".
struct Template {
  uint32_t id = 0;   ///< from 1, in the order of first occurrence; LogRecord::template_id
  std::string text;  ///< holes are <int>, <float>, <hex>, <addr>, <path>, <id>, <dur> or <*>
  trace::LogSource source = trace::LogSource::kUnknown;
  trace::LogLevel level = trace::LogLevel::kUnknown;  ///< highest seen
  uint64_t count = 0;
  trace::LogRow first;  ///< first record of this shape
};

struct TemplateTable {
  std::vector<Template> templates;  ///< order: by id
  uint64_t beyond_limit = 0;        ///< records left without a template because there were too many shapes
};

struct MineOptions {
  size_t max_templates = 10'000;  ///< a log of free text must not grow the table for ever
  double similarity = 0.6;        ///< share of equal words from which two messages of one length are one shape
};

/// Finds the shapes of all messages (first lines) and fills template_id and parameters of every record.
/// Same records, same result. Cost: O(words x templates of equal length and beginning).
/// Source: He et al. 2017, "Drain: An Online Log Parsing Approach with Fixed Depth Tree", with typed holes found first.
TemplateTable MineTemplates(trace::Store& store, const MineOptions& options = {});

}  // namespace teller::logs
