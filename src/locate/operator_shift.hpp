#pragma once

#include <optional>
#include <vector>

#include "locate/deviation.hpp"
#include "locate/operator_costs.hpp"

namespace teller::locate {

/// An operator that became several times slower in a stretch of successive steps, is as usual in all others, and whose
/// neighbours in the same steps are as usual too. It need not be much of a step: what its own spread tells from chance
/// is a fault, though a small one. Only steps are looked at that have equals (same shape). `start` carries process and
/// rank; `deviations` are those of the process, in order.
std::optional<Hypothesis> FindShiftedOperator(const Scene& scene, const OperatorTable& table, SlotKey::Kind kind,
                                              const std::vector<Deviation>& deviations, const Hypothesis& start);

}  // namespace teller::locate
