#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/diagnostics.hpp"
#include "ingest/nsys/database.hpp"
#include "trace/types.hpp"

namespace teller::ingest::nsys {

/// Parts of a globalTid or globalPid: 16 bits of machine, 24 bits of process id, 24 bits of thread id. A process is
/// known by all bits above the thread's, so that equal pids of two machines stay apart.
constexpr int64_t ProcessKey(int64_t global) {
  return global >> 24;
}
constexpr int64_t ProcessId(int64_t key) {
  return key & 0xFFFFFF;
}
constexpr int64_t ThreadId(int64_t global) {
  return global & 0xFFFFFF;
}

/// What an export tells about the recording as a whole.
struct Session {
  trace::Nanos base = 0;  ///< added to every time: the session's start on the epoch, or 0
  std::string host;
  std::optional<int> rank;  ///< of the process that was launched, by its environment
  std::optional<int> world_size;
  std::optional<int64_t> only_process;              ///< key of the one process that made CUDA calls, when it is one
  std::map<int64_t, std::string> processes;         ///< name by process key
  std::map<int64_t, std::string> threads;           ///< name by globalTid
  std::map<int64_t, std::string> gpus;              ///< name by device
  std::vector<std::pair<int64_t, int64_t>> leaves;  ///< innermost symbol's string id by sample id, sorted
  uint64_t frames = 0;                              ///< of call chains, all
};

class Names;

/// Reads the tables about the recording. `max_rows` bounds each. What is missing or damaged becomes a diagnostic.
Session ReadSession(const Database& database, trace::FileRow file, uint64_t max_rows, const Names& names,
                    base::Diagnostics& diagnostics);

}  // namespace teller::ingest::nsys
