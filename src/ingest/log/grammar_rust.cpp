// Lines of Rust's tracing-subscriber: TGI's router and launcher, SGLang's router.
#include <algorithm>
#include <array>

#include "ingest/log/duration_text.hpp"
#include "ingest/log/grammar.hpp"
#include "ingest/log/request_id.hpp"

namespace teller::ingest::log {

using trace::LogLevel;
using trace::LogSource;

namespace {

constexpr size_t kMaxSpans = 16u << 10;  // spans hold the parameters of a request, not its text

bool IsTargetChar(char c) {
  return IsAlnum(c) || c == '_' || c == ':' || c == '-';
}

bool IsTarget(std::string_view word) {
  return Contains(word, "::") || StartsWith(word, "text_generation_") || word == "text_generation_launcher";
}

/// End of the braces that open at `i`; npos when they do not close. Text in double quotes does not count.
size_t EndOfBraces(std::string_view text, size_t i) {
  size_t depth = 0;
  bool quoted = false;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

/// "generate{a=1}:inner{..}: target: rest" or "shard-manager: target: rest" or "target: rest".
/// `spans` is what stands before the target, without the colon behind it.
bool SplitSpans(std::string_view text, std::string_view& spans, std::string_view& target, std::string_view& rest) {
  size_t i = 0;
  size_t word = 0;
  while (i < std::min(text.size(), kMaxSpans)) {
    const char c = text[i];
    if (c == '{') {
      i = EndOfBraces(text, i);
      if (i == std::string_view::npos || i > kMaxSpans) return false;
      word = i;
      continue;
    }
    if (c == ':' && i + 1 < text.size() && text[i + 1] == ' ') {
      std::string_view name = text.substr(word, i - word);
      while (!name.empty() && (name.front() == ':' || name.front() == ' ')) name.remove_prefix(1);
      if (!name.empty() && IsTarget(name)) {
        target = name;
        rest = text.substr(i + 2);
        spans = text.substr(0, static_cast<size_t>(name.data() - text.data()));
        while (!spans.empty() && (spans.back() == ' ' || spans.back() == ':')) spans.remove_suffix(1);
        return true;
      }
      i += 2;
      word = i;
      continue;
    }
    // Names of spans are words ("HTTP request"); anything else means that this is a sentence.
    if (!IsTargetChar(c) && c != ' ') return false;
    ++i;
  }
  return false;
}

/// The value of `key="..."` or `key=...` in the text of spans; the innermost span stands last.
std::string_view SpanField(std::string_view spans, std::string_view key) {
  size_t at = spans.rfind(key);
  while (at != std::string_view::npos) {
    const size_t end = at + key.size();
    const bool begins = at == 0 || !(IsAlnum(spans[at - 1]) || spans[at - 1] == '_' || spans[at - 1] == '.');
    if (begins && end < spans.size() && spans[end] == '=') {
      std::string_view value = spans.substr(end + 1);
      if (!value.empty() && value.front() == '"') {
        value.remove_prefix(1);
        return value.substr(0, value.find('"'));
      }
      return value.substr(0, value.find_first_of(" }"));
    }
    if (at == 0) break;
    at = spans.rfind(key, at - 1);
  }
  return {};
}

/// "router/src/server.rs:497: " at the front.
std::string_view TakeRustFile(std::string_view& rest) {
  Cursor c(rest);
  c.Word("_./-");
  const size_t end = c.at();
  int64_t line = 0;
  if (!EndsWith(rest.substr(0, end), ".rs") || !c.Eat(':') || !c.Number(1, 7, line)) return {};
  const std::string_view info = rest.substr(0, c.at());
  if (!c.Eat(": ")) return {};
  rest = c.rest();
  return info;
}

}  // namespace

void PutTgiTimes(const std::function<std::string_view(std::string_view)>& field, Statistics& out) {
  struct Time {
    std::string_view name;
    std::string_view key;
  };
  static constexpr std::array kTimes = {Time{"total_time", "total_ms"}, Time{"validation_time", "validation_ms"},
                                        Time{"queue_time", "queue_ms"}, Time{"inference_time", "inference_ms"},
                                        Time{"time_per_token", "time_per_token_ms"}};
  for (const auto& time : kTimes) {
    const auto value = ParseRustDuration(field(time.name));
    if (value) out.emplace_back(std::string(time.key), static_cast<double>(*value) / 1e6);
  }
}

bool ParseRust(std::string_view line, ParsedLine& out) {
  Cursor c(line);
  if (!ReadDateTime(c, out.stamp)) return false;
  c.SkipSpaces();
  const LogLevel level = LevelFromWord(c.Word(""));
  if (level == LogLevel::kUnknown || !c.Eat(' ')) return false;
  c.SkipSpaces();
  std::string_view spans;
  std::string_view target;
  std::string_view rest;
  if (!SplitSpans(c.rest(), spans, target, rest)) return false;
  const std::string_view file = TakeRustFile(rest);
  out.header = true;
  out.level = level;
  out.logger = file.empty() ? target : file;
  out.message = rest;
  const bool tgi = StartsWith(target, "text_generation_");
  const bool router =
      StartsWith(target, "sglang_router") || StartsWith(target, "sgl_model_gateway") || StartsWith(target, "smg");
  out.source = tgi ? LogSource::kTgi : router ? LogSource::kSglang : LogSource::kPythonLogging;
  out.process = tgi ? (StartsWith(target, "text_generation_launcher") ? "launcher" : "router") : router ? "router" : "";
  int64_t rank = 0;
  // The launcher's text form puts the fields of its spans behind the message: "Shard ready in 11.5s rank=0".
  const size_t behind = rest.rfind(" rank=");
  if (tgi && behind != std::string_view::npos) {
    Cursor digits(rest.substr(behind + 6));
    if (digits.Number(1, 6, rank) && digits.done()) out.rank = static_cast<int>(rank);
  } else if (Cursor in_span(SpanField(spans, "rank")); tgi && in_span.Number(1, 6, rank)) {
    out.rank = static_cast<int>(rank);
  }
  if (spans.empty()) return true;
  if (tgi) PutTgiTimes([&](std::string_view key) { return SpanField(spans, key); }, out.statistics);
  out.request = RequestId(out.source, spans);
  return true;
}

}  // namespace teller::ingest::log
