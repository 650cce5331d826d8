// Which attributes engines put on their request spans. Sources: vllm/tracing and v1/engine/output_processor.py of vLLM
// 0.6 to 0.14, sglang/srt/tracing and srt/observability of SGLang 0.5, llmapi/otel_tracing.py of TensorRT-LLM 1.x,
// router/src/server.rs of TGI 1 to 3.
#include "ingest/otlp/request.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "ingest/common/epoch.hpp"

namespace teller::ingest::otlp {

namespace {

using trace::Nanos;
using trace::RequestRecord;

constexpr double kMostTokens = 1e12;
constexpr size_t kMaxId = 512;
constexpr size_t kMaxText = 4096;

struct DurationKey {
  std::string_view key;
  Nanos RequestRecord::*field;
};
/// In seconds. The first name of a field that is there counts.
constexpr std::array kDurations = {
    DurationKey{"gen_ai.latency.time_in_queue", &RequestRecord::queue_time},
    DurationKey{"gen_ai.latency.time_in_model_prefill", &RequestRecord::prefill_time},
    DurationKey{"gen_ai.latency.time_in_model_decode", &RequestRecord::decode_time},
    DurationKey{"gen_ai.latency.time_to_first_token", &RequestRecord::ttft},
    DurationKey{"gen_ai.latency.e2e", &RequestRecord::e2e},
};

struct CountKey {
  std::string_view key;
  int64_t RequestRecord::*field;
};
constexpr std::array kCounts = {
    CountKey{"gen_ai.usage.prompt_tokens", &RequestRecord::prompt_tokens},
    CountKey{"gen_ai.usage.input_tokens", &RequestRecord::prompt_tokens},
    CountKey{"llm.usage.prompt_tokens", &RequestRecord::prompt_tokens},
    CountKey{"gen_ai.usage.completion_tokens", &RequestRecord::output_tokens},
    CountKey{"gen_ai.usage.output_tokens", &RequestRecord::output_tokens},
    CountKey{"llm.usage.completion_tokens", &RequestRecord::output_tokens},
    CountKey{"gen_ai.usage.cached_tokens", &RequestRecord::cached_tokens},
    CountKey{"gen_ai.usage.cache_read.input_tokens", &RequestRecord::cached_tokens},
    CountKey{"gen_ai.usage.cache_read_input_tokens", &RequestRecord::cached_tokens},
};

constexpr std::array<std::string_view, 5> kIds = {"gen_ai.request.id", "gen_ai.response.id", "rid", "request_id",
                                                  "request.id"};
constexpr std::string_view kLatency = "gen_ai.latency.";

std::string Lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::optional<double> Real(const Value& value) {
  double out = 0;
  switch (value.type) {
    case Value::Type::kReal: return value.real;
    case Value::Type::kInteger: return static_cast<double>(value.integer);
    case Value::Type::kText: {
      const auto [end, error] = std::from_chars(value.text.data(), value.text.data() + value.text.size(), out);
      if (error != std::errc() || end != value.text.data() + value.text.size()) return std::nullopt;
      return out;
    }
    case Value::Type::kNone:
    case Value::Type::kTruth: break;
  }
  return std::nullopt;
}

/// "27.1µs", "1.2s": a duration as Rust's Debug writes it (TGI).
std::optional<Nanos> RustDuration(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  if (unit == "ns") return DurationFromSeconds(number / 1e9);
  if (unit == "\xC2\xB5s" || unit == "us") return DurationFromSeconds(number / 1e6);
  if (unit == "ms") return DurationFromSeconds(number / 1e3);
  if (unit == "s") return DurationFromSeconds(number);
  return std::nullopt;
}

std::string RequestId(const Span& span) {
  for (const auto key : kIds) {
    if (std::string id = TextOf(span.fields, key); !id.empty()) return id.substr(0, kMaxId);
  }
  return {};
}

bool IsEngineRequest(const Span& span) {
  return std::any_of(span.fields.begin(), span.fields.end(),
                     [](const Field& field) { return field.key.compare(0, kLatency.size(), kLatency) == 0; });
}

/// SGLang's root span of a request: "Req 1f0c8a2b", "prefill Req 1f0c8a2b", with its id.
bool IsSglangRoot(const Span& span) {
  return Find(span.fields, "rid") != nullptr && Has(span.name, "Req ");
}

bool IsTgiRequest(const Span& span) {
  return Find(span.fields, "queue_time") != nullptr && Find(span.fields, "inference_time") != nullptr;
}

void ReadDurations(const Span& span, RequestRecord& record, uint64_t& bad) {
  for (const auto& [key, field] : kDurations) {
    const Value* value = Find(span.fields, key);
    if (value == nullptr || value->type == Value::Type::kNone || record.*field >= 0) continue;
    const auto seconds = Real(*value);
    const auto nanos = seconds ? DurationFromSeconds(*seconds) : std::nullopt;
    if (nanos) {
      record.*field = *nanos;
    } else {
      ++bad;
    }
  }
}

/// TGI's router: validation (tokenization is a part of it), queue, inference (prefill and decode), and the time a
/// token, which is the inference divided by the number of tokens: so both tell that number.
void ReadTgi(const Span& span, RequestRecord& record, uint64_t& bad) {
  const auto read = [&](std::string_view key) -> std::optional<Nanos> {
    const Value* value = Find(span.fields, key);
    if (value == nullptr) return std::nullopt;
    const auto nanos = RustDuration(value->text);
    if (!nanos) ++bad;
    return nanos;
  };
  if (const auto queue = read("queue_time")) record.queue_time = *queue;
  if (const auto total = read("total_time")) record.e2e = *total;
  const auto validation = read("validation_time");
  if (validation && record.arrival != trace::kNoTime) {
    record.dispatched = record.arrival + *validation;
    if (record.queue_time >= 0) record.admitted = record.dispatched + record.queue_time;
  }
  const auto inference = read("inference_time");
  const auto token = read("time_per_token");
  if (!inference || !token || *token <= 0 || record.output_tokens >= 0) return;
  const double tokens = std::round(static_cast<double>(*inference) / static_cast<double>(*token));
  if (tokens >= 1 && tokens <= kMostTokens) record.output_tokens = static_cast<int64_t>(tokens);
}

void ReadCounts(const Span& span, RequestRecord& record, uint64_t& bad) {
  for (const auto& [key, field] : kCounts) {
    const Value* value = Find(span.fields, key);
    if (value == nullptr || value->type == Value::Type::kNone || record.*field >= 0) continue;
    const auto number = Real(*value);
    if (number && *number >= 0 && *number <= kMostTokens && *number == std::floor(*number)) {
      record.*field = static_cast<int64_t>(*number);
    } else {
      ++bad;
    }
  }
}

void ReadOutcome(const Span& span, RequestRecord& record) {
  record.finish_reason = TextOf(span.fields, "gen_ai.response.finish_reasons").substr(0, kMaxText);
  record.failed = span.status == Status::kError;
  if (record.failed) record.error = span.status_text.substr(0, kMaxText);
  for (const Event& event : span.events) {
    if (event.name != "exception") continue;
    record.failed = record.failed || span.status != Status::kOk;
    if (record.failed && record.error.empty()) {
      record.error = TextOf(event.fields, "exception.type");
      if (std::string message = TextOf(event.fields, "exception.message"); !message.empty()) {
        record.error += (record.error.empty() ? "" : ": ") + message;
      }
      record.error.resize(std::min(record.error.size(), kMaxText));
    }
  }
  if (record.failed && record.error.empty()) record.error = TextOf(span.fields, "error.type").substr(0, kMaxText);
}

}  // namespace

std::string EngineOf(const std::vector<Field>& resource, std::string_view scope) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kNames = {{
      {"vllm", "vllm"},
      {"sglang", "sglang"},
      {"tensorrt", "tensorrt-llm"},
      {"trtllm", "tensorrt-llm"},
      {"trt.", "tensorrt-llm"},
      {"text-generation", "tgi"},
      {"llama", "llama.cpp"},
  }};
  const auto named = [&kNames](const std::string& text) -> std::string {
    for (const auto& [part, engine] : kNames) {
      if (Has(text, part)) return std::string(engine);
    }
    return {};
  };
  if (std::string engine = named(Lower(scope)); !engine.empty()) return engine;
  for (const Field& field : resource) {
    if (field.key.compare(0, 5, "vllm.") == 0) return "vllm";
  }
  return named(Lower(TextOf(resource, "service.name")));
}

std::optional<RequestRecord> RequestOf(const Span& span, std::string_view engine, uint64_t& bad_values) {
  if (!IsEngineRequest(span) && !IsSglangRoot(span) && !(engine == "tgi" && IsTgiRequest(span)) &&
      span.name != "llm_request") {
    return std::nullopt;
  }
  RequestRecord record;
  record.source = trace::RequestSource::kSpan;
  record.engine = std::string(engine);
  record.id = RequestId(span);
  record.trace_id = span.trace_id;
  record.arrival = span.begin;
  record.finished = span.end;
  ReadDurations(span, record, bad_values);
  ReadCounts(span, record, bad_values);
  if (IsTgiRequest(span)) ReadTgi(span, record, bad_values);
  ReadOutcome(span, record);
  // SGLang's front end reports under this name all that lies between dispatch and the first token, queue included: not
  // what the field means. Its phase spans tell the prefill itself.
  if (engine == "sglang") record.prefill_time = -1;
  return record;
}

Phase PhaseOf(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Phase>, 11> kPhases = {{
      {"api_server_dispatch", Phase::kDispatch},
      {"dispatch", Phase::kDispatch},
      {"prefill_waiting", Phase::kWaiting},
      {"waiting", Phase::kWaiting},
      {"prefill_forward", Phase::kPrefill},
      {"prefill", Phase::kPrefill},
      {"decode_forward", Phase::kDecode},
      {"decode_waiting", Phase::kNone},  // between prefill and decode: part of neither
      {"queue", Phase::kWaiting},
      {"chunked_prefill", Phase::kNone},  // a part of prefill_forward
      {"decode_loop", Phase::kNone},      // one step of decode_forward
  }};
  std::string key = Lower(name);
  std::replace(key.begin(), key.end(), ' ', '_');
  const auto it = std::find_if(kPhases.begin(), kPhases.end(), [&](const auto& row) { return row.first == key; });
  return it == kPhases.end() ? Phase::kNone : it->second;
}

}  // namespace teller::ingest::otlp
