#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.hpp"
#include "inject/label.hpp"
#include "retime/replay.hpp"

namespace teller::inject {

/// A fault to put into a recorded run.
struct Plant {
  std::string fault;                        ///< one of PlantKinds()
  std::optional<int> rank;                  ///< whose; chosen by the seed when not given
  std::optional<int> peer;                  ///< slow-link: the other end; any when not given
  std::string op;                           ///< slow-operator: name, or a part that fits one only
  double scale = 3;                         ///< slow-operator, straggler, slow-link: factor, > 1
  base::Nanos length = 250 * base::kMilli;  ///< pause; > 0
  std::optional<uint32_t> first_step;       ///< index; by default the run's middle third
  std::optional<uint32_t> last_step;
  uint64_t seed = 1;
};

struct PlantKind {
  const char* name;
  const char* what;
  std::vector<std::string_view> options;  ///< of `lab retime` that say something about it
};
const std::vector<PlantKind>& PlantKinds();

/// What to change, and the truth about it ("none": no changes, no culprit, no window). Times of the label's window are
/// recorded ones: they move with the replay.
struct Planted {
  retime::Changes changes;
  Label label;
  std::vector<uint32_t> steps;  ///< indices into Trees::steps, of the culprit's process
  std::string op;               ///< full name
};

/// Plans the fault. Errors: kUsage (no such fault, a fault that this run cannot have), kNotFound (rank, step,
/// operator).
base::Result<Planted> PlanFault(const engine::Run& run, const Plant& plant);

}  // namespace teller::inject
