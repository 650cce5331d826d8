#pragma once

#include <vector>

#include "locate/hypothesis.hpp"
#include "trace/diagnosis.hpp"

namespace teller::locate {

/// Drops claims that the work itself explains (a rank that waits for one with a larger batch, a stretched step that had
/// more to do than its peers) and says so in a note.
void DropExplained(const Scene& scene, std::vector<Hypothesis>& claims, std::vector<trace::Note>& notes);

/// Notes steps that are long because of their shape: a long prompt, a full batch.
void NoteLongSteps(const Scene& scene, std::vector<trace::Note>& notes);

}  // namespace teller::locate
