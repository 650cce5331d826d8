#pragma once

#include <optional>
#include <string>

#include "base/status.hpp"
#include "inject/sim/faults.hpp"

namespace teller::inject::sim {

struct SimulateOptions {
  Engine engine = Engine::kVllm;
  int ranks = 1;
  int stages = 1;                   ///< pipeline parallel; a share of the ranks each
  std::string fault = "none";       ///< a kind, a class, or "mix": every kind that fits, in turn
  std::optional<double> magnitude;  ///< above 0 (barely visible) to 1 (fatal); drawn when not given
  int count = 1;
  uint64_t seed = 1;
  int steps = 60;   ///< recorded ones
  double lost = 0;  ///< share of events that the profiler lost
  double late = 0;  ///< share of log lines that arrive late
  unsigned threads = 0;
};

struct Simulated {
  int cases = 0;
  uint64_t trace_bytes = 0;
};

/// Writes `count` labelled cases as folders below `folder`, which must not exist. Each case has its own generator,
/// seeded by the seed and its number: the bytes do not depend on threads. All appear at once when all are whole, or
/// none. Errors: kUsage (FindKind; a folder that is there; ranks that make no replicas or stages), kUnreadable (cannot
/// be written).
base::Result<Simulated> Simulate(const SimulateOptions& options, const std::string& folder);

}  // namespace teller::inject::sim
