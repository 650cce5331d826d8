#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ingest/kineto/block.hpp"
#include "ingest/kineto/worker.hpp"
#include "trace/store.hpp"

namespace teller::ingest {

/// What was read from one file, before it is merged into the store.
struct FileParts {
  trace::FileRow file;
  std::vector<std::unique_ptr<Block>> blocks;  ///< order: as in the file
  trace::Nanos base_time = 0;                  ///< added to every time of the file
  bool durations = true;                       ///< false: they are absurd, all are taken as 0
};

/// What Assemble leaves open for ResolveProcesses.
struct Assembled {
  std::vector<std::string> pids;     ///< pid text of each track of the store
  std::vector<size_t> first_tracks;  ///< of each file, and one past the last
};

/// Merges all blocks into `store`: numbers strings, categories and lanes in order of first use, sorts spans, adjusts
/// rows of args, adds base times; tallies go to the File rows. Releases blocks as it goes.
/// Order of tracks: by file, then first use. Their processes stay open (and counters hold a track's row where their
/// process belongs); ResolveProcesses fills them.
Assembled Assemble(std::vector<FileParts>& files, const std::vector<std::unique_ptr<Worker>>& workers,
                   trace::Store& store, unsigned threads, uint64_t max_spans);

}  // namespace teller::ingest
