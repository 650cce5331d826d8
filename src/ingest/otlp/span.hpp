#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/nanos.hpp"

namespace teller::ingest::otlp {

/// Value of an attribute (AnyValue of the OTLP specification). Arrays, maps and bytes are kept as text.
struct Value {
  enum class Type : uint8_t { kNone, kText, kInteger, kReal, kTruth };
  Type type = Type::kNone;
  std::string text;
  int64_t integer = 0;  ///< kTruth: 0 or 1
  double real = 0;

  /// As text, whatever the type; numbers in their shortest form.
  std::string ToText() const;
};

struct Field {
  std::string key;
  Value value;
};

/// Value of the first field of that name; null when there is none.
const Value* Find(const std::vector<Field>& fields, std::string_view key);
/// Text of a field; empty when there is none.
std::string TextOf(const std::vector<Field>& fields, std::string_view key);

struct Event {
  std::string name;
  base::Nanos at = base::kNoTime;
  std::vector<Field> fields;
};

enum class Status : uint8_t { kUnset = 0, kOk = 1, kError = 2 };  // numbers of the specification

/// One span as its exporter wrote it, whatever the encoding. Ids are lower-case hex, or as written when they are
/// neither hex nor base64; empty when missing. Times are kNoTime when missing or unreadable.
struct Span {
  std::string trace_id;
  std::string span_id;
  std::string parent_id;
  std::string name;
  int kind = 0;  ///< SpanKind of the specification, 0 to 5
  base::Nanos begin = base::kNoTime;
  base::Nanos end = base::kNoTime;
  std::vector<Field> fields;
  uint64_t fields_left_out = 0;  ///< beyond what a decoder keeps of one span
  std::vector<Event> events;
  Status status = Status::kUnset;
  std::string status_text;
};

/// "internal", "server", "client", "producer", "consumer"; empty when unspecified.
std::string_view KindName(int kind);
/// Number of "SPAN_KIND_SERVER"; 0 when it is none.
int KindFromName(std::string_view name);

/// Id bytes to lower-case hex; all zeros mean "none" and give an empty text.
std::string IdFromBytes(std::string_view bytes);
/// Id of `size` bytes as JSON writers put it: hex of either case (OTLP's rule), or base64 (protobuf's rule).
std::string IdFromText(std::string_view text, size_t size);

/// Takes spans from a decoder. Calls come in the order of the document.
class SpanSink {
 public:
  virtual ~SpanSink() = default;
  /// The following spans come from this resource. `scope` is the instrumenting library.
  virtual void Resource(const std::vector<Field>& fields) = 0;
  virtual void Scope(std::string_view name) = 0;
  virtual void Add(Span span) = 0;
  /// Something that stands where a span should, and cannot be used.
  virtual void Broken(std::string_view why) = 0;
  /// Records of another signal (metrics, logs) in the same file.
  virtual void OtherSignal(uint64_t count) = 0;
};

}  // namespace teller::ingest::otlp
