#pragma once

#include <utility>
#include <vector>

#include "locate/hypothesis.hpp"

namespace teller::locate {

/// Time of one operator, or of one kernel, beyond what is normal in a stretch of steps.
struct OperatorExcess {
  SlotKey::Kind kind = SlotKey::Kind::kOp;
  uint32_t span = kNoSpan;                        ///< its worst call
  Nanos lost = 0;                                 ///< in all steps of the stretch
  double weight = 0;                              ///< what it lost, times the square of how surprising the stretch is
  std::vector<std::pair<uint32_t, Nanos>> steps;  ///< index into Trees::steps, lost there; worst first
};

/// Time of one process's own beyond what is normal for its steps; waiting for others does not count.
struct OwnExcess {
  trace::ProcessRow process;
  Nanos lost = 0;         ///< in the steps that stand out as a whole; 0 where only parts of them do
  double weight = 0;      ///< of each part of each step: what it lost, times how many spreads that lies above the usual
  double gap_weight = 0;  ///< part of it between steps
  std::vector<std::pair<uint32_t, Nanos>>
      steps;  ///< index into Trees::steps, lost there; those that stand out, worst first
};

/// Processes by how unusual the time is that they lose, most first; none that has too few steps to compare.
/// Cost: O(slots log steps).
std::vector<OwnExcess> RankOwnExcess(const Scene& scene);

/// Operators and kernels of a process, most unusual first. What a whole step is stretched by is no operator's own.
std::vector<OperatorExcess> RankOperators(const Scene& scene, trace::ProcessRow process);

}  // namespace teller::locate
