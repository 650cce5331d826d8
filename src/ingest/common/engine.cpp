#include "ingest/common/engine.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

namespace teller::ingest {

namespace {

using trace::SpanKind;

std::string Lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

bool StartsWith(std::string_view text, std::string_view front) {
  return text.substr(0, front.size()) == front;
}

/// What the names of a file's spans prove about the engine, best proof first. SGLang borrows operators and modules of
/// vLLM, never the other way round, so its marks count before vLLM's.
enum Proof : size_t { kLlamaHook, kSglangStep, kVllmStep, kSglangFrame, kVllmFrame, kSglangOp, kVllmOp, kProofs };
constexpr std::array<std::string_view, kProofs> kProven = {"llama.cpp", "sglang", "vllm", "sglang",
                                                           "vllm",      "sglang", "vllm"};

Proof ProofOf(SpanKind kind, std::string_view name, std::string_view category) {
  const auto in_package = [name](std::string_view package) {
    const size_t at = name.find(package);
    return at == 0 || (at != std::string_view::npos && name[at - 1] == '/');
  };
  if (category == "llama") return kLlamaHook;
  if (kind == SpanKind::kAnnotation) {
    if (StartsWith(name, "step[") && name.find("bs=") != std::string_view::npos) return kSglangStep;
    if (StartsWith(name, "execute_") && name.find("_generation_") != std::string_view::npos) return kVllmStep;
  }
  if (kind == SpanKind::kPython) {
    if (in_package("sglang/")) return kSglangFrame;
    if (in_package("vllm/")) return kVllmFrame;
  }
  if (kind == SpanKind::kOp) {
    if (StartsWith(name, "sglang::") || StartsWith(name, "sgl_kernel::")) return kSglangOp;
    if (StartsWith(name, "vllm::")) return kVllmOp;
  }
  return kProofs;
}

}  // namespace

std::string EngineOfSpans(const trace::Store& store, size_t first_track, size_t last_track) {
  std::vector<bool> asked(store.strings.size(), false);
  size_t best = kProofs;
  for (size_t t = first_track; t < last_track; ++t) {
    const auto& track = store.tracks[t];
    for (uint32_t row = track.first_span; row < track.first_span + track.span_count; ++row) {
      const trace::StringId name = store.spans.name[row];
      if (asked[name.value()]) continue;
      asked[name.value()] = true;
      const auto& category = store.categories[store.spans.category[row]];
      best = std::min<size_t>(best, ProofOf(category.kind, store.strings.Text(name), category.name));
    }
  }
  return best < kProofs ? std::string(kProven[best]) : std::string();
}

std::string EngineOfName(std::string_view name) {
  const std::string text = Lower(name);
  if (text.find("vllm::") != std::string::npos) return "vllm";
  if (text.find("sglang::") != std::string::npos) return "sglang";
  if (StartsWith(text, "llama-") || StartsWith(text, "llama.cpp")) return "llama.cpp";
  return {};
}

std::string EngineProcessName(std::string_view process_name) {
  const std::string lower = Lower(process_name);
  for (const std::string_view prefix : {"vllm::", "sglang::"}) {
    if (StartsWith(lower, prefix)) return std::string(process_name.substr(prefix.size()));
  }
  const bool interpreter =
      StartsWith(lower, "python") && lower.find_first_not_of("0123456789.", 6) == std::string::npos;
  return interpreter || lower == "pt_main_thread" ? std::string() : std::string(process_name);
}

}  // namespace teller::ingest
