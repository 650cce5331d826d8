#pragma once

#include <optional>

#include "locate/counterfactual.hpp"
#include "locate/hypothesis.hpp"
#include "trace/diagnosis.hpp"

namespace teller::locate {

/// Writes a hypothesis as a finding: class, culprit, steps, victims, cost, evidence (ids E1.. within the finding) and
/// an explanation in which every number stands in an evidence or was computed from one. `test` is what re-timing said
/// of it: a claim whose repair would not help loses most of its score.
trace::Finding Explain(const Scene& scene, const Hypothesis& hypothesis, const std::optional<Counterfactual>& test);

}  // namespace teller::locate
