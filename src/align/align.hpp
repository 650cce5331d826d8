#pragma once

#include "trace/step.hpp"
#include "trace/store.hpp"

namespace teller::align {

/// Ties every log record to the traced process that wrote it and to the step in or before which it was written, with a
/// confidence and the reason. A record's process is found by process id, else by rank, else by the only process of that
/// name, else by the only traced process of the run. Its step is the one whose interval, widened by the gap before it
/// and by the record's time error, holds the record's time; when the error spans several steps the confidence is one
/// over their number, and statistics lines that tell a step's tokens pick the step whose shape they fit. Where tree
/// corrected a process's clock, stamps that this process wrote itself are shifted with its spans; arrival times, and
/// what is anchored to them, are of the collecting host's clock and stay. Fills the log clock of `trees`: the basis of
/// the records that fall into traced time, and the largest error among them.
void AlignLogs(trace::Store& store, trace::Trees& trees);

}  // namespace teller::align
