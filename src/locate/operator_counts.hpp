#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "locate/hypothesis.hpp"

namespace teller::locate {

/// The calls of one operator's name in one step.
struct Calls {
  double count = 0;
  Nanos total = 0;              ///< their own time
  std::vector<uint32_t> slots;  ///< indices into the step's profile, in order
};

/// By name; calls that wait for others are left out. `step`: index into Trees::steps.
std::map<uint32_t, Calls> CallsIn(const Scene& scene, uint32_t step);

/// Adds a step in which `calls` of an operator are `times` as many as usual to a claim about it.
void AddRepeated(const Scene& scene, uint32_t step, const Calls& calls, double times, Hypothesis& h);

}  // namespace teller::locate
