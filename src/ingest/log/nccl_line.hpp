#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "trace/log_record.hpp"

namespace teller::ingest::log {

/// The front of an NCCL line: "host:pid:tid [device] file:line NCCL WARN message".
struct NcclHeader {
  size_t begin = 0;    ///< of the host, in the text that was looked at
  size_t message = 0;  ///< of the message
  std::string_view host;
  int64_t pid = 0;
  int64_t tid = 0;
  int32_t device = -1;
  std::string_view logger;  ///< "misc/socket.cc:50"; empty when not told
  std::string_view kind;    ///< "INFO", "WARN", "TRACE", "CALL", "ERROR"
};

/// INFO, TRACE and CALL are information; WARN and ERROR what they say.
trace::LogLevel NcclLevel(std::string_view kind);

/// Reads a header at the very front of `text`. Source: NCCL, src/debug.cc (2.4 to 2.27).
std::optional<NcclHeader> ParseNcclHeader(std::string_view text);

/// Finds the first header at or behind `from`. NCCL writes into the same pipe as everybody else, so its line may begin
/// in the middle of another one; where its host name is glued to a word, `hosts` (names that were seen at the front of
/// lines) tells where it begins.
std::optional<NcclHeader> FindNcclHeader(std::string_view text, size_t from,
                                         const std::unordered_set<std::string>& hosts);

}  // namespace teller::ingest::log
