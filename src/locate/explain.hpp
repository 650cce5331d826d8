#pragma once

#include "locate/hypothesis.hpp"
#include "trace/diagnosis.hpp"

namespace teller::locate {

/// Writes a hypothesis as a finding: class, culprit, steps, victims, cost, evidence (ids E1.. within the finding) and an
/// explanation in which every number stands in an evidence or was computed from one.
trace::Finding Explain(const Scene& scene, const Hypothesis& hypothesis);

}  // namespace teller::locate
