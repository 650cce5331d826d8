#pragma once

#include <map>
#include <string>
#include <vector>

#include "ingest/common/block.hpp"
#include "trace/store.hpp"

namespace teller::ingest {

/// What one file tells about who wrote it.
struct FileIdentity {
  trace::FileRow file;
  std::map<std::string, std::string> top;  ///< JSON text of top-level values
  std::vector<Naming> namings;             ///< order: as in the file
  size_t first_track = 0;                  ///< its tracks in the store
  size_t last_track = 0;
};

/// Makes Process rows and ties tracks to them, names tracks, finds rank, world size, host and engine.
///
/// A Kineto file is written by one profiled process, but its pids also number devices and stand for pseudo-processes
/// ("Spans", "Traces"). The pid with most host spans is the profiled process; a pid with host spans and no device spans
/// is a process of its own (files merged by other tools); every other pid belongs to the profiled process. So launches
/// and GPU work of one file meet in one process.
/// `pids` is the pid text of each track in the store.
void ResolveProcesses(const FileIdentity& identity, const std::vector<std::string>& pids, trace::Store& store);

/// Times of a file count from here: baseTimeNanoseconds, or 0. `latest` is the file's latest relative time; a base that
/// would push it beyond int64 is not believed.
trace::Nanos BaseTime(const std::map<std::string, std::string>& top, trace::Nanos latest, trace::FileRow file,
                      base::Diagnostics& diagnostics);

}  // namespace teller::ingest
