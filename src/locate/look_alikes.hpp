#pragma once

#include <vector>

#include "locate/hypothesis.hpp"
#include "trace/diagnosis.hpp"

namespace teller::locate {

/// Drops claims that a healthy service also gives rise to, and says in a note what was seen: one short pause, the first
/// call of an operator with sizes that it had not met, operators that read the context of a long prompt.
void DropLookAlikes(const Scene& scene, std::vector<Hypothesis>& claims, std::vector<trace::Note>& notes);

}  // namespace teller::locate
