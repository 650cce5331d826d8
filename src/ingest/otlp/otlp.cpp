#include "ingest/otlp/otlp.hpp"

#include <string>
#include <vector>

#include "ingest/common/drain.hpp"
#include "ingest/common/text.hpp"
#include "ingest/otlp/diagnostics.hpp"
#include "ingest/otlp/documents.hpp"
#include "ingest/otlp/json.hpp"
#include "ingest/otlp/protobuf.hpp"
#include "ingest/otlp/sink.hpp"

namespace teller::ingest {

namespace {

constexpr size_t kChunk = 1u << 20;
constexpr size_t kMaxDocument =
    1u << 30;  // an export request is a few MB at most; a whole run in one document is larger

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

bool LooksLikeOtlpJson(std::string_view head) {
  if (Has(head, "\"traceEvents\"")) return false;
  if (Has(head, "\"resourceSpans\"") || Has(head, "\"resource_spans\"") || Has(head, "\"scopeSpans\"")) return true;
  const bool time = Has(head, "\"startTimeUnixNano\"") || Has(head, "\"start_time_unix_nano\"");
  return time &&
         (Has(head, "\"spans\"") || Has(head, "\"spanId\"") || Has(head, "\"span_id\"") || Has(head, "\"traceId\""));
}

base::Status ReadOtlpJson(base::ByteSource& source, trace::FileRow file, trace::Store& store,
                          const base::Limits& limits) {
  store.files[file.value()].kind = "otlp";
  otlp::StoreSink sink(file, store, limits);
  otlp::JsonDecoder decoder;
  uint64_t understood = 0;
  const auto drop = [&](const base::DiagnosticKind& kind, const otlp::DocumentSplitter::Document& document) {
    trace::File& row = store.files[file.value()];
    ++row.records_read;
    ++row.dropped;
    store.diagnostics.Report(kind, file, "line " + std::to_string(document.line) + ": " + Snippet(document.text));
  };
  otlp::DocumentSplitter splitter(kMaxDocument, [&](const otlp::DocumentSplitter::Document& document) {
    if (document.too_long) return drop(otlp::kTooLong, document);
    if (document.stray) return drop(otlp::kBadDocument, document);
    if (document.cut) {
      const std::string closed = otlp::CloseCutDocument(document.text);
      understood += !closed.empty() && decoder.Decode(closed, sink) == otlp::Decoded::kSpans;
      return drop(otlp::kTruncated, document);
    }
    if (decoder.Decode(document.text, sink) == otlp::Decoded::kSpans) {
      ++understood;
    } else {
      drop(otlp::kBadDocument, document);
    }
  });
  TELLER_TRY(Drain(source, splitter, store.files[file.value()].bytes));
  if (!source.damage().empty()) store.diagnostics.Report(otlp::kDamaged, file, std::string(source.damage()));
  sink.Finish();
  if (understood == 0) {
    return base::Error{base::Code::kBadFormat, "nothing in the file is an OTLP export request with spans",
                       store.files[file.value()].path};
  }
  return {};
}

bool LooksLikeOtlpProtobuf(std::string_view head) {
  // The tag of a field that every span has; a text that begins like a message has no such character.
  constexpr char kSpanTag = '\x12';
  return otlp::FramingOf(head) != otlp::Framing::kNone && head.find(kSpanTag) != std::string_view::npos;
}

base::Status ReadOtlpProtobuf(base::ByteSource& source, trace::FileRow file, trace::Store& store,
                              const base::Limits& limits) {
  store.files[file.value()].kind = "otlp";
  otlp::StoreSink sink(file, store, limits);
  uint64_t understood = 0;
  uint64_t offset = 0;  // of the pending bytes in the file
  const auto drop = [&](const base::DiagnosticKind& kind) {
    trace::File& row = store.files[file.value()];
    ++row.records_read;
    ++row.dropped;
    store.diagnostics.Report(kind, file, "byte " + std::to_string(offset));
  };
  std::string pending;
  size_t begin = 0;  // of what is not yet decoded
  std::vector<char> chunk(kChunk);
  auto framing = otlp::Framing::kNone;
  bool lost = false;  // the rest cannot be told apart
  bool ended = false;
  while (!ended && !lost) {
    const auto got = source.Read(chunk.data(), chunk.size());
    if (!got) return got.error();
    ended = *got == 0;
    store.files[file.value()].bytes += *got;
    pending.erase(0, begin);
    begin = 0;
    pending.append(chunk.data(), *got);
    if (offset == 0 && framing == otlp::Framing::kNone) framing = otlp::FramingOf(pending);
    while (begin < pending.size()) {
      const std::string_view bytes = std::string_view(pending).substr(begin);
      constexpr size_t kLongestFrame = 16;
      const otlp::Frame frame = otlp::NextFrame(framing, bytes);
      if (frame.length == 0 && frame.skip == 0) {
        if (!ended && bytes.size() < kLongestFrame) break;  // the frame itself may be cut
        drop(otlp::kBadDocument);
        lost = true;
        break;
      }
      if (frame.length > kMaxDocument) {
        drop(otlp::kTooLong);
        lost = true;
        break;
      }
      if (bytes.size() < frame.skip + frame.length) break;
      if (otlp::DecodeProtobuf(bytes.substr(frame.skip, frame.length), sink)) {
        ++understood;
      } else {
        drop(otlp::kBadDocument);
      }
      begin += frame.skip + frame.length;
      offset += frame.skip + frame.length;
    }
  }
  if (!lost && begin < pending.size()) drop(otlp::kTruncated);
  while (lost && !ended) {  // the size of the file is still told
    const auto got = source.Read(chunk.data(), chunk.size());
    if (!got) return got.error();
    ended = *got == 0;
    store.files[file.value()].bytes += *got;
  }
  if (!source.damage().empty()) store.diagnostics.Report(otlp::kDamaged, file, std::string(source.damage()));
  sink.Finish();
  if (understood == 0) {
    return base::Error{base::Code::kBadFormat, "nothing in the file is an OTLP export request with spans",
                       store.files[file.value()].path};
  }
  return {};
}

}  // namespace teller::ingest
