#pragma once

#include <cstddef>
#include <cstdint>

#include "locate/hypothesis.hpp"

namespace teller::locate {

/// One step's deviations, sorted out.
struct Deviation {
  uint32_t step = 0;
  double expected = 1;  ///< own time but for what lies beside collectives, ns, > 0
  double own = 1;       ///< the same, measured
  double lost = 0;      ///< sum of slots' excess that matters
  double net = 0;       ///< own - expected
  double ratio = 1;
  double top = 0;       ///< largest single uninterrupted excess
  size_t top_slot = 0;  ///< index into the profile's slots
  double gap_lost = 0;
};

/// Adds a step's loss to a claim and widens its interval. `begin`..`end` is where in the step it was lost.
inline void AddLoss(Hypothesis& h, uint32_t step, double lost, Nanos begin, Nanos end) {
  h.steps.push_back(step);
  h.lost_in.push_back(static_cast<Nanos>(lost));
  h.lost += static_cast<Nanos>(lost);
  if (h.onset == trace::kNoTime || begin < h.onset) h.onset = begin;
  if (h.end == trace::kNoTime || end > h.end) h.end = end;
}

}  // namespace teller::locate
