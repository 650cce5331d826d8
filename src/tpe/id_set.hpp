#pragma once

#include <cstdint>
#include <vector>

namespace teller::tpe {

/// A set of ids below a bound whose smallest member is found in one step for each level of 64-way words, so that the
/// cost does not grow with the bound. Threads: confined.
class IdSet {
 public:
  IdSet() { Reset(0); }

  /// Empties the set; members are below `bound` from now on.
  void Reset(uint32_t bound) {
    levels_.clear();
    uint32_t size = bound;
    do {
      size = size / 64 + 1;
      levels_.emplace_back(size, 0);
    } while (size > 1);
  }
  bool empty() const { return levels_.back()[0] == 0; }
  void Add(uint32_t id) {
    for (auto& level : levels_) {
      uint64_t& word = level[id / 64];
      const bool was_empty = word == 0;
      word |= 1ULL << (id % 64);
      if (!was_empty) return;
      id /= 64;
    }
  }
  /// Takes the smallest member out. The set is not empty.
  uint32_t PopSmallest() {
    uint32_t id = 0;
    for (size_t level = levels_.size(); level-- > 0;) {
      id = id * 64 + static_cast<uint32_t>(__builtin_ctzll(levels_[level][id]));
    }
    uint32_t up = id;
    for (auto& level : levels_) {
      level[up / 64] &= ~(1ULL << (up % 64));
      if (level[up / 64] != 0) break;
      up /= 64;
    }
    return id;
  }

 private:
  std::vector<std::vector<uint64_t>> levels_;  // a bit above is set when the word below is not zero
};

}  // namespace teller::tpe
