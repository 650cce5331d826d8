#include "trace/step.hpp"

#include <algorithm>

namespace teller::trace {

std::string_view Name(StepKind kind) {
  switch (kind) {
    case StepKind::kUnknown: return "unknown";
    case StepKind::kPrefill: return "prefill";
    case StepKind::kDecode: return "decode";
    case StepKind::kMixed: return "mixed";
    case StepKind::kEmpty: return "empty";
  }
  return "unknown";
}

const GraphOrigin* Trees::OriginOf(SpanRow work) const {
  const auto it = std::lower_bound(graph_origins.begin(), graph_origins.end(), work,
                                   [](const GraphOrigin& origin, SpanRow row) { return origin.work < row; });
  return it != graph_origins.end() && it->work == work ? &*it : nullptr;
}

}  // namespace teller::trace
