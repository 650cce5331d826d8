#pragma once

#include <cstdint>
#include <vector>

#include "ingest/common/block.hpp"
#include "trace/store.hpp"

namespace teller::ingest {

/// Worker ids of one worker to the store's.
struct IdMaps {
  std::vector<trace::StringId> strings;
  std::vector<uint8_t> categories;
};

/// Rows [first, last) of one block, all of one lane.
struct Source {
  Block* block = nullptr;
  uint32_t block_order = 0;  ///< position in the file; breaks ties as input order does
  uint32_t first = 0;
  uint32_t last = 0;
};

/// Where the args of a piece go.
struct ArgOffsets {
  uint64_t op = 0, gpu = 0, py = 0, comm = 0, attributes = 0;
};

/// A time range of one track: sources of sorted runs, and where the result goes. Pieces are independent of each other.
struct Piece {
  trace::TrackRow track;
  trace::Nanos base_time = 0;
  bool durations = true;                  ///< as FileParts::durations
  std::vector<std::vector<Source>> runs;  ///< each run's sources follow each other in time
  uint64_t first_span = 0;
  ArgOffsets args;
};

/// Cuts a track (the sources are in input order) into pieces; fills `runs` and leaves the offsets open.
std::vector<Piece> CutTrack(trace::TrackRow track, const std::vector<Source>& sources);

uint64_t SpanCount(const Piece& piece);
ArgOffsets ArgCounts(const Piece& piece);

/// Writes the piece's spans and args, in order, into columns of `store` that have room for them. `maps` by worker.
void MergePiece(const Piece& piece, const std::vector<IdMaps>& maps, trace::Store& store);

}  // namespace teller::ingest
