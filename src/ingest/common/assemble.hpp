#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ingest/common/block.hpp"
#include "ingest/common/worker.hpp"
#include "trace/store.hpp"

namespace teller::ingest {

/// What was read from one file, before it is merged into the store.
struct FileParts {
  trace::FileRow file;
  std::vector<std::unique_ptr<Block>> blocks;  ///< order: as in the file
  trace::Nanos base_time = 0;                  ///< added to every time of the file
  bool durations = true;                       ///< false: they are absurd, all are taken as 0
};

/// Durations are added up downstream, also over all files: the sum must stay inside int64. Clears `parts.durations`
/// when they add up to `limit` or more. Diagnostics: trace.absurd_total.
void CheckTotal(FileParts& parts, trace::Nanos limit, base::Diagnostics& diagnostics);

/// What Assemble leaves open for the reader: whose process a track is.
struct Assembled {
  std::vector<std::string> pids;     ///< pid text of each track of the store; empty for tracks that were there before
  std::vector<size_t> first_tracks;  ///< of each file, and one past the last
};

/// Merges all blocks into `store`, behind what other formats' readers put there: numbers strings, categories and lanes
/// in order of first use, sorts spans, adjusts rows of args, adds base times; tallies go to the File rows. Releases
/// blocks as it goes. Files never share a track, so what is appended leaves the store's order of spans intact. Order of
/// tracks: by file, then first use. Their processes stay open (and counters hold a track's row where their process
/// belongs); the reader fills them. Diagnostics: trace.too_many_categories, trace.too_many_spans.
Assembled Assemble(std::vector<FileParts>& files, const std::vector<std::unique_ptr<Worker>>& workers,
                   trace::Store& store, unsigned threads, uint64_t max_spans);

}  // namespace teller::ingest
