#include "ingest/otlp/json.hpp"

#include <simdjson.h>

#include <cmath>

#include "ingest/common/decimal.hpp"
#include "ingest/common/epoch.hpp"
#include "ingest/common/text.hpp"

namespace teller::ingest::otlp {

namespace {

namespace sj = simdjson::dom;

constexpr size_t kMaxText = 64u << 10;  // of one attribute: prompts can be long
constexpr size_t kMaxFields = 512;      // of one span
constexpr size_t kTraceIdBytes = 16;
constexpr size_t kSpanIdBytes = 8;

/// A member by its camel-case name or by the one with underscores.
bool Member(sj::object object, std::string_view camel, std::string_view snake, sj::element& out) {
  return object[camel].get(out) == simdjson::SUCCESS || (camel != snake && object[snake].get(out) == simdjson::SUCCESS);
}

std::string Text(sj::object object, std::string_view camel, std::string_view snake) {
  sj::element element;
  std::string_view text;
  if (!Member(object, camel, snake, element) || element.get(text) != simdjson::SUCCESS) return {};
  return std::string(text.substr(0, kMaxText));
}

sj::array Array(sj::object object, std::string_view camel, std::string_view snake, bool& found) {
  sj::element element;
  sj::array array;
  found = Member(object, camel, snake, element) && element.get(array) == simdjson::SUCCESS;
  return array;
}

/// Nanoseconds: a string of digits by the rule for 64-bit numbers, or a number.
base::Nanos Time(sj::object object, std::string_view camel, std::string_view snake) {
  sj::element element;
  if (!Member(object, camel, snake, element)) return base::kNoTime;
  std::string_view text;
  int64_t whole = 0;
  double real = 0;
  if (element.get(text) == simdjson::SUCCESS) {
    const auto number = ParseInteger(text);
    if (!number) return base::kNoTime;
    whole = *number;
  } else if (element.get(whole) == simdjson::SUCCESS) {
  } else if (element.get(real) == simdjson::SUCCESS && std::abs(real) < 9e18) {
    whole = static_cast<int64_t>(real);
  } else {
    return base::kNoTime;
  }
  return whole > 0 && whole <= kMaxNanos ? whole : base::kNoTime;
}

Value Scalar(sj::element element) {
  Value value;
  std::string_view text;
  bool truth = false;
  uint64_t large = 0;
  if (element.get(text) == simdjson::SUCCESS) {
    value.type = Value::Type::kText;
    value.text = std::string(text.substr(0, kMaxText));
  } else if (element.get(value.integer) == simdjson::SUCCESS) {
    value.type = Value::Type::kInteger;
  } else if (element.get(large) == simdjson::SUCCESS) {
    value.type = Value::Type::kReal;
    value.real = static_cast<double>(large);
  } else if (element.get(value.real) == simdjson::SUCCESS) {
    value.type = Value::Type::kReal;
  } else if (element.get(truth) == simdjson::SUCCESS) {
    value.type = Value::Type::kTruth;
    value.integer = truth ? 1 : 0;
  } else if (!element.is_null()) {
    value.type = Value::Type::kText;
    value.text = simdjson::minify(element).substr(0, kMaxText);
  }
  return value;
}

/// "a,b" of an array of texts; JSON text of what nests deeper.
std::string ListText(sj::array values) {
  std::string out;
  for (const auto element : values) {
    sj::object member;
    std::string_view text;
    if (!out.empty()) out += ',';
    if (element.get(member) == simdjson::SUCCESS && member["stringValue"].get(text) == simdjson::SUCCESS) {
      out += text;
    } else {
      out += simdjson::minify(element);
    }
    if (out.size() > kMaxText) break;
  }
  out.resize(std::min(out.size(), kMaxText));
  return out;
}

/// {"stringValue": "x"}, {"intValue": "16"}, ...: one AnyValue.
Value AnyValue(sj::element element) {
  sj::object object;
  if (element.get(object) != simdjson::SUCCESS) return Scalar(element);
  Value value;
  for (const auto field : object) {
    const std::string_view key = field.key;
    if (key == "intValue" || key == "int_value") {
      value = Scalar(field.value);
      if (value.type == Value::Type::kText) {
        if (const auto number = ParseInteger(value.text)) {
          value.type = Value::Type::kInteger;
          value.integer = *number;
          value.text.clear();
        }
      }
    } else if (key == "doubleValue" || key == "double_value") {
      value = Scalar(field.value);
      if (value.type == Value::Type::kInteger) value.real = static_cast<double>(value.integer);
      value.type = value.type == Value::Type::kText ? Value::Type::kText : Value::Type::kReal;  // "NaN", "Infinity"
    } else if (key == "arrayValue" || key == "array_value") {
      sj::array values;
      value.type = Value::Type::kText;
      if (field.value["values"].get(values) == simdjson::SUCCESS) value.text = ListText(values);
    } else if (key == "kvlistValue" || key == "kvlist_value") {
      value.type = Value::Type::kText;
      value.text = simdjson::minify(field.value).substr(0, kMaxText);
    } else {
      value = Scalar(field.value);
    }
  }
  return value;
}

/// Attributes as a list of key and value, or as a plain object.
std::vector<Field> Fields(sj::object owner, uint64_t* left_out = nullptr) {
  std::vector<Field> out;
  sj::element element;
  if (owner["attributes"].get(element) != simdjson::SUCCESS) return out;
  sj::array list;
  sj::object map;
  const auto full = [&out, left_out] {
    if (out.size() < kMaxFields) return false;
    if (left_out != nullptr) ++*left_out;
    return true;
  };
  if (element.get(list) == simdjson::SUCCESS) {
    for (const auto item : list) {
      sj::object pair;
      std::string_view key;
      sj::element value;
      if (full()) continue;
      if (item.get(pair) != simdjson::SUCCESS || pair["key"].get(key) != simdjson::SUCCESS) continue;
      Field field;
      field.key = std::string(key.substr(0, kMaxText));
      if (pair["value"].get(value) == simdjson::SUCCESS) field.value = AnyValue(value);
      out.push_back(std::move(field));
    }
  } else if (element.get(map) == simdjson::SUCCESS) {
    for (const auto field : map) {
      if (full()) continue;
      out.push_back({std::string(field.key.substr(0, kMaxText)), AnyValue(field.value)});
    }
  }
  return out;
}

int Kind(sj::object span) {
  sj::element element;
  int64_t number = 0;
  std::string_view text;
  if (span["kind"].get(element) != simdjson::SUCCESS) return 0;
  if (element.get(number) == simdjson::SUCCESS) return number > 0 && number < 6 ? static_cast<int>(number) : 0;
  return element.get(text) == simdjson::SUCCESS ? KindFromName(text) : 0;
}

void ReadStatus(sj::object span, Span& out) {
  sj::object status;
  if (span["status"].get(status) != simdjson::SUCCESS) return;
  sj::element code;
  int64_t number = 0;
  std::string_view text;
  if (status["code"].get(code) == simdjson::SUCCESS) {
    if (code.get(text) == simdjson::SUCCESS) {
      number = text == "STATUS_CODE_ERROR" || text == "2" ? 2 : text == "STATUS_CODE_OK" || text == "1" ? 1 : 0;
    } else if (code.get(number) != simdjson::SUCCESS) {
      number = 0;
    }
  }
  if (number == 1 || number == 2) out.status = static_cast<Status>(number);
  out.status_text = Text(status, "message", "message");
}

void ReadSpan(sj::object object, SpanSink& sink) {
  Span span;
  span.trace_id = IdFromText(Text(object, "traceId", "trace_id"), kTraceIdBytes);
  span.span_id = IdFromText(Text(object, "spanId", "span_id"), kSpanIdBytes);
  span.parent_id = IdFromText(Text(object, "parentSpanId", "parent_span_id"), kSpanIdBytes);
  span.name = Text(object, "name", "name");
  span.kind = Kind(object);
  span.begin = Time(object, "startTimeUnixNano", "start_time_unix_nano");
  span.end = Time(object, "endTimeUnixNano", "end_time_unix_nano");
  span.fields = Fields(object, &span.fields_left_out);
  ReadStatus(object, span);
  bool found = false;
  const sj::array events = Array(object, "events", "events", found);
  if (!found) return sink.Add(std::move(span));  // an array that was not found cannot be walked
  for (const auto element : events) {
    sj::object item;
    Event event;
    if (element.get(item) == simdjson::SUCCESS) {
      event.name = Text(item, "name", "name");
      event.at = Time(item, "timeUnixNano", "time_unix_nano");
      event.fields = Fields(item);
    }
    span.events.push_back(std::move(event));
  }
  sink.Add(std::move(span));
}

void ReadSpans(sj::array spans, SpanSink& sink) {
  for (const auto element : spans) {
    sj::object span;
    if (element.get(span) == simdjson::SUCCESS) {
      ReadSpan(span, sink);
    } else {
      sink.Broken("no object");
    }
  }
}

void ReadScopes(sj::object resource, SpanSink& sink) {
  // Before version 0.15 of the protocol scopes were called instrumentation libraries.
  constexpr std::string_view kNames[][3] = {
      {"scopeSpans", "scope_spans", "scope"},
      {"instrumentationLibrarySpans", "instrumentation_library_spans", "instrumentationLibrary"}};
  for (const auto& [camel, snake, scope_key] : kNames) {
    bool found = false;
    const sj::array scopes = Array(resource, camel, snake, found);
    if (!found) continue;
    for (const auto element : scopes) {
      sj::object scope;
      if (element.get(scope) != simdjson::SUCCESS) {
        sink.Broken("no object");
        continue;
      }
      sj::object about;
      sink.Scope(scope[scope_key].get(about) == simdjson::SUCCESS ? Text(about, "name", "name") : std::string());
      bool any = false;
      const sj::array spans = Array(scope, "spans", "spans", any);
      if (any) ReadSpans(spans, sink);
    }
  }
}

void ReadResource(sj::object object, SpanSink& sink) {
  sj::object about;
  sink.Resource(object["resource"].get(about) == simdjson::SUCCESS ? Fields(about) : std::vector<Field>());
  sink.Scope({});
  ReadScopes(object, sink);
}

/// Metric points and log records have other readers; they are counted by their outermost list.
bool ReadOtherSignals(sj::object root, SpanSink& sink) {
  bool any = false;
  for (const auto& [camel, snake] :
       {std::pair("resourceMetrics", "resource_metrics"), std::pair("resourceLogs", "resource_logs")}) {
    bool found = false;
    const sj::array list = Array(root, camel, snake, found);
    if (found) sink.OtherSignal(list.size());
    any = any || found;
  }
  return any;
}

Decoded ReadRoot(sj::object root, SpanSink& sink) {
  bool found = false;
  const sj::array resources = Array(root, "resourceSpans", "resource_spans", found);
  if (found) {
    for (const auto element : resources) {
      sj::object resource;
      if (element.get(resource) == simdjson::SUCCESS) {
        ReadResource(resource, sink);
      } else {
        sink.Broken("no object");
      }
    }
    ReadOtherSignals(root, sink);
    return Decoded::kSpans;
  }
  const sj::array spans = Array(root, "spans", "spans", found);
  if (found) {
    sink.Resource({});
    sink.Scope({});
    ReadSpans(spans, sink);
    return Decoded::kSpans;
  }
  Array(root, "scopeSpans", "scope_spans", found);
  if (found) {
    ReadResource(root, sink);
    return Decoded::kSpans;
  }
  sj::element element;
  if (Member(root, "startTimeUnixNano", "start_time_unix_nano", element)) {
    sink.Resource({});
    sink.Scope({});
    ReadSpan(root, sink);
    return Decoded::kSpans;
  }
  return ReadOtherSignals(root, sink) ? Decoded::kSpans : Decoded::kNotOtlp;
}

}  // namespace

struct JsonDecoder::State {
  sj::parser parser;
  std::string repaired;
};

JsonDecoder::JsonDecoder() : state_(new State) {}
JsonDecoder::~JsonDecoder() {
  delete state_;
}

Decoded JsonDecoder::Decode(std::string_view text, SpanSink& sink) {
  sj::element document;
  auto error = state_->parser.parse(text.data(), text.size()).get(document);
  if (error == simdjson::UTF8_ERROR || error == simdjson::UNESCAPED_CHARS) {
    state_->repaired.clear();
    MakeValidText(text, state_->repaired);
    error = state_->parser.parse(state_->repaired).get(document);
  }
  if (error != simdjson::SUCCESS) return Decoded::kNotJson;
  sj::object root;
  if (document.get(root) != simdjson::SUCCESS) return Decoded::kNotOtlp;
  return ReadRoot(root, sink);
}

}  // namespace teller::ingest::otlp
