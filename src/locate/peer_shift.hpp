#pragma once

#include <vector>

#include "locate/hypothesis.hpp"

namespace teller::locate {

/// Ranks that become slower than their peers for a stretch of steps, as a whole: their host code (kStarvation, even) or
/// all kernels of their device (kSlowDevice). Ranks of one job take the same steps at the same time, so what one takes
/// against the others is known even where no step has an equal one, and what all of them share (the machine, the shape)
/// drops out. A rank without peers is compared with its own equal steps, its device only.
std::vector<Hypothesis> SearchPeerShifts(const Scene& scene);

}  // namespace teller::locate
