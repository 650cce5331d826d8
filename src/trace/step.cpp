#include "trace/step.hpp"

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

}  // namespace teller::trace
