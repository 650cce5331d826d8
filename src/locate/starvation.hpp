#pragma once

#include <optional>
#include <vector>

#include "locate/deviation.hpp"

namespace teller::locate {

/// Steps of one process that are stretched as a whole, the loss at changing places: what a process looks like that does
/// not get its CPU. Either each of them loses time in many pieces, or each in one piece but at another place every time
/// (a scheduler with long slices). `start` carries process and rank, `typical` is the own time of a typical step, ns.
std::optional<Hypothesis> FindStarvation(const Scene& scene, Hypothesis start, const std::vector<Deviation>& deviations,
                                         double typical);

}  // namespace teller::locate
