#pragma once

#include <cstddef>
#include <cstdint>

namespace teller::base {

/// Bounds on what is read from a file. Everything beyond is a counted diagnostic or an error, never an allocation.
struct Limits {
  /// One trace event; the largest seen in real files is a 16 kB args object, hostile ones are endless.
  size_t max_event_bytes = 16u << 20;
  /// One log line kept; the longest real one (SGLang's server_args) has 16 kB.
  size_t max_log_line_bytes = 64u << 10;
  /// Text of one log record kept (a traceback is one record).
  size_t max_log_record_bytes = 64u << 10;
  /// Records of all logs of a run; a record takes some hundred bytes.
  uint64_t max_log_records = 4'000'000;
  /// Nesting of JSON inside one event.
  size_t max_json_depth = 64;
  /// Spans of one run: row numbers are 32 bits.
  uint64_t max_spans = 0xFFFF0000u;
  /// Depth of a call tree; deeper spans become children of the deepest allowed one.
  uint32_t max_tree_depth = 65000;
};

}  // namespace teller::base
