#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "locate/hypothesis.hpp"

namespace teller::locate {

/// What repairing the accused would have changed, by re-timing the run.
struct Counterfactual {
  Nanos saved = 0;        ///< by which the job's abnormal steps would have been shorter, all together
  Nanos lost = 0;         ///< what the claim says was lost in them
  uint32_t worst = 0;     ///< index into Trees::steps: the claim's worst step
  Nanos worst_saved = 0;  ///< by which that step and the gap before it would have been shorter
};

/// A claim whose repair saves less than this share of what it says was lost is not necessary for the incident.
inline constexpr double kNecessary = 0.3;

/// Re-times the run once for each claim with what it accuses at its normal time. A step of the job is over when the
/// last rank has done it: repairing a rank that another one would have been waited for anyway saves nothing. One entry
/// a claim; none where the claim names nothing that could be changed, or is not one of the `most` that lost most.
std::vector<std::optional<Counterfactual>> TestClaims(const Scene& scene, const std::vector<Hypothesis>& claims,
                                                      size_t most = SIZE_MAX);

}  // namespace teller::locate
