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

std::string_view Text(NoSteps why) {
  switch (why) {
    case NoSteps::kNoneRecorded: return "no steps were recorded";
    case NoSteps::kUnmarked: return "steps were recorded, but their marks do not tell how many requests they serve";
    case NoSteps::kUntimed: return "steps were recorded, but nothing tells when it was computed";
    case NoSteps::kOutside: return "no steps were recorded while it was served";
    case NoSteps::kUncertain:
      return "steps were recorded while it was served, but which of them served it is not certain";
  }
  return "no steps were recorded";
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
