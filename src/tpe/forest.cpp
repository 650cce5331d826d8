#include "tpe/forest.hpp"

#include <string>

namespace teller::tpe {

base::Status ValidateForest(const ForestView& forest) {
  const size_t n = forest.symbols.size();
  if (forest.depths.size() != n) {
    return base::Error{base::Code::kBadFormat, "forest has " + std::to_string(n) + " symbols but " +
                                                   std::to_string(forest.depths.size()) + " depths, expected as many"};
  }
  if (n > kMaxForestNodes) {
    return base::Error{base::Code::kLimit, "forest has " + std::to_string(n) + " nodes, at most " +
                                               std::to_string(kMaxForestNodes) + " are possible; encode it in parts"};
  }
  uint32_t bad = 0;  // without a branch, so that the compiler can take many nodes at once
  for (size_t i = 0; i < n; ++i) bad |= static_cast<uint32_t>(forest.depths[i] >= kMaxDepth);
  for (size_t i = 1; i < n; ++i) bad |= static_cast<uint32_t>(forest.depths[i] > forest.depths[i - 1] + 1);
  if (bad == 0) return {};
  for (size_t i = 0; i < n; ++i) {
    const std::string at = "node " + std::to_string(i);
    const std::string depth = std::to_string(forest.depths[i]);
    if (forest.depths[i] >= kMaxDepth) {
      return base::Error{
          base::Code::kBadFormat, "depth is " + depth + ", expected less than " + std::to_string(kMaxDepth), {}, at};
    }
    if (i > 0 && forest.depths[i] > forest.depths[i - 1] + 1) {
      return base::Error{base::Code::kBadFormat,
                         "depth is " + depth + " after " + std::to_string(forest.depths[i - 1]) +
                             ", expected at most one more; give the nodes in pre-order",
                         {},
                         at};
    }
  }
  return {};
}

}  // namespace teller::tpe
