#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ingest/otlp/span.hpp"
#include "trace/request.hpp"

namespace teller::ingest::otlp {

/// Serving engine that wrote a span, by its resource and scope: "vllm", "sglang", "tensorrt-llm", "tgi"; empty when
/// they tell none.
std::string EngineOf(const std::vector<Field>& resource, std::string_view scope);

/// What a span states about the request it stands for; none when it stands for none. Requests are told by an engine's
/// own attributes: latencies (gen_ai.latency.*; vLLM, SGLang, TensorRT-LLM), "rid" on SGLang's root span, queue_time
/// and inference_time on TGI's; the token counts that clients and gateways put on their spans make no engine's request.
/// `bad_values` counts durations and counts that were refused (negative, no number, absurd).
std::optional<trace::RequestRecord> RequestOf(const Span& span, std::string_view engine, uint64_t& bad_values);

/// Phase of a request that a span of SGLang below the request's root stands for.
enum class Phase : uint8_t { kNone, kDispatch, kWaiting, kPrefill, kDecode };

/// By the span's name; blanks and case of older versions ("prefill forward") mean the same as underscores.
Phase PhaseOf(std::string_view name);

}  // namespace teller::ingest::otlp
