#pragma once

#include <cstdint>
#include <vector>

#include "tpe/encoder.hpp"
#include "tpe/forest.hpp"
#include "tpe/id_set.hpp"
#include "tpe/pair_table.hpp"
#include "tpe/tokens.hpp"
#include "tpe/vocabulary.hpp"

namespace teller::tpe {

/// What encoding needs of a vocabulary, by id. Threads: immutable.
struct RankTables {
  RankTables(const Vocabulary& vocabulary, uint64_t hash_seed);

  struct Entry {
    uint32_t left;   ///< for a base: its own id
    uint32_t right;  ///< for a base: its own id
    uint32_t nodes;
    uint32_t rank;  ///< when it comes into being: 0 for bases, the id for merges
  };
  std::vector<Entry> entries;
  PairTable pairs;  ///< Word of a pair -> merge
};

/// Working memory of EncodeByRank. Threads: confined.
class RankScratch {
 public:
  /// Applies the merges in the order of ids, appends the tokens to `out` with first_node counted from `first`. `forest`
  /// is valid and its symbols are bases. Cost: O(nodes), whatever the input: at most 3 list entries for each node, and
  /// each touched merge is found in a constant number of steps. Adds its steps to `steps`.
  void Encode(const RankTables& tables, const ForestView& forest, uint32_t first, Tokens& out, uint64_t& steps);

 private:
  struct Waiting {
    uint32_t position;
    uint32_t next;
  };
  /// Occurrences of one merge that wait, in ascending positions.
  struct Bucket {
    uint32_t head;
    uint32_t tail;
  };
  void Put(uint32_t merge, uint32_t position);
  void PutPair(const RankTables& tables, const ForestView& forest, uint32_t left, uint32_t right);

  std::vector<uint32_t> tokens_;
  std::vector<Waiting> pool_;
  std::vector<Bucket> buckets_;  // by merge; empty between calls
  IdSet touched_;
};

}  // namespace teller::tpe
