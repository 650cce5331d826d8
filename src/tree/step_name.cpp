#include "tree/step_name.hpp"

#include <cctype>
#include <charconv>
#include <string>

namespace teller::tree {

namespace {

using trace::StepKind;

constexpr int64_t kMostTokens = 1'000'000'000'000;  // larger numbers are no counts; sums of them must not overflow

/// Reads a decimal number at `at` and moves past it; -1 when there is none.
int64_t Number(std::string_view text, size_t& at) {
  int64_t value = -1;
  const char* first = text.data() + at;
  const auto [end, error] = std::from_chars(first, text.data() + text.size(), value);
  if (error != std::errc() || value < 0 || value > kMostTokens) return -1;
  at += static_cast<size_t>(end - first);
  return value;
}

int64_t NumberAfter(std::string_view text, std::string_view key) {
  const size_t found = text.find(key);
  if (found == std::string_view::npos) return -1;
  size_t at = found + key.size();
  return Number(text, at);
}

/// One "<requests>(<tokens>)" group of vLLM's mark: query tokens and, where told, context tokens.
struct Group {
  int64_t requests = -1;
  int64_t tokens = -1;
  int64_t context = -1;
};

Group ReadGroup(std::string_view text, std::string_view key) {
  Group group;
  const size_t found = text.find(key);
  if (found == std::string_view::npos) return group;
  size_t at = found + key.size();
  group.requests = Number(text, at);
  if (group.requests < 0 || at >= text.size() || text[at] != '(') return Group{};
  const std::string_view inside = text.substr(at + 1, text.find(')', at) - at - 1);
  if (inside.starts_with("sq")) {
    group.tokens = NumberAfter(inside, "sq");
    group.context = NumberAfter(inside, "sk");
  } else {
    size_t start = 0;
    group.tokens = Number(inside, start);
  }
  return group;
}

std::optional<StepName> ReadVllm(std::string_view text) {
  if (!text.starts_with("execute_")) return std::nullopt;
  const Group prefill = ReadGroup(text, "context_");
  const Group decode = ReadGroup(text, "generation_");
  if (prefill.requests < 0 || decode.requests < 0) return std::nullopt;
  StepName name;
  name.mark = StepMark::kVllm;
  name.prefill_requests = prefill.requests;
  name.decode_requests = decode.requests;
  if (prefill.tokens >= 0 && decode.tokens >= 0) name.new_tokens = prefill.tokens + decode.tokens;
  if (prefill.context >= 0 && decode.context >= 0) name.context_tokens = prefill.context + decode.context;
  if (prefill.requests > 0) {
    name.kind = decode.requests > 0 ? StepKind::kMixed : StepKind::kPrefill;
  } else {
    name.kind = decode.requests > 0 ? StepKind::kDecode : StepKind::kEmpty;
  }
  return name;
}

std::optional<StepName> ReadSglang(std::string_view text) {
  if (!text.starts_with("step[")) return std::nullopt;
  StepName name;
  name.mark = StepMark::kSglang;
  const int64_t batch = NumberAfter(text, "bs=");
  const int64_t tokens = NumberAfter(text, "toks=");
  const std::string_view word = text.substr(5);
  if (word.starts_with("EXTEND") || word.starts_with("PREFILL")) {
    name.kind = StepKind::kPrefill;
    name.prefill_requests = batch;
    name.decode_requests = 0;
    name.new_tokens = tokens;
  } else if (word.starts_with("MIXED")) {
    name.kind = StepKind::kMixed;
    name.new_tokens = tokens;
  } else if (word.starts_with("IDLE")) {
    name.kind = StepKind::kEmpty;
  } else {
    name.kind = StepKind::kDecode;
    name.prefill_requests = 0;
    name.decode_requests = batch;
    name.new_tokens = tokens >= 0 ? tokens : batch;
  }
  return name;
}

bool ContainsWord(std::string_view text, std::string_view word) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const size_t found = lower.find(word);
  if (found == std::string::npos) return false;
  const bool left = found == 0 || !std::isalpha(static_cast<unsigned char>(lower[found - 1]));
  const size_t end = found + word.size();
  return left && (end == lower.size() || !std::isalpha(static_cast<unsigned char>(lower[end])));
}

}  // namespace

std::optional<StepName> ReadStepName(std::string_view text) {
  if (text.size() > 512) return std::nullopt;  // no engine writes longer marks
  if (auto name = ReadSglang(text)) return name;
  if (auto name = ReadVllm(text)) return name;
  if (text == "llama_context::process_ubatch") {
    StepName name;
    name.mark = StepMark::kLlamaCpp;
    return name;
  }
  if (text.starts_with("ProfilerStep")) {
    StepName name;
    name.mark = StepMark::kProfilerStep;
    return name;
  }
  // Phase words name a step only when they open the text: "FSDP::pre_forward (decode)" is a part of one.
  const bool prefill = ContainsWord(text.substr(0, 16), "prefill") || ContainsWord(text.substr(0, 16), "extend");
  const bool decode = ContainsWord(text.substr(0, 16), "decode");
  if (prefill != decode) {
    StepName name;
    name.mark = StepMark::kPhase;
    name.kind = prefill ? StepKind::kPrefill : StepKind::kDecode;
    return name;
  }
  return std::nullopt;
}

}  // namespace teller::tree
