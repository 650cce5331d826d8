#pragma once

#include <vector>

#include "locate/profile.hpp"
#include "trace/step.hpp"

namespace teller::locate {

/// What is normal for one step's shape, slot by slot.
struct StepNormal {
  bool judged = false;        ///< false: observer effect, or too few steps of a similar shape
  Nanos predicted = 0;        ///< own time that the shape predicts (regression); 0 when it cannot be fitted
  Nanos expected_own = 0;     ///< sum of expected op and host slots
  Nanos expected_beside = 0;  ///< part of it beside collectives
  Nanos expected_gap = 0;
  Nanos expected_transfer = 0;  ///< of its collectives
  Nanos expected_wait = 0;
  std::vector<Nanos> expected;        ///< of Slot::cost, parallel to StepProfile::slots
  std::vector<Nanos> expected_total;  ///< of Slot::total
  bool same_shape = false;            ///< those steps are of exactly this shape
  uint32_t peers = 0;                 ///< how many similar steps it was compared with
};

/// Normal for every step: similar steps are those for which a robust regression over the shape (new tokens, sequences,
/// elements touched) predicts a similar cost; a slot's normal is the low mode over them, because faults only add time
/// and may hold for most of a trace. Ranks that run the same program are each other's peers.
std::vector<StepNormal> FitNormals(const trace::Trees& trees, const std::vector<StepProfile>& profiles);

}  // namespace teller::locate
