#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/nanos.hpp"

namespace teller::retime {

/// Middle value; `otherwise` when there is none. Takes the values apart.
inline base::Nanos Median(std::vector<base::Nanos>& values, base::Nanos otherwise) {
  if (values.empty()) return otherwise;
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Mean of the values without the largest and smallest twentieth. Sums of many are then right, which medians of skewed
/// values would not give, and one odd value does not count.
inline base::Nanos TrimmedMean(std::vector<base::Nanos>& values, base::Nanos otherwise) {
  if (values.empty()) return otherwise;
  std::sort(values.begin(), values.end());
  const size_t cut = values.size() / 20;
  double sum = 0;
  for (size_t i = cut; i < values.size() - cut; ++i) sum += static_cast<double>(values[i]);
  return static_cast<base::Nanos>(sum / static_cast<double>(values.size() - 2 * cut));
}

}  // namespace teller::retime
