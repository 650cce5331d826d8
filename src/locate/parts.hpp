#pragma once

#include <vector>

#include "locate/resources.hpp"

namespace teller::locate {

/// What a step consists of, in any order.
using Parts = std::vector<Cost>;

/// Whether most of what these steps normally take is in parts that are stretched, by the root of `factor` at least: all
/// became slower and not one part alone. Cost: O(parts).
bool AreBroad(const std::vector<Parts>& steps, double factor);

/// Whether the parts of these steps are stretched alike: their factors differ hardly more than those of other steps do.
/// A slower processor does that; who shares one, or is stopped now and then, loses time here and there.
/// Cost: O(n log n) for n parts.
bool AreStretchedAlike(const std::vector<Parts>& steps, const std::vector<Parts>& others);

}  // namespace teller::locate
