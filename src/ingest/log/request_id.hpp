#pragma once

#include <string>
#include <string_view>

#include "trace/log_record.hpp"

namespace teller::ingest::log {

/// Id of the one request a message is about, as written ("cmpl-7f3a-0", "0025-006"); llama.cpp's tasks become "task
/// 12". Empty when the message names none or several. Without an id of a request, the id of a trace (OpenTelemetry)
/// counts. Text inside quotes (a prompt) is not searched. Cost: one pass over the message. Source:
/// docs/reference/log-grammars.md, section 6.
std::string RequestId(trace::LogSource source, std::string_view message);

}  // namespace teller::ingest::log
