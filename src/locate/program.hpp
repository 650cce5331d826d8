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

  /// True unless one of them calls in half of its steps or more operators that the other, and all that do the same as
  /// the other, never call, and these are a good part of its time or of its operators: one rank may sample for all, or
  /// take another way to the same. Processes of which no operator is known are taken for equal. Cost: O(log processes).
  bool Same(trace::ProcessRow a, trace::ProcessRow b) const;

 private:
  using Names = std::set<uint32_t>;  // of operators, StringId values

  std::map<uint32_t, size_t> of_process_;  ///< process -> index into `same_`
  std::vector<std::vector<bool>> same_;  ///< of each two that do other things often: few, however many ranks there are
};

}  // namespace teller::locate
