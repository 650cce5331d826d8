#pragma once

#include <vector>

#include "locate/hypothesis.hpp"

namespace teller::locate {

/// Keeps one claim per incident: those that another one explains are dropped (a stretched step whose time one operator
/// takes, a wait behind a late rank, the same slow operator on every rank). Order of the result: most lost time first.
std::vector<Hypothesis> SelectCauses(const Scene& scene, std::vector<Hypothesis> claims, double false_alarms);

}  // namespace teller::locate
