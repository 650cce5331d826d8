#pragma once

#include "tpe/encoder.hpp"
#include "tpe/rank_encoder.hpp"
#include "tpe/seams.hpp"

namespace teller::tpe {

/// What an encoder keeps of its vocabulary. Threads: immutable.
struct Encoder::Tables {
  Tables(const Vocabulary& vocabulary, uint64_t hash_seed)
      : rank(vocabulary, hash_seed), seams(vocabulary, hash_seed) {}

  bool IsBase(uint32_t symbol) const { return symbol < rank.entries.size() && rank.entries[symbol].rank == 0; }

  RankTables rank;
  Seams seams;
};

}  // namespace teller::tpe
