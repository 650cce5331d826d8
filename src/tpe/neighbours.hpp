#pragma once

#include <cstdint>
#include <vector>

namespace teller::tpe {

/// Counts of the tokens that stand on one side of a new token, by id and depth difference. Few differ, so each id has a
/// chain. Threads: confined.
class Neighbours {
 public:
  struct Row {
    uint32_t id = 0;
    uint32_t delta = 0;
    uint32_t next = 0;         ///< row + 1 of the next one with this id; 0 = none
    uint32_t size = 0;         ///< positions
    uint64_t count = 0;        ///< positions times weight
    uint32_t* into = nullptr;  ///< where the next position is written; null when no list is wanted
  };

  /// Ids are below `bound` from now on.
  void Prepare(uint32_t bound) {
    if (first_.size() < bound) first_.resize(bound + bound / 2, 0);
  }
  /// The row of a neighbour, which is made when it is new.
  uint32_t Find(uint32_t id, uint32_t delta) {
    for (uint32_t row = first_[id]; row != 0; row = rows_[row - 1].next) {
      if (rows_[row - 1].delta == delta) return row - 1;
    }
    rows_.push_back({id, delta, first_[id], 0, 0, nullptr});
    first_[id] = static_cast<uint32_t>(rows_.size());
    return first_[id] - 1;
  }
  std::vector<Row>& rows() { return rows_; }
  /// Cost: O(rows).
  void Clear() {
    for (const Row& row : rows_) first_[row.id] = 0;
    rows_.clear();
  }
  uint64_t bytes() const { return first_.capacity() * sizeof(uint32_t) + rows_.capacity() * sizeof(Row); }

 private:
  std::vector<uint32_t> first_;  // by id: row + 1, 0 = none
  std::vector<Row> rows_;
};

}  // namespace teller::tpe
