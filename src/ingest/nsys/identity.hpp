#pragma once

#include <string>
#include <vector>

#include "ingest/nsys/scan.hpp"
#include "trace/store.hpp"

namespace teller::ingest::nsys {

/// Makes the Process rows of one export, whose tracks are [first_track, last_track) of the store, and ties the tracks
/// to them; names tracks; finds ranks, engine and host. An export may hold many processes: one per process key. `pids`
/// is the process key, as text, of each track of the store.
///
/// A process's rank is told by its own name or a thread's ("MPI Rank 3", "Worker_TP1"); where the export has one
/// process with GPU work, by the environment that it was launched with, or the file's path; else, where every such
/// process has GPU work on one device of its own, the order of devices is taken (a diagnostic says so).
void ResolveProcesses(const Export& source, size_t first_track, size_t last_track, const std::vector<std::string>& pids,
                      trace::Store& store);

}  // namespace teller::ingest::nsys
