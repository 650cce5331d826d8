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
};

/// Finds the shapes of all messages (first lines) and fills template_id and parameters of every record.
/// Two messages are one shape when they have equally many words and most of them agree; a word that looks like a name
/// or a value may differ, one of language only among many that agree. Text behind a colon that is never the same twice
/// is one hole. Same records, same result. Cost: one pass over the text, and for each masked form that is new a
/// comparison with the shapes of equal length and beginning. Two forms whose 64-bit hashes are equal count as one.
/// Source: He et al. 2017, "Drain: An Online Log Parsing Approach with Fixed Depth Tree", with typed holes found first.
TemplateTable MineTemplates(trace::Store& store, const MineOptions& options = {});

}  // namespace teller::logs
