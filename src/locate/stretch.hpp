#pragma once

#include <optional>
#include <vector>

#include "locate/deviation.hpp"

namespace teller::locate {

/// Successive steps of one process that take longer as a whole than equal steps before and after, by more than those
/// differ. `start` carries process and rank, `typical` is the own time of a typical step, ns; `deviations` are those of
/// the process, in order.
std::optional<Hypothesis> FindStretch(const Scene& scene, Hypothesis start, const std::vector<Deviation>& deviations,
                                      double typical);

}  // namespace teller::locate
