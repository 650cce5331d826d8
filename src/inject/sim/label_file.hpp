#pragma once

#include <string>
#include <vector>

#include "inject/label.hpp"
#include "inject/sim/faults.hpp"
#include "inject/sim/machine.hpp"

namespace teller::inject::sim {

/// A recorded step that was surely under the fault.
struct AbnormalStep {
  uint32_t index = 0;  ///< of the annotations of its rank, from 0
  std::string annotation;
  std::vector<Stay> ranks;
};

/// What the injector knows about a case; times are true ones.
struct Truth {
  const KindInfo* kind = nullptr;
  double magnitude = 0;
  uint64_t seed = 0;
  int rank = -1;
  std::vector<int64_t> accepted_ranks;
  std::string process;
  std::string op;
  std::string log_record;  ///< the first line that the fault itself wrote, as its writer put it there
  Interval window;
  std::vector<Interval> activations;
  std::vector<Interval> observer;
  std::vector<AbnormalStep> steps;
  bool explained = false;  ///< the steps are slow for reasons of the load
  std::vector<std::pair<std::string, double>> params;
};

/// label.json of a simulated case.
std::string LabelText(const Truth& truth, const Layout& layout, const std::string& name);

}  // namespace teller::inject::sim
