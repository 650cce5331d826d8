#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "locate/profile.hpp"
#include "trace/step.hpp"

namespace teller::locate {

/// Which processes run the same program. Stages of a pipeline take the same steps and do other things in them: what one
/// takes says nothing about another.
class Programs {
 public:
  Programs(const trace::Trees& trees, const std::vector<StepProfile>& profiles);

  /// True unless one of them does in half of its steps or more what the other, and all that do the same as the other,
  /// never do. Processes of which no operator is known are taken for equal. Cost: O(log processes).
  bool Same(trace::ProcessRow a, trace::ProcessRow b) const;

 private:
  using Names = std::set<uint32_t>;  // of operators and of work on a device, StringId values

  std::map<uint32_t, size_t> of_process_;  ///< process -> index into `same_`
  std::vector<std::vector<bool>> same_;  ///< of each two that do other things often: few, however many ranks there are
};

}  // namespace teller::locate
