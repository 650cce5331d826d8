#include "trace/request.hpp"

namespace teller::trace {

std::string_view Name(PhaseKind kind) {
  switch (kind) {
    case PhaseKind::kFrontEnd: return "front end";
    case PhaseKind::kQueue: return "queue";
    case PhaseKind::kPrefill: return "prefill";
    case PhaseKind::kDecode: return "decode";
    case PhaseKind::kOutput: return "output";
    case PhaseKind::kUnexplained: return "unexplained";
  }
  return "unexplained";
}

std::string_view Name(StepCover cover) {
  switch (cover) {
    case StepCover::kNone: return "none";
    case StepCover::kPart: return "part";
    case StepCover::kExact: return "exact";
  }
  return "none";
}

Nanos Request::phase(PhaseKind kind) const {
  Nanos sum = 0;
  for (const RequestPhase& phase : phases) {
    if (phase.kind == kind) sum += phase.duration;
  }
  return sum;
}

Nanos Request::tpot() const {
  if (e2e < 0 || ttft < 0 || e2e < ttft || output_tokens < 2) return -1;
  return (e2e - ttft) / (output_tokens - 1);
}

}  // namespace teller::trace
