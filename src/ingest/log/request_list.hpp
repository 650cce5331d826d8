#pragma once

#include <map>
#include <string>

#include "trace/store.hpp"

namespace teller::ingest::log {

/// What a log record that names several requests says about each of them: lists of ids, vLLM's dump of the scheduler's
/// output when the engine dies, the requests of a batch as SGLang's watchdog prints them. One row of
/// Store::request_records per request and file, of source kList: the latest record counts. Threads: confined. One
/// object a file. Source: docs/reference/log-grammars.md, section 7.
class RequestLists {
 public:
  RequestLists(trace::FileRow file, trace::Store& store) : file_(file), store_(store) {}

  /// Looks at the records in the order of the file.
  void Add(const trace::LogRecord& record);

 private:
  trace::FileRow file_;
  trace::Store& store_;
  std::map<std::string, size_t, std::less<>> rows_;  // by process and id: row of Store::request_records
};

}  // namespace teller::ingest::log
