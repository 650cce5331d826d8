#include "ingest/otlp/protobuf.hpp"

#include <gtest/gtest.h>
#include <otlp.pb.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <tuple>

#include "ingest/otlp/otlp.hpp"

namespace teller::ingest {
namespace {

using nlohmann::json;
namespace pb = teller::otlp;

using Read = base::Status (*)(base::ByteSource&, trace::FileRow, trace::Store&, const base::Limits&);

trace::Store ReadBytes(Read read, std::string_view bytes, bool usable = true) {
  trace::Store store;
  store.files.emplace_back();
  auto source = base::OpenMemory(bytes);
  EXPECT_EQ(read(*source, trace::FileRow(0), store, {}).ok(), usable);
  const auto& file = store.files[0];
  EXPECT_EQ(file.records_read, file.spans + file.instants + file.dropped);
  EXPECT_EQ(file.bytes, bytes.size());
  return store;
}

std::string FromHex(const std::string& hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}

void FillValue(const json& from, pb::AnyValue& to) {
  if (from.contains("stringValue")) to.set_string_value(from["stringValue"].get<std::string>());
  if (from.contains("intValue")) to.set_int_value(std::stoll(from["intValue"].get<std::string>()));
  if (from.contains("doubleValue")) to.set_double_value(from["doubleValue"]);
  if (from.contains("boolValue")) to.set_bool_value(from["boolValue"]);
}

template <class Message>
void FillAttributes(const json& owner, Message& to) {
  if (!owner.contains("attributes")) return;
  for (const auto& pair : owner["attributes"]) {
    auto* attribute = to.add_attributes();
    attribute->set_key(pair["key"].get<std::string>());
    FillValue(pair["value"], *attribute->mutable_value());
  }
}

/// The same request in the other form, made with protobuf's own writer.
pb::Traces ToMessage(const json& document) {
  pb::Traces traces;
  for (const auto& resource : document["resourceSpans"]) {
    auto* to_resource = traces.add_resource_spans();
    FillAttributes(resource["resource"], *to_resource->mutable_resource());
    for (const auto& scope : resource["scopeSpans"]) {
      auto* to_scope = to_resource->add_scope_spans();
      to_scope->mutable_scope()->set_name(scope["scope"]["name"].get<std::string>());
      for (const auto& span : scope["spans"]) {
        auto* to = to_scope->add_spans();
        to->set_trace_id(FromHex(span.value("traceId", "")));
        to->set_span_id(FromHex(span.value("spanId", "")));
        to->set_parent_span_id(FromHex(span.value("parentSpanId", "")));
        to->set_name(span["name"].get<std::string>());
        to->set_kind(span["kind"] == "SPAN_KIND_SERVER" ? 2 : 1);
        to->set_start_time_unix_nano(std::stoull(span["startTimeUnixNano"].get<std::string>()));
        to->set_end_time_unix_nano(std::stoull(span["endTimeUnixNano"].get<std::string>()));
        FillAttributes(span, *to);
        if (span["status"].contains("code")) to->mutable_status()->set_code(span["status"]["code"]);
        if (span["status"].contains("message"))
          to->mutable_status()->set_message(span["status"]["message"].get<std::string>());
        if (!span.contains("events")) continue;
        for (const auto& event : span["events"]) {
          auto* to_event = to->add_events();
          to_event->set_name(event["name"].get<std::string>());
          to_event->set_time_unix_nano(std::stoull(event["timeUnixNano"].get<std::string>()));
          FillAttributes(event, *to_event);
        }
      }
    }
  }
  return traces;
}

enum class Together { kPlain, kVarint, kBigEndian };

std::string Frame(const std::string& message, Together how) {
  std::string out;
  size_t length = message.size();
  if (how == Together::kVarint) {
    for (; length >= 0x80; length >>= 7) out += static_cast<char>((length & 0x7F) | 0x80);
    out += static_cast<char>(length);
  } else if (how == Together::kBigEndian) {
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(length >> shift & 0xFF);
  }
  return out + message;
}

void ExpectSame(const trace::Store& a, const trace::Store& b) {
  ASSERT_EQ(a.spans.size(), b.spans.size());
  ASSERT_EQ(a.tracks.size(), b.tracks.size());
  ASSERT_EQ(a.processes.size(), b.processes.size());
  ASSERT_EQ(a.instants.size(), b.instants.size());
  ASSERT_EQ(a.request_records.size(), b.request_records.size());
  for (size_t i = 0; i < a.processes.size(); ++i) {
    EXPECT_EQ(a.processes[i].pid, b.processes[i].pid);
    EXPECT_EQ(a.processes[i].name, b.processes[i].name);
    EXPECT_EQ(a.processes[i].engine, b.processes[i].engine);
  }
  for (uint32_t i = 0; i < a.spans.size(); ++i) {
    EXPECT_EQ(a.spans.begin[i], b.spans.begin[i]);
    EXPECT_EQ(a.spans.duration[i], b.spans.duration[i]);
    EXPECT_EQ(a.name(i), b.name(i));
    EXPECT_EQ(a.spans.track[i], b.spans.track[i]);
    const auto left = a.attributes.FindAll(i);
    const auto right = b.attributes.FindAll(i);
    ASSERT_EQ(left.size(), right.size());
    for (size_t k = 0; k < left.size(); ++k) {
      EXPECT_EQ(a.text(left[k].key), b.text(right[k].key));
      EXPECT_EQ(a.text(left[k].value), b.text(right[k].value));
    }
  }
  for (size_t i = 0; i < a.instants.size(); ++i) EXPECT_EQ(a.instants[i].at, b.instants[i].at);
  for (size_t i = 0; i < a.request_records.size(); ++i) {
    const auto& x = a.request_records[i];
    const auto& y = b.request_records[i];
    EXPECT_EQ(std::tie(x.ref, x.id, x.trace_id, x.process, x.engine, x.error, x.failed, x.arrival, x.finished),
              std::tie(y.ref, y.id, y.trace_id, y.process, y.engine, y.error, y.failed, y.arrival, y.finished));
    EXPECT_EQ(std::tie(x.queue_time, x.prefill_time, x.decode_time, x.ttft, x.e2e, x.prompt_tokens, x.output_tokens),
              std::tie(y.queue_time, y.prefill_time, y.decode_time, y.ttft, y.e2e, y.prompt_tokens, y.output_tokens));
  }
}

/// Lines of JSON and all three ways to put the same messages together give one store.
void ExpectSameInEveryForm(const std::string& lines) {
  const auto expected = ReadBytes(ReadOtlpJson, lines);
  for (const auto how : {Together::kPlain, Together::kVarint, Together::kBigEndian}) {
    std::string bytes;
    std::istringstream in(lines);
    std::string line;
    while (std::getline(in, line)) bytes += Frame(ToMessage(json::parse(line)).SerializeAsString(), how);
    EXPECT_TRUE(LooksLikeOtlpProtobuf(std::string_view(bytes).substr(0, 65536)));
    ExpectSame(expected, ReadBytes(ReadOtlpProtobuf, bytes));
  }
}

std::string Line(int index) {
  const std::string number = std::to_string(index);
  json span = {{"traceId", "000000000000000000000000000000aa"},
               {"spanId", std::string(16 - number.size(), '0') + number},
               {"name", index % 2 == 0 ? "llm_request" : "POST /v1/chat/completions"},
               {"kind", "SPAN_KIND_SERVER"},
               {"startTimeUnixNano", std::to_string(1795986610000000000 + index * 1000)},
               {"endTimeUnixNano", std::to_string(1795986611000000000 + index * 900)},
               {"attributes",
                {{{"key", "gen_ai.latency.e2e"}, {"value", {{"doubleValue", 0.5 + index}}}},
                 {{"key", "gen_ai.usage.prompt_tokens"}, {"value", {{"intValue", number}}}},
                 {{"key", "http.url"}, {"value", {{"stringValue", std::string(300, 'x')}}}},
                 {{"key", "cached"}, {"value", {{"boolValue", true}}}}}},
               {"status", {{"code", 2}, {"message", "aborted"}}},
               {"events", {{{"name", "first"}, {"timeUnixNano", "1795986610500000000"}}}}};
  json resource = {{"attributes", {{{"key", "service.name"}, {"value", {{"stringValue", "vllm"}}}}}}};
  json document = {
      {"resourceSpans",
       {{{"resource", resource}, {"scopeSpans", {{{"scope", {{"name", "vllm.tracing.otel"}}}, {"spans", {span}}}}}}}}};
  return document.dump() + "\n";
}

TEST(OtlpProtobuf, GivesTheSameStoreAsJson) {
  std::string lines;
  for (int i = 1; i < 40; ++i) lines += Line(i);
  ExpectSameInEveryForm(lines);
  ExpectSameInEveryForm(Line(1));
}

TEST(OtlpProtobuf, GivesTheSameStoreAsJsonOnTheRealSpans) {
  const std::filesystem::path root = "../shared/data/lab/vllm";
  if (!std::filesystem::exists(root)) {
    GTEST_SKIP() << "the real spans (../shared/data) are not here";
  }
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().filename() != "spans.jsonl") continue;
    std::ifstream in(entry.path());
    ExpectSameInEveryForm(std::string((std::istreambuf_iterator<char>(in)), {}));
  }
}

TEST(OtlpProtobuf, CutAnywhereKeepsTheWholeMessages) {
  for (const auto how : {Together::kPlain, Together::kVarint, Together::kBigEndian}) {
    std::string bytes;
    std::vector<size_t> ends;
    for (int i = 1; i < 4; ++i) {
      bytes += Frame(ToMessage(json::parse(Line(i))).SerializeAsString(), how);
      ends.push_back(bytes.size());
    }
    for (size_t length = ends[0]; length <= bytes.size(); ++length) {
      trace::Store store;
      store.files.emplace_back();
      auto source = base::OpenMemory(std::string_view(bytes).substr(0, length));
      ASSERT_TRUE(ReadOtlpProtobuf(*source, trace::FileRow(0), store, {}).ok());
      const auto whole = std::count_if(ends.begin(), ends.end(), [&](size_t end) { return end <= length; });
      ASSERT_EQ(store.spans.size(), static_cast<size_t>(whole));
      const bool at_end = std::find(ends.begin(), ends.end(), length) != ends.end();
      EXPECT_EQ(store.files[0].dropped, at_end ? 0u : 1u) << length;
    }
  }
}

TEST(OtlpProtobuf, RefusesOtherBytes) {
  for (const std::string& text : {std::string("\nI\nlog line\n"), std::string("plain"), std::string(100, '\x01'),
                                  std::string("\x80\x04\x95"), std::string()}) {
    EXPECT_FALSE(LooksLikeOtlpProtobuf(text)) << text;
    ReadBytes(ReadOtlpProtobuf, text, false);
  }
}

}  // namespace
}  // namespace teller::ingest
