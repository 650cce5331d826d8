#pragma once

#include "locate/hypothesis.hpp"

namespace teller::locate {

/// An operator that a process calls many times as often for a stretch of steps as in all its other steps of their kind,
/// where the number never varies, while nearly all other operators are called as often as ever. A program that does
/// something else calls other operators too; one that has more to compute makes calls longer.
std::vector<Hypothesis> SearchRepeatedCalls(const Scene& scene);

}  // namespace teller::locate
