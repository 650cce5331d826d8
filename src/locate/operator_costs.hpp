#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "locate/hypothesis.hpp"

namespace teller::locate {

/// Costs of one operator's name in one step, with everything inside its calls.
struct OperatorCost {
  double cost = 0;      ///< ns
  double expected = 0;  ///< ns
  double top = 0;       ///< excess of its worst place
  size_t top_slot = 0;
  double calls = 0;

  double excess() const { return cost - expected; }
};

/// By name (StringId value).
using OperatorCosts = std::map<uint32_t, OperatorCost>;

/// Sums the operators (or the GPU work) of a process's steps by name. Calls that only wait for others are left out.
class OperatorTable {
 public:
  /// `steps` are those of one process, indices into Trees::steps.
  OperatorTable(const Scene& scene, const std::vector<uint32_t>& steps) : scene_(scene), steps_(steps) {}

  OperatorCosts Of(uint32_t step, SlotKey::Kind kind) const;

 private:
  double UsualCalls(uint32_t step, uint32_t name) const;
  size_t Calls(uint32_t step, uint32_t name) const;

  const Scene& scene_;
  const std::vector<uint32_t>& steps_;
  mutable std::map<std::tuple<int, int64_t, uint32_t>, double> usual_calls_;  ///< memo of UsualCalls
};

}  // namespace teller::locate
