#pragma once

#include "locate/hypothesis.hpp"

namespace teller::locate {

/// A process that stands still again and again for equal parts of the scheduler's period of 100 ms, each time until the
/// same moment of it, whatever it does: a quota stops who has used its part up until the next period. A loop of its own
/// that goes round in such periods looks the same: it is told by its other interruptions, or by host counters; where
/// neither tells, the claim is a suspicion.
/// Source: Linux kernel, Documentation/scheduler/sched-bwc.rst (`cpu.cfs_period_us`, 100 ms unless set).
std::vector<Hypothesis> SearchQuotas(const Scene& scene);

}  // namespace teller::locate
