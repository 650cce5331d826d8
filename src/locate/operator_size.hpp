#pragma once

#include "locate/hypothesis.hpp"

namespace teller::locate {

/// True for a claim about a slow operator of a process that computes on the host itself, where the operator may have
/// more to do than in the process's other steps: it takes longer in proportion to the sizes recorded with its calls, or
/// it takes by a list of positions that no recorder shows and that grows with the context, and takes less than ten
/// times as long (more threads share it from some length on).
bool MayTakeMore(const Scene& scene, const Hypothesis& claim);

}  // namespace teller::locate
