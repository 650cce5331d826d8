#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "encode/forest.hpp"
#include "engine/engine.hpp"
#include "tpe/corpus.hpp"

namespace teller::engine {

/// Forests of many runs without their times: what vocabularies are trained on and measured with. 8 bytes a node.
/// Threads: immutable once read.
struct Structures {
  /// One traced file of one run.
  struct Source {
    std::string path;        ///< run and file
    std::string run;         ///< as named on the command line
    std::string engine;      ///< "vllm" ...; "other" when unknown
    bool has_steps = false;  ///< its run has
  };
  /// One forest.
  struct Piece {
    uint32_t source = 0;
    encode::Segment::Kind kind = encode::Segment::Kind::kStep;
    uint64_t begin = 0;  ///< position of its first node
    uint32_t size = 0;
    uint32_t structure = 0;  ///< nodes that are no spans
  };

  /// What was named and is not among the sources.
  struct Skipped {
    std::string path;
    std::string why;
    bool lost = false;  ///< damaged or not readable: it may have held a trace
  };

  encode::SymbolTable table;
  std::vector<Source> sources;  ///< order: as read: test runs, then others, each by canonical path
  std::vector<Piece> pieces;    ///< order: by source, then time
  std::vector<uint32_t> symbols;
  std::vector<uint32_t> depths;
  std::vector<Skipped> skipped;   ///< order: as read
  std::vector<std::string> lost;  ///< runs of which something was lost, skipped ones too: `teller inspect` says what
  uint64_t spans = 0;             ///< of traced processes

  std::span<const uint32_t> SymbolsOf(const Piece& piece) const { return {symbols.data() + piece.begin, piece.size}; }
  std::span<const uint32_t> DepthsOf(const Piece& piece) const { return {depths.data() + piece.begin, piece.size}; }
  /// Steps are what is measured; of a run that has none, all of it.
  bool IsStep(const Piece& piece) const {
    return piece.kind == encode::Segment::Kind::kStep || !sources[piece.source].has_steps;
  }
};

/// What to read.
struct StructureInputs {
  std::vector<std::string> paths;   ///< each is one run
  std::vector<std::string> test;    ///< runs that are kept for measuring
  std::vector<std::string> graphs;  ///< files of learned graphs, for every run
};

/// Opens the runs one after the other, so that only one is in memory. The order of paths does not matter. Test runs are
/// read first and every recording is read once, however the paths that hold it are spelled or nested, and also where it
/// stands in another file (a copy, packed otherwise): so what a test run holds is never part of another one. What is
/// there but not usable is skipped, because shells expand patterns to all that lies beside the runs. Errors: those of
/// Open, with the run; kNotFound when a path is not there or none of them holds spans (what was damaged goes before);
/// kLimit.
base::Result<Structures> ReadStructures(const StructureInputs& inputs, unsigned threads, base::Progress* progress);

/// Everything of `structures` whose source is in `sources` (by row; empty = all), steps or not.
/// Errors: those of Corpus::Add.
base::Result<tpe::Corpus> CorpusOf(const Structures& structures, const std::vector<bool>& sources);

}  // namespace teller::engine
