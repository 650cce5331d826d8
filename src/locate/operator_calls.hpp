#pragma once

#include <vector>

#include "locate/hypothesis.hpp"

namespace teller::locate {

/// An operator that one rank calls many times as often as every other rank in the same steps, and as itself in others,
/// while nearly all other operators are called equally often. Only steps that share a collective and do not differ in
/// batch or tokens are compared. Ranks of one job run one program: more to compute makes
/// calls longer, or repeats all that belongs to a layer, but does not repeat one operator alone.
std::vector<Hypothesis> SearchOperatorCalls(const Scene& scene);

}  // namespace teller::locate
