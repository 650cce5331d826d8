#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/nanos.hpp"
#include "base/rng.hpp"

namespace teller::inject::sim {

using base::Nanos;
using base::Rng;

/// What a GPU operation of the modelled transformer does.
enum class Role : uint8_t {
  kEmbed,
  kNorm,
  kQkv,
  kQkNorm,
  kRope,
  kKvStore,
  kAttn,
  kProj,
  kGateUp,
  kAct,
  kDown,
  kRoute,
  kExpertUp,
  kExpertDown,
  kHead,
  kSample,
  kCopy,
  kReduce,    ///< all-reduce
  kGather,    ///< all-gather
  kExchange,  ///< all-to-all
  kLogits,    ///< all-gather of the head's parts
  kPass,      ///< from one stage of a pipeline to the next
};
inline constexpr size_t kRoles = 22;

/// What one step has to compute on one rank.
struct Shape {
  int64_t tokens = 0;   ///< new tokens of all sequences
  int64_t context = 0;  ///< keys read by decoding sequences
  int64_t pairs = 0;    ///< query-key pairs of prompts
  int64_t sequences = 0;
};

/// Quantiles of a distribution over Tables::grid; draws interpolate between them.
struct Quantiles {
  std::vector<double> grid;
  std::vector<double> values;

  double Draw(Rng& rng) const;
  double Median() const;
};

/// Derived statistics of real runs (data/sim/tables.json; docs/concepts/simulator.md). Units: microseconds. Immutable.
struct Tables {
  struct Cost {
    double floor = 0;
    double token = 0;
    double context = 0;
    double pair = 0;
  };
  std::array<Cost, kRoles> cost;
  Quantiles short_spread, long_spread, collective_spread;  ///< relative to the median
  Quantiles launch, launch_ex, memcpy, graph_launch, between_launches, launch_to_start, kernel_to_kernel;
  Quantiles between_steps_vllm, between_steps_sglang, end_spread;
  double collective_latency = 0;
  double node_per_byte = 0;
  double network_per_byte = 0;

  /// Typical duration in us of a role for a shape, its matrix products cut into `parts`.
  double Typical(Role role, const Shape& shape, int parts) const;
};

/// The tables that are part of the program.
const Tables& StandardTables();

}  // namespace teller::inject::sim
