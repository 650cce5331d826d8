#pragma once

#include <utility>
#include <vector>

#include "base/nanos.hpp"

namespace teller::locate {

/// The union of intervals, and how much of any other interval it covers. Immutable.
class Coverage {
 public:
  Coverage() = default;
  /// Intervals [first, second) in any order, overlapping or not; those that end before they begin cover nothing.
  /// Cost: O(n log n).
  explicit Coverage(std::vector<std::pair<base::Nanos, base::Nanos>> intervals);

  /// Time of [begin, end) that is covered. Cost: O(log n).
  base::Nanos Of(base::Nanos begin, base::Nanos end) const;

 private:
  base::Nanos Before(base::Nanos at) const;

  std::vector<std::pair<base::Nanos, base::Nanos>> merged_;  // disjoint, in order
  std::vector<base::Nanos> before_;                          // covered in front of each
};

}  // namespace teller::locate
