#pragma once

#include <string_view>

#include "ingest/otlp/span.hpp"

namespace teller::ingest::otlp {

/// Decodes one message, an ExportTraceServiceRequest or TracesData. False when the bytes are no such message; then
/// nothing was given to the sink.
bool DecodeProtobuf(std::string_view bytes, SpanSink& sink);

/// What stands at the front of a stream of messages.
struct Frame {
  size_t skip = 0;    ///< bytes before the message: its length
  size_t length = 0;  ///< of the message; 0 = the stream is no such message here
};

/// How a file puts messages together.
enum class Framing : uint8_t {
  kNone,         ///< not protobuf of OTLP spans
  kPlain,        ///< messages simply put together (one message of many parts, by protobuf's own rule)
  kVarint,       ///< each behind its length as a varint
  kBigEndian32,  ///< each behind its length in four bytes, as the OpenTelemetry collector's file exporter writes them
};

/// Judged by the first bytes of a file; all that is needed is the first message's frame and its first fields.
Framing FramingOf(std::string_view head);
/// The frame at the front of `bytes`. For kPlain a frame is one part (one ResourceSpans with its tag).
/// `length` is 0 where no frame can begin; it may reach beyond `bytes`.
Frame NextFrame(Framing framing, std::string_view bytes);

}  // namespace teller::ingest::otlp
