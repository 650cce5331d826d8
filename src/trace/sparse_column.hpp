#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace teller::trace {

/// Values that only some spans have: pairs (span row, value) sorted by row.
/// Cost: find is O(log n). Threads: immutable once sorted.
template <class T>
class SparseColumn {
 public:
  void Append(uint32_t row, const T& value) {
    rows_.push_back(row);
    values_.push_back(value);
  }
  void Reserve(size_t n) {
    rows_.reserve(n);
    values_.reserve(n);
  }
  size_t size() const { return rows_.size(); }
  uint32_t row(size_t i) const { return rows_[i]; }
  const T& value(size_t i) const { return values_[i]; }
  T& value(size_t i) { return values_[i]; }

  /// The (first) value of a span, or null. Rows must be sorted.
  const T* Find(uint32_t row) const {
    const auto it = std::lower_bound(rows_.begin(), rows_.end(), row);
    if (it == rows_.end() || *it != row) return nullptr;
    return &values_[static_cast<size_t>(it - rows_.begin())];
  }
  /// All values of a span. Rows must be sorted.
  std::span<const T> FindAll(uint32_t row) const {
    const auto [lo, hi] = std::equal_range(rows_.begin(), rows_.end(), row);
    return {values_.data() + (lo - rows_.begin()), static_cast<size_t>(hi - lo)};
  }
  /// First position whose row is >= `row`; for walking a range of spans.
  size_t LowerBound(uint32_t row) const {
    return static_cast<size_t>(std::lower_bound(rows_.begin(), rows_.end(), row) - rows_.begin());
  }

  std::vector<uint32_t>& rows() { return rows_; }
  std::vector<T>& values() { return values_; }

 private:
  std::vector<uint32_t> rows_;
  std::vector<T> values_;
};

}  // namespace teller::trace
