#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trace/step.hpp"
#include "trace/store.hpp"

namespace teller::locate {

/// Whom somebody blames, whoever that is: a rank with all that it does by itself, or one operator on it.
struct Accusation {
  std::optional<int64_t> rank;  ///< none: whoever takes these steps
  std::string op;               ///< name as in the trace; empty: all that the rank does by itself
  std::vector<uint32_t> steps;  ///< all that are called abnormal, indices into Trees::steps; only the rank's own count
};

/// By re-timing: of the time by which the job's steps are longer than normal, the share that is gone with the accused
/// at their normal time, 0..1. 0 too where the steps are no longer than nine of ten others: there is nothing to save.
/// None where it cannot be told: the rank takes none of these steps, does not call the operator there, or has too few
/// steps to say what is normal. One entry an accusation. Cost: one replay of the run each.
std::vector<std::optional<double>> RestoredShares(const trace::Store& store, const trace::Trees& trees,
                                                  const std::vector<Accusation>& accusations);

}  // namespace teller::locate
