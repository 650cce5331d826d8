#pragma once

#include "tpe/encoder.hpp"
#include "tpe/match_encoder.hpp"
#include "tpe/rank_encoder.hpp"
#include "tpe/seams.hpp"

namespace teller::tpe {

/// What an encoder keeps of its vocabulary. Threads: immutable.
struct Encoder::Tables {
  Tables(const Vocabulary& vocabulary, uint64_t hash_seed)
      : rank(vocabulary, hash_seed), match(vocabulary, rank, hash_seed), seams(vocabulary, hash_seed) {
    while (leading_bases < rank.entries.size() && rank.entries[leading_bases].rank == 0) ++leading_bases;
    has_late_bases = leading_bases < vocabulary.base_count();
  }

  bool IsBase(uint32_t symbol) const { return symbol < rank.entries.size() && rank.entries[symbol].rank == 0; }

  RankTables rank;
  MatchTables match;
  Seams seams;
  uint32_t leading_bases = 0;   ///< ids below are bases
  bool has_late_bases = false;  ///< whether an extension put bases behind merges
};

}  // namespace teller::tpe
