#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "ingest/log/stamp.hpp"
#include "ingest/log/statistics.hpp"
#include "trace/log_record.hpp"

namespace teller::ingest::log {

/// Who wrote a line, from the prefixes that launchers, containers and engines put before it.
struct Origin {
  std::string process;
  std::string host;
  std::optional<int64_t> pid;
  std::optional<int> rank;
  Stamp stamp;  ///< of a container runtime or syslog, when the record has none itself
  trace::LogLevel level = trace::LogLevel::kUnknown;  ///< of a journal, when the record has none itself
  bool kernel = false;                                ///< the syslog program was the kernel
  bool any() const { return !process.empty() || pid || rank; }
};

/// What a grammar made of one line. Views point into the line, or into `storage` where the line had to be decoded.
struct ParsedLine {
  bool header = false;  ///< begins a record; false for bare text
  trace::LogSource source = trace::LogSource::kUnknown;
  trace::LogLevel level = trace::LogLevel::kUnknown;
  Stamp stamp;
  std::shared_ptr<const std::string> storage;
  std::string_view logger;
  std::string_view message;
  std::string process;
  std::optional<int64_t> pid;
  std::optional<int> rank;
  std::string request;    ///< from a field of its own; empty when only the message can tell
  Statistics statistics;  ///< from fields of their own, as ParseStatistics names them
};

/// Removes known prefixes from the front of `line` until none matches.
/// Source: docs/reference/log-grammars.md, section 1.
void PeelPrefixes(std::string_view& line, Origin& origin);

/// Recognizes one line whose prefixes are peeled. Lines in no known grammar come back without `header`.
ParsedLine ParseLine(std::string_view line, const Origin& origin);

/// "INFO", "WARN", "error" and so on; kUnknown for other words.
trace::LogLevel LevelFromWord(std::string_view word);
trace::LogLevel LevelFromLetter(char letter);

/// A tqdm-like bar: "Loading shards:  61%|###  | 59/96 [04:27<02:55,  4.76s/it]".
struct ProgressBar {
  int64_t done = 0;
  int64_t total = 0;
  double elapsed_s = -1;
  double seconds_per_item = -1;
  size_t length = 0;  ///< bytes of the line that belong to it
};
std::optional<ProgressBar> ParseProgressBar(std::string_view line);

}  // namespace teller::ingest::log
