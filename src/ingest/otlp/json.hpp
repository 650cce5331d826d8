#pragma once

#include <string_view>

#include "ingest/otlp/span.hpp"

namespace teller::ingest::otlp {

/// What became of one JSON document.
enum class Decoded : uint8_t {
  kSpans,    ///< its spans were given to the sink (there may be none)
  kNotJson,  ///< no JSON
  kNotOtlp,  ///< JSON without any of the known keys
};

/// Decodes one document: an export request or TracesData ({"resourceSpans": [...]}), a bare list of spans
/// ({"spans": [...]}), or one resource ({"scopeSpans": [...]}). Names may be camel case, as the OTLP/JSON mapping has
/// them, or with underscores as in the .proto files. Source: github.com/open-telemetry/opentelemetry-proto, OTLP/JSON
/// encoding.
class JsonDecoder {
 public:
  JsonDecoder();
  ~JsonDecoder();
  JsonDecoder(const JsonDecoder&) = delete;
  JsonDecoder& operator=(const JsonDecoder&) = delete;

  Decoded Decode(std::string_view text, SpanSink& sink);

 private:
  struct State;
  State* state_;
};

}  // namespace teller::ingest::otlp
