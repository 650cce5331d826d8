#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/structures.hpp"
#include "engine/vocabulary.hpp"

namespace teller::engine {

/// How a set of steps encodes.
struct TokenCounts {
  uint64_t files = 0;
  uint64_t steps = 0;
  uint64_t nodes = 0;
  uint64_t structure = 0;  ///< nodes that are no spans (threads, streams)
  uint64_t tokens = 0;
  uint64_t unknown = 0;  ///< nodes whose name the vocabulary lacks

  /// Part of the nodes that is saved: 1 - tokens / nodes; 0 when there are none.
  double saved() const { return nodes == 0 ? 0 : 1 - static_cast<double>(tokens) / static_cast<double>(nodes); }
};

struct EngineCounts {
  std::string engine;
  TokenCounts counts;
};

struct TokenUse {
  uint32_t id = 0;
  uint64_t count = 0;
  uint64_t nodes = 0;  ///< that it covers in all
};

/// What a vocabulary makes of runs.
struct TokenStats {
  std::vector<EngineCounts> engines;  ///< of steps; order: by engine
  TokenCounts steps;                  ///< of all engines
  TokenCounts outside;                ///< what lies outside of steps (`steps` counts segments)
  std::vector<TokenUse> used;         ///< in steps; order: most nodes first, then id
};

/// Encodes everything. Deterministic, whatever the number of threads. Errors: those of VocabularySymbols::Check and
/// Encoder::Encode.
base::Result<TokenStats> MeasureTokens(const Structures& structures, const tpe::Vocabulary& vocabulary,
                                       unsigned threads, base::Progress* progress);

}  // namespace teller::engine
