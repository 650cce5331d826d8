#pragma once

#include <string>

#include "inject/plant.hpp"
#include "inject/rewrite.hpp"

namespace teller::inject {

/// A case that was made.
struct MadeCase {
  Label label;
  uint64_t files = 0;
  RewriteCounts events;
  base::Nanos recorded = 0;  ///< from the run's first step to its last, as recorded
  base::Nanos changed = 0;   ///< the same with the fault
};

/// Makes a labelled case out of a recorded run: its Chrome traces, re-timed as if the fault had been there, and the
/// label. `root` is the folder or file that the run was opened from. Logs, spans and counters are not carried over:
/// their times would be those of the healthy run. `folder` must not exist; it is written beside and renamed when whole.
/// Errors: those of PlanFault and RewriteTrace; kUsage (`folder` exists, the fault makes no step longer); kUnsupported
/// (no Chrome trace in the run, or one in an archive); kUnreadable (cannot write).
base::Result<MadeCase> MakeRetimedCase(const engine::Run& run, const std::string& root, const Plant& plant,
                                       const std::string& folder);

}  // namespace teller::inject
