#pragma once

#include <algorithm>
#include <cstdint>

#include "tpe/pair_table.hpp"
#include "tpe/vocabulary.hpp"

namespace teller::tpe {

/// The neighbouring nodes that occur inside entries. Each of them is the seam of a merge: the last node of its left and
/// the first of its right. Two nodes that are no seam lie in two tokens in every encoding. Threads: immutable.
class Seams {
 public:
  Seams(const Vocabulary& vocabulary, uint64_t hash_seed) : words_(hash_seed) {
    std::vector<uint32_t> first(vocabulary.size());
    std::vector<uint32_t> last(vocabulary.size());
    for (uint32_t id = 0; id < vocabulary.size(); ++id) {
      first[id] = last[id] = id;
      if (!vocabulary.is_merge(id)) continue;
      const Pair pair = vocabulary.pair(id);
      first[id] = first[pair.left];
      last[id] = last[pair.right];
      words_.FindOrAdd(WordOf(last[pair.left], first[pair.right], vocabulary.last_depth(pair.left) + 1 - pair.delta),
                       1);
    }
  }
  /// Whether a token may hold a node `left` at depth `left_depth` and right after it `right` at `right_depth`.
  bool Joins(uint32_t left, uint32_t left_depth, uint32_t right, uint32_t right_depth) const {
    return words_.Find(WordOf(left, right, left_depth + 1 - right_depth)) != PairTable::kNone;
  }

 private:
  /// `up`: how much less deep than a child the right node is. Large ones share a value, which only makes fewer cuts.
  static uint64_t WordOf(uint32_t left, uint32_t right, uint32_t up) {
    return Word({left, right, std::min(up, kMaxDelta)});
  }

  PairTable words_;
};

}  // namespace teller::tpe
