#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "ingest/log/parsed_line.hpp"

namespace teller::ingest::log {

/// Fields of a log line that is one JSON object, as far as they could be read; of a line that was cut, too.
struct JsonFields {
  std::string message;
  std::string exception;  ///< text of a traceback in a field of its own
  std::string logger;
  std::string target;
  std::string function;
  Stamp stamp;
  trace::LogLevel level = trace::LogLevel::kUnknown;
  std::optional<int64_t> pid;
  std::optional<int> rank;
  Statistics statistics;
  bool unix_seconds = false;  ///< the time is a whole number: llama.cpp's way
  bool ray = false;           ///< has Ray's own fields
  std::string task;           ///< llama.cpp's task, as written
};

/// Reads a whole object. False when it is none, or no text is found in it.
bool ReadJsonFields(std::string_view line, JsonFields& out);
/// Reads what is left of an object that was cut off or overwritten by another writer. False when no text is found.
bool ReadCutJson(std::string_view line, JsonFields& out);

}  // namespace teller::ingest::log
