#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trace/log_record.hpp"

namespace teller::ingest::log {

/// Id of the one request a message is about, as written ("cmpl-7f3a-0", "0025-006"); llama.cpp's tasks become "task
/// 12". Empty when the message names none or several. Without an id of a request, the id of a trace (OpenTelemetry)
/// counts. Text inside quotes (a prompt) is not searched. Cost: one pass over the message. Source:
/// docs/reference/log-grammars.md, section 6.
std::string RequestId(trace::LogSource source, std::string_view message);

inline constexpr size_t kMaxNamedIds = 4096;  ///< of one message; the rest is not looked at

/// One of several ids in a message.
struct NamedId {
  std::string_view id;  ///< inside the message, as written
  int family = 0;       ///< ids under keys of one kind ("req_id", "req_ids") have the same
};

/// The requests that a message about several names ("req_ids=['a', 'b']", "Aborted request(s) a,b.", a dump of a
/// scheduler), each once, in order; empty when it names one or none. Two names under two different keys are taken for
/// one request's. Errors: none; ids beyond kMaxNamedIds are left out. Source: docs/reference/log-grammars.md,
/// section 6.
std::vector<NamedId> NamedIds(trace::LogSource source, std::string_view message);

}  // namespace teller::ingest::log
