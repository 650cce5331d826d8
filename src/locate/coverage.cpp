#include "locate/coverage.hpp"

#include <algorithm>

namespace teller::locate {

using base::Nanos;

Coverage::Coverage(std::vector<std::pair<Nanos, Nanos>> intervals) {
  std::sort(intervals.begin(), intervals.end());
  for (const auto& [begin, end] : intervals) {
    if (end <= begin) continue;
    if (!merged_.empty() && begin <= merged_.back().second) {
      merged_.back().second = std::max(merged_.back().second, end);
    } else {
      merged_.emplace_back(begin, end);
    }
  }
  Nanos sum = 0;
  for (const auto& [begin, end] : merged_) {
    before_.push_back(sum);
    sum += end - begin;
  }
}

Nanos Coverage::Of(Nanos begin, Nanos end) const {
  return end <= begin ? 0 : Before(end) - Before(begin);
}

/// Covered time in front of `at`.
Nanos Coverage::Before(Nanos at) const {
  const auto after = std::upper_bound(merged_.begin(), merged_.end(), at,
                                      [](Nanos t, const auto& interval) { return t < interval.first; });
  if (after == merged_.begin()) return 0;
  const auto last = after - 1;
  return before_[static_cast<size_t>(last - merged_.begin())] + std::min(at, last->second) - last->first;
}

}  // namespace teller::locate
