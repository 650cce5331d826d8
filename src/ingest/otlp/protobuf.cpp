#include "ingest/otlp/protobuf.hpp"

#include <otlp.pb.h>

#include <algorithm>

#include "ingest/common/decimal.hpp"

namespace teller::ingest::otlp {

namespace {

namespace pb = teller::otlp;

constexpr size_t kMaxText = 64u << 10;
constexpr size_t kMaxFields = 512;  // as in JSON
constexpr char kTag = '\x0A';       // field 1, length-delimited: a ResourceSpans, and in it a Resource
constexpr char kScopeTag = '\x12';  // field 2, length-delimited: a ResourceSpans without a resource begins with it

/// A varint at the front; false when it is cut off or longer than a length can be.
bool Varint(std::string_view bytes, size_t& used, uint64_t& value) {
  value = 0;
  for (used = 0; used < bytes.size() && used < 5; ++used) {
    const auto byte = static_cast<unsigned char>(bytes[used]);
    value |= static_cast<uint64_t>(byte & 0x7F) << (7 * used);
    if (byte < 0x80) {
      ++used;
      return true;
    }
  }
  return false;
}

/// True when `bytes` begin like a message: the tag of a ResourceSpans, a length, and inside the tag of one of its
/// fields.
bool BeginsMessage(std::string_view bytes) {
  size_t used = 0;
  uint64_t length = 0;
  if (bytes.empty() || bytes.front() != kTag || !Varint(bytes.substr(1), used, length) || length < 2) return false;
  const std::string_view inside = bytes.substr(1 + used);
  uint64_t field = 0;
  if (inside.empty() || (inside.front() != kTag && inside.front() != kScopeTag)) return false;
  return Varint(inside.substr(1), used, field) && field + 1 + used <= length;
}

base::Nanos Time(uint64_t nanos) {
  return nanos > 0 && nanos <= static_cast<uint64_t>(kMaxNanos) ? static_cast<base::Nanos>(nanos) : base::kNoTime;
}

Value ToValue(const pb::AnyValue& any) {
  Value value;
  switch (any.value_case()) {
    case pb::AnyValue::kStringValue:
      value.type = Value::Type::kText;
      value.text = any.string_value().substr(0, kMaxText);
      break;
    case pb::AnyValue::kBoolValue:
      value.type = Value::Type::kTruth;
      value.integer = any.bool_value() ? 1 : 0;
      break;
    case pb::AnyValue::kIntValue:
      value.type = Value::Type::kInteger;
      value.integer = any.int_value();
      break;
    case pb::AnyValue::kDoubleValue:
      value.type = Value::Type::kReal;
      value.real = any.double_value();
      break;
    case pb::AnyValue::kArrayValue:
      value.type = Value::Type::kText;
      for (const auto& element : any.array_value().values()) {
        if (!value.text.empty()) value.text += ',';
        if (element.value_case() == pb::AnyValue::kStringValue) value.text += element.string_value();
        if (value.text.size() > kMaxText) break;
      }
      value.text.resize(std::min(value.text.size(), kMaxText));
      break;
    case pb::AnyValue::kBytesValue:
    case pb::AnyValue::kKvlistValue:
    case pb::AnyValue::VALUE_NOT_SET: break;  // nothing of ours is told so
  }
  return value;
}

std::vector<Field> ToFields(const google::protobuf::RepeatedPtrField<pb::KeyValue>& pairs, uint64_t* left_out) {
  std::vector<Field> out;
  for (const auto& pair : pairs) {
    if (out.size() < kMaxFields) {
      out.push_back({pair.key().substr(0, kMaxText), ToValue(pair.value())});
    } else if (left_out != nullptr) {
      ++*left_out;
    }
  }
  return out;
}

void GiveSpan(const pb::SpanData& from, SpanSink& sink) {
  Span span;
  span.trace_id = IdFromBytes(from.trace_id());
  span.span_id = IdFromBytes(from.span_id());
  span.parent_id = IdFromBytes(from.parent_span_id());
  span.name = from.name().substr(0, kMaxText);
  span.kind = from.kind() > 0 && from.kind() < 6 ? from.kind() : 0;
  span.begin = Time(from.start_time_unix_nano());
  span.end = Time(from.end_time_unix_nano());
  span.fields = ToFields(from.attributes(), &span.fields_left_out);
  if (from.status().code() == 1 || from.status().code() == 2) span.status = static_cast<Status>(from.status().code());
  span.status_text = from.status().message().substr(0, kMaxText);
  for (const auto& event : from.events()) {
    span.events.push_back(
        {event.name().substr(0, kMaxText), Time(event.time_unix_nano()), ToFields(event.attributes(), nullptr)});
  }
  sink.Add(std::move(span));
}

}  // namespace

bool DecodeProtobuf(std::string_view bytes, SpanSink& sink) {
  pb::Traces traces;
  if (!traces.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return false;
  for (const auto& resource : traces.resource_spans()) {
    sink.Resource(ToFields(resource.resource().attributes(), nullptr));
    for (const auto* scopes : {&resource.scope_spans(), &resource.instrumentation_library_spans()}) {
      for (const auto& scope : *scopes) {
        sink.Scope(scope.scope().name());
        for (const auto& span : scope.spans()) GiveSpan(span, sink);
      }
    }
  }
  return true;
}

Framing FramingOf(std::string_view head) {
  size_t used = 0;
  uint64_t length = 0;
  if (head.size() > 4 && head[0] == 0) {
    if (BeginsMessage(head.substr(4))) return Framing::kBigEndian32;
  }
  if (BeginsMessage(head)) return Framing::kPlain;
  if (Varint(head, used, length) && length > 2 && BeginsMessage(head.substr(used))) return Framing::kVarint;
  return head.size() > 4 && BeginsMessage(head.substr(4)) ? Framing::kBigEndian32 : Framing::kNone;
}

Frame NextFrame(Framing framing, std::string_view bytes) {
  size_t used = 0;
  uint64_t length = 0;
  switch (framing) {
    case Framing::kNone: return {};
    case Framing::kPlain:
      if (bytes.empty() || bytes.front() != kTag || !Varint(bytes.substr(1), used, length)) return {};
      return {0, 1 + used + static_cast<size_t>(length)};
    case Framing::kVarint:
      if (!Varint(bytes, used, length)) return {};
      return {used, static_cast<size_t>(length)};
    case Framing::kBigEndian32:
      if (bytes.size() < 4) return {};
      for (size_t i = 0; i < 4; ++i) length = length << 8 | static_cast<unsigned char>(bytes[i]);
      return {4, static_cast<size_t>(length)};
  }
  return {};
}

}  // namespace teller::ingest::otlp
