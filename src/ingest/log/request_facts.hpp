#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "trace/store.hpp"

namespace teller::ingest::log {

/// What an engine's log states about single requests, as rows of Store::request_records:
/// SGLang's "Finish: obj=.., out={.. 'meta_info': {..}}", llama.cpp's timings of a task, TGI's end-of-request lines.
/// Nothing is derived. Threads: confined. One object a file.
/// Source: docs/reference/log-grammars.md, section 7.
class RequestFacts {
 public:
  RequestFacts(trace::FileRow file, trace::Store& store) : file_(file), store_(store) {}

  /// Looks at the records in the order of the file. `tail` is the end of a line that was longer than the limit, empty
  /// when nothing was cut. Diagnostics: log.request-cut when such a line hides its facts.
  void Add(const trace::LogRecord& record, std::string_view tail);

 private:
  void AddSglang(const trace::LogRecord& record, std::string_view tail);
  void AddLlama(const trace::LogRecord& record);
  void AddTgi(const trace::LogRecord& record);
  trace::RequestRecord Begin(const trace::LogRecord& record, std::string_view engine) const;

  trace::FileRow file_;
  trace::Store& store_;
  std::map<std::string, trace::RequestRecord> open_;  // llama.cpp: timings of a task come on several lines
};

/// Requests whose line does not state when they ended, ended when the line was written; those that a line lists were
/// named then. Call when log times are known.
void FinishRequestTimes(trace::Store& store);

}  // namespace teller::ingest::log
