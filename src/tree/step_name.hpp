#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "trace/step.hpp"

namespace teller::tree {

/// Who writes a step mark, in the order in which marks are preferred when a process has several.
enum class StepMark : uint8_t { kSglang, kVllm, kLlamaCpp, kPhase, kProfilerStep };

/// What the text of a step mark says. Members are -1 where it says nothing.
struct StepName {
  StepMark mark = StepMark::kPhase;
  trace::StepKind kind = trace::StepKind::kUnknown;
  int64_t prefill_requests = -1;
  int64_t decode_requests = -1;
  int64_t new_tokens = -1;
  int64_t context_tokens = -1;
};

/// Reads an annotation's text as a step mark, or nothing when it is none. Forms seen in real traces:
/// `execute_context_1(44)_generation_2(2)`, `execute_8192_context_9(sq8155sk8430..)_generation_37(sq37sk34489..)` (vLLM),
/// `step[DECODE bs=32]`, `step[EXTEND bs=15 toks=15360]` (SGLang), `llama_context::process_ubatch` (llama.cpp),
/// "prefill", "decode step 3" (phase words), `ProfilerStep#7` (torch.profiler).
std::optional<StepName> ReadStepName(std::string_view text);

}  // namespace teller::tree
