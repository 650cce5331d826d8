#include "ingest/otlp/otlp.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <tuple>

namespace teller::ingest {
namespace {

using trace::kNoTime;

trace::Store ReadText(std::string_view text, bool usable = true) {
  trace::Store store;
  store.files.emplace_back();
  store.files[0].path = "spans.jsonl";
  auto source = base::OpenMemory(text);
  EXPECT_EQ(ReadOtlpJson(*source, trace::FileRow(0), store, {}).ok(), usable);
  const auto& file = store.files[0];
  EXPECT_EQ(file.records_read, file.spans + file.instants + file.metadata + file.dropped);
  EXPECT_EQ(file.spans, store.spans.size());
  EXPECT_EQ(file.instants, store.instants.size());
  EXPECT_EQ(file.requests, store.request_records.size());
  return store;
}

std::string Attribute(const std::string& key, const std::string& value) {
  return R"({"key":")" + key + R"(","value":)" + value + "}";
}

std::string OneSpan(const std::string& members, const std::string& resource = "") {
  return R"({"resourceSpans":[{"resource":{"attributes":[)" + resource +
         R"(]},"scopeSpans":[{"scope":{"name":"s"},"spans":[{)" + members + "}]}]}]}";
}

const std::string kTimes = R"("startTimeUnixNano":"1795986610000000000","endTimeUnixNano":"1795986611500000000")";

std::string AttributeOf(const trace::Store& store, uint32_t span, std::string_view key) {
  for (const auto& attribute : store.attributes.FindAll(span)) {
    if (store.text(attribute.key) == key) return std::string(store.text(attribute.value));
  }
  return {};
}

TEST(Otlp, AVllmRequestSpanBecomesARecordAndASpan) {
  const auto store = ReadText(OneSpan(
      R"("traceId":"D71B9B01CF0FD173D9E2A06EBFD0B9BD","spanId":"bb0c17bf31f17bc9","name":"llm_request","kind":2,)" +
          kTimes + R"(,"attributes":[)" + Attribute("gen_ai.request.id", R"({"stringValue":"cmpl-7-0"})") + "," +
          Attribute("gen_ai.latency.time_in_queue", R"({"doubleValue":0.25})") + "," +
          Attribute("gen_ai.latency.time_in_model_prefill", R"({"doubleValue":0.5})") + "," +
          Attribute("gen_ai.latency.time_in_model_decode", R"({"doubleValue":0.625})") + "," +
          Attribute("gen_ai.latency.time_to_first_token", R"({"doubleValue":0.75})") + "," +
          Attribute("gen_ai.latency.e2e", R"({"doubleValue":1.375})") + "," +
          Attribute("gen_ai.usage.prompt_tokens", R"({"intValue":"16"})") + "," +
          Attribute("gen_ai.usage.completion_tokens", R"({"intValue":8})") + R"(],"status":{})",
      Attribute("service.name", R"({"stringValue":"my-service"})") + "," +
          Attribute("vllm.process_id", R"({"stringValue":"16333"})")));
  ASSERT_EQ(store.request_records.size(), 1u);
  const auto& r = store.request_records[0];
  EXPECT_EQ(r.id, "cmpl-7-0");
  EXPECT_EQ(r.ref, "span:0");
  EXPECT_EQ(r.engine, "vllm");
  EXPECT_EQ(r.trace_id, "d71b9b01cf0fd173d9e2a06ebfd0b9bd");
  EXPECT_EQ(r.arrival, 1795986610000000000);
  EXPECT_EQ(r.finished, 1795986611500000000);
  EXPECT_EQ(r.queue_time, 250'000'000);
  EXPECT_EQ(r.prefill_time, 500'000'000);
  EXPECT_EQ(r.decode_time, 625'000'000);
  EXPECT_EQ(r.ttft, 750'000'000);
  EXPECT_EQ(r.e2e, 1'375'000'000);
  EXPECT_EQ(r.prompt_tokens, 16);
  EXPECT_EQ(r.output_tokens, 8);
  EXPECT_EQ(r.cached_tokens, -1);
  EXPECT_FALSE(r.failed);
  EXPECT_EQ(r.admitted, kNoTime);
  ASSERT_EQ(store.spans.size(), 1u);
  EXPECT_EQ(store.kind(0), trace::SpanKind::kService);
  EXPECT_EQ(store.spans.duration[0], 1'500'000'000);
  EXPECT_EQ(store.process_of(0).pid, "16333");
  EXPECT_TRUE(store.process_of(0).service);
  EXPECT_EQ(AttributeOf(store, 0, "span.kind"), "server");
  EXPECT_EQ(AttributeOf(store, 0, "gen_ai.usage.prompt_tokens"), "16");
}

TEST(Otlp, OtherSpansAreKeptAndMakeNoRequest) {
  const auto store = ReadText(OneSpan(R"("name":"POST /v1/completions","kind":"SPAN_KIND_SERVER",)" + kTimes +
                                      R"(,"attributes":[)" + Attribute("http.status_code", R"({"intValue":"200"})") +
                                      "," + Attribute("gen_ai.usage.prompt_tokens", R"({"intValue":"9"})") + "]"));
  EXPECT_TRUE(store.request_records.empty());
  ASSERT_EQ(store.spans.size(), 1u);
  EXPECT_EQ(AttributeOf(store, 0, "http.status_code"), "200");
}

TEST(Otlp, FormsOfADocument) {
  const std::string span = R"({"name":"a",)" + kTimes + "}";
  for (const std::string& text :
       {R"({"spans":[)" + span + "," + span + "]}",
        R"({"resourceSpans":[{"scopeSpans":[{"spans":[)" + span + "]}]}]}\n" +
            R"({"resourceSpans":[{"scopeSpans":[{"spans":[)" + span + "]}]}]}\n",
        R"({"resource_spans":[{"scope_spans":[{"spans":[)" + span + "]}]}]}" + R"({"spans":[)" + span + "]}",
        "[" + span + ",\n" + span + "]",
        R"({"resourceSpans":[{"instrumentationLibrarySpans":[{"spans":[)" + span + "," + span + "]}]}]}"}) {
    const auto store = ReadText(text);
    EXPECT_EQ(store.spans.size(), 2u) << text;
    EXPECT_EQ(store.files[0].dropped, 0u) << text;
  }
}

TEST(Otlp, FormsOfIdsAndTimes) {
  const auto store = ReadText(
      R"({"spans":[{"traceId":"1xubAc8P0XPZ4qBuv9C5vQ==","spanId":"uwwXvzHxe8k=","name":"base64","startTimeUnixNano":1795986610000000001,)"
      R"("endTimeUnixNano":1.7959866100000005e18},)"
      R"({"trace_id":"00000000000000000000000000000000","span_id":"","name":"none","start_time_unix_nano":"1795986610000000002","end_time_unix_nano":"1795986610000000003"}]})");
  ASSERT_EQ(store.spans.size(), 2u);
  EXPECT_EQ(AttributeOf(store, 0, "trace_id"), "d71b9b01cf0fd173d9e2a06ebfd0b9bd");
  EXPECT_EQ(AttributeOf(store, 0, "span_id"), "bb0c17bf31f17bc9");
  EXPECT_EQ(store.spans.begin[0], 1795986610000000001);
  EXPECT_EQ(AttributeOf(store, 1, "trace_id"), "");
  EXPECT_EQ(store.spans.duration[1], 1);
}

TEST(Otlp, BadTimesAreCounted) {
  const auto store = ReadText(
      R"({"spans":[{"name":"no begin","endTimeUnixNano":"1795986610000000001"},)"
      R"({"name":"no end","startTimeUnixNano":"1795986610000000001"},)"
      R"({"name":"backward","startTimeUnixNano":"1795986610000000001","endTimeUnixNano":"1795986610000000000"},)"
      R"({"name":"long","startTimeUnixNano":"1","endTimeUnixNano":"3999999999999999999"},)"
      R"({"name":"text","startTimeUnixNano":"yesterday"},{"name":"huge","startTimeUnixNano":"99999999999999999999"},7]})");
  EXPECT_EQ(store.spans.size(), 3u);
  for (size_t i = 0; i < store.spans.size(); ++i) EXPECT_EQ(store.spans.duration[i], 0);
  EXPECT_EQ(store.files[0].dropped, 4u);
  EXPECT_EQ(store.diagnostics.Count("otlp.no-begin"), 3u);
  EXPECT_EQ(store.diagnostics.Count("otlp.no-end"), 1u);
  EXPECT_EQ(store.diagnostics.Count("otlp.end-first"), 1u);
  EXPECT_EQ(store.diagnostics.Count("otlp.absurd-duration"), 1u);
  EXPECT_EQ(store.diagnostics.Count("otlp.bad-span"), 1u);
}

TEST(Otlp, ValuesThatAreNoneAreNotBelieved) {
  const auto store = ReadText(OneSpan(R"("name":"llm_request",)" + kTimes + R"(,"attributes":[)" +
                                      Attribute("gen_ai.latency.e2e", R"({"doubleValue":-1.5})") + "," +
                                      Attribute("gen_ai.latency.time_in_queue", R"({"doubleValue":"NaN"})") + "," +
                                      Attribute("gen_ai.latency.time_to_first_token", R"({"doubleValue":1e300})") +
                                      "," + Attribute("gen_ai.usage.prompt_tokens", R"({"intValue":"-3"})") + "," +
                                      Attribute("gen_ai.usage.completion_tokens", R"({"doubleValue":2.5})") + "," +
                                      Attribute("gen_ai.latency.time_in_model_decode", "{}") + "]"));
  ASSERT_EQ(store.request_records.size(), 1u);
  const auto& r = store.request_records[0];
  EXPECT_EQ(std::tuple(r.e2e, r.queue_time, r.ttft, r.decode_time), std::tuple(-1, -1, -1, -1));
  EXPECT_EQ(std::tuple(r.prompt_tokens, r.output_tokens), std::tuple(-1, -1));
  EXPECT_EQ(store.diagnostics.Count("otlp.bad-value"), 5u);
}

TEST(Otlp, AFailedRequestSaysWhy) {
  const auto store = ReadText(OneSpan(
      R"("name":"llm_request",)" + kTimes +
      R"(,"status":{"code":"STATUS_CODE_ERROR"},"events":[{"timeUnixNano":"1795986611000000000","name":"exception","attributes":[)" +
      Attribute("exception.type", R"({"stringValue":"EngineDeadError"})") + "," +
      Attribute("exception.message", R"({"stringValue":"core died"})") + R"(]},{"name":"no time"}])"));
  ASSERT_EQ(store.request_records.size(), 1u);
  EXPECT_TRUE(store.request_records[0].failed);
  EXPECT_EQ(store.request_records[0].error, "EngineDeadError: core died");
  ASSERT_EQ(store.instants.size(), 1u);
  EXPECT_EQ(store.text(store.instants[0].name), "exception");
  EXPECT_EQ(store.files[0].dropped, 1u);
}

/// Request spans that overlap in time lie on lanes of their own; what nests by its ids stays together.
TEST(Otlp, SpansOfATrackNest) {
  std::string spans;
  const auto add = [&spans](const char* id, const char* parent, int begin, int end) {
    spans += std::string(spans.empty() ? "" : ",") +
             R"({"traceId":"000000000000000000000000000000aa","spanId":"000000000000000)" + id +
             R"(","parentSpanId":")" + (*parent != 0 ? std::string("000000000000000") + parent : std::string()) +
             R"(","name":")" + id + R"(","startTimeUnixNano":"17959866100000000)" + std::to_string(begin) +
             R"(","endTimeUnixNano":"17959866100000000)" + std::to_string(end) + "\"}";
  };
  // Children before parents, as exporters write them.
  add("2", "1", 12, 15);
  add("3", "1", 15, 20);
  add("1", "", 10, 20);
  add("5", "4", 13, 14);
  add("4", "", 11, 18);
  add("6", "", 20, 30);
  const auto store = ReadText(R"({"spans":[)" + spans + "]}");
  ASSERT_EQ(store.spans.size(), 6u);
  EXPECT_EQ(store.tracks.size(), 2u);
  for (const auto& track : store.tracks) {
    for (uint32_t a = track.first_span; a < track.first_span + track.span_count; ++a) {
      if (a > track.first_span) {
        EXPECT_LE(store.spans.begin[a - 1], store.spans.begin[a]);
      }
      for (uint32_t b = a + 1; b < track.first_span + track.span_count; ++b) {
        const bool inside = store.spans.begin[b] >= store.spans.begin[a] && store.spans.end(b) <= store.spans.end(a);
        EXPECT_TRUE(inside || store.spans.begin[b] >= store.spans.end(a));
        if (inside) {
          EXPECT_EQ(AttributeOf(store, b, "parent_span_id"), AttributeOf(store, a, "span_id"));
        }
      }
    }
  }
}

TEST(Otlp, ACircleOfParentsIsCut) {
  const auto store =
      ReadText(R"({"spans":[{"spanId":"0000000000000001","parentSpanId":"0000000000000002","name":"a",)" + kTimes +
               R"(},{"spanId":"0000000000000002","parentSpanId":"0000000000000001","name":"b",)" + kTimes +
               R"(},{"spanId":"0000000000000003","parentSpanId":"0000000000000003","name":"c",)" + kTimes + "}]}");
  EXPECT_EQ(store.spans.size(), 3u);
}

TEST(Otlp, ASpanExportedTwiceCountsOnce) {
  const std::string line =
      OneSpan(R"("traceId":"000000000000000000000000000000aa","spanId":"00000000000000bb","name":"a",)" + kTimes) +
      "\n";
  const auto store = ReadText(line + line);
  EXPECT_EQ(store.spans.size(), 1u);
  EXPECT_EQ(store.diagnostics.Count("otlp.twice"), 1u);
}

TEST(Otlp, SglangPhasesBecomeFieldsOfTheirRequest) {
  const auto span = [](const std::string& id, const std::string& parent, const std::string& name, int begin, int end,
                       const std::string& attributes, const std::string& events = "") {
    return R"({"traceId":"000000000000000000000000000000aa","spanId":"00000000000000)" + id + R"(","parentSpanId":")" +
           (parent.empty() ? "" : "00000000000000" + parent) + R"(","name":")" + name +
           R"(","startTimeUnixNano":"1795986610)" + std::to_string(begin) + R"(000000","endTimeUnixNano":"1795986610)" +
           std::to_string(end) + R"(000000","attributes":[)" + attributes + R"(],"events":[)" + events + "]}";
  };
  const auto thread = [](const std::string& label, const std::string& pid, const std::string& tp) {
    return Attribute("thread_label", R"({"stringValue":")" + label + "\"}") + "," +
           Attribute("pid", R"({"intValue":")" + pid + "\"}") + "," + Attribute("host_id", R"({"stringValue":"h"})") +
           (tp.empty() ? "" : "," + Attribute("tp_rank", R"({"intValue":")" + tp + "\"}"));
  };
  const std::string spans =
      span("12", "11", "tokenize", 101, 110, "") + "," + span("13", "11", "api_server_dispatch", 110, 112, "") + "," +
      span("11", "10", "Tokenizer (host:h | pid:5)", 100, 112, thread("Tokenizer", "5", "")) + "," +
      span("22", "21", "request_process", 113, 114, "") + "," + span("23", "21", "prefill_waiting", 114, 150, "") +
      "," + span("25", "24", "chunked_prefill", 150, 170, "") + "," +
      span("24", "21", "prefill_forward", 150, 200, "") + "," +
      span("26", "21", "decode_forward", 210, 400, "", R"({"timeUnixNano":"1795986610300000000","name":"retract"})") +
      "," + span("21", "10", "Scheduler", 113, 401, thread("Scheduler", "7", "0")) + "," +
      span("32", "31", "prefill_waiting", 115, 160, "") + "," +
      span("31", "10", "Scheduler", 113, 402, thread("Scheduler", "8", "1")) + "," +
      span("10", "", " Req 1f0c8a2b", 100, 450,
           Attribute("rid", R"({"stringValue":"1f0c8a2b99"})") + "," +
               Attribute("gen_ai.latency.time_to_first_token", R"({"doubleValue":0.105})") + "," +
               Attribute("gen_ai.latency.time_in_model_prefill", R"({"doubleValue":0.093})") + "," +
               Attribute("gen_ai.usage.cached_tokens", R"({"intValue":"4"})"));
  const auto store = ReadText(R"({"resourceSpans":[{"resource":{"attributes":[)" +
                              Attribute("service.name", R"({"stringValue":"sglang"})") +
                              R"(]},"scopeSpans":[{"scope":{"name":"sglang server"},"spans":[)" + spans + "]}]}]}");
  ASSERT_EQ(store.request_records.size(), 1u);
  const auto& r = store.request_records[0];
  const auto at = [](int ms) { return 1795986610000000000 + ms * base::kMilli; };
  EXPECT_EQ(r.engine, "sglang");
  EXPECT_EQ(r.id, "1f0c8a2b99");
  EXPECT_EQ(r.arrival, at(100));
  EXPECT_EQ(r.dispatched, at(112));
  EXPECT_EQ(r.admitted, at(150));
  EXPECT_EQ(r.prefilled, at(200));
  EXPECT_EQ(r.finished, at(450));
  EXPECT_EQ(r.queue_time, 36 * base::kMilli);
  EXPECT_EQ(r.prefill_time, 50 * base::kMilli);
  EXPECT_EQ(r.decode_time, 190 * base::kMilli);
  EXPECT_EQ(r.ttft, 105 * base::kMilli);
  EXPECT_EQ(r.preemptions, 1);
  EXPECT_EQ(r.cached_tokens, 4);
  EXPECT_EQ(store.spans.size(), 12u);
  std::map<std::string, std::string> names;
  for (const auto& process : store.processes) names[process.pid] = process.name;
  EXPECT_EQ(names.at("7"), "Scheduler_tp0");
  EXPECT_EQ(names.at("8"), "Scheduler_tp1");
  EXPECT_EQ(names.at("5"), "Tokenizer");
}

TEST(Otlp, SpansOfTgiTellFrontEndQueueAndTokens) {
  const auto text = [](const char* key, const std::string& value) {
    return Attribute(key, R"({"stringValue":")" + value + "\"}");
  };
  const std::string span = R"({"name":"generate","attributes":[)" + text("total_time", "1.5s") + "," +
                           text("validation_time", "450.2\xC2\xB5s") + "," + text("queue_time", "30ms") + "," +
                           text("inference_time", "1.46954s") + "," + text("time_per_token", "73.477ms") + "]," +
                           kTimes + "}";
  const auto store = ReadText(R"({"resourceSpans":[{"resource":{"attributes":[)" +
                              text("service.name", "text-generation-inference.router") +
                              R"(]},"scopeSpans":[{"scope":{},"spans":[)" + span + "]}]}]}");
  ASSERT_EQ(store.request_records.size(), 1u);
  const auto& r = store.request_records[0];
  EXPECT_EQ(r.engine, "tgi");
  EXPECT_EQ(r.e2e, 1500 * base::kMilli);
  EXPECT_EQ(r.queue_time, 30 * base::kMilli);
  EXPECT_EQ(r.dispatched - r.arrival, 450'200);
  EXPECT_EQ(r.admitted - r.dispatched, 30 * base::kMilli);
  EXPECT_EQ(r.output_tokens, 20);
}

TEST(Otlp, ACutFileKeepsItsWholeSpans) {
  const std::string span = R"({"name":"a","attributes":[{"key":"k","value":{"stringValue":"v"}}],)" + kTimes + "}";
  const std::string whole = R"({"resourceSpans":[{"resource":{"attributes":[]},"scopeSpans":[{"scope":{},"spans":[)" +
                            span + "," + span + "," + span + "]}]}]}";
  for (size_t length = 1; length < whole.size(); ++length) {
    trace::Store store;
    store.files.emplace_back();
    auto source = base::OpenMemory(std::string_view(whole).substr(0, length));
    (void)ReadOtlpJson(*source, trace::FileRow(0), store, {});
    const size_t begin = whole.find(R"({"name":"a")");
    const size_t spans = length < begin ? 0 : std::min<size_t>(3, (length - begin + 1) / (span.size() + 1));
    ASSERT_EQ(store.spans.size(), spans) << whole.substr(0, length);
    EXPECT_EQ(store.diagnostics.Count("otlp.truncated"), 1u);
  }
}

TEST(Otlp, LinesOfOtherKindsAreCounted) {
  const auto store = ReadText(R"({"spans":[{"name":"a",)" + kTimes + "}]}\n" +
                              R"({"resourceMetrics":[{},{}]})"
                              "\n"
                              R"({"resourceLogs":[{}]})"
                              "\nplain text\n"
                              R"({"other":1})"
                              "\n{\"a\":}\n");
  EXPECT_EQ(store.spans.size(), 1u);
  EXPECT_EQ(store.diagnostics.Count("otlp.other-signal"), 3u);
  EXPECT_EQ(store.diagnostics.Count("otlp.bad-document"), 3u);
  EXPECT_EQ(store.files[0].dropped, 6u);
  ReadText("{\"other\":1}\n", false);
}

TEST(Otlp, ProcessesAreToldApart) {
  const auto line = [](const std::string& pid, const std::string& name) {
    return OneSpan(
               R"("name":"init",)" + kTimes,
               Attribute("service.name", R"({"stringValue":"vllm"})") + "," +
                   Attribute("vllm.process_id", R"({"stringValue":")" + pid + "\"}") +
                   (name.empty() ? "" : "," + Attribute("vllm.process_name", R"({"stringValue":")" + name + "\"}"))) +
           "\n";
  };
  const auto store = ReadText(line("10", "") + line("11", "EngineCore") + line("10", "") + line("12", "Worker_0"));
  ASSERT_EQ(store.processes.size(), 3u);
  EXPECT_EQ(store.processes[1].name, "EngineCore");
  EXPECT_EQ(store.processes[2].engine, "vllm");
}

/// Every span of the lab's files, against nlohmann's reading of the same lines.
TEST(Otlp, ReadsTheRealSpans) {
  const std::filesystem::path root = "../shared/data/lab/vllm";
  if (!std::filesystem::exists(root)) {
    GTEST_SKIP() << "the real spans (../shared/data) are not here";
  }
  size_t requests = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().filename() != "spans.jsonl") continue;
    std::ifstream in(entry.path());
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    const auto store = ReadText(text);
    EXPECT_EQ(store.files[0].dropped, 0u);
    std::istringstream lines(text);
    std::string line;
    size_t spans = 0;
    size_t next = 0;
    while (std::getline(lines, line)) {
      const auto document = nlohmann::json::parse(line);
      for (const auto& resource : document["resourceSpans"]) {
        for (const auto& scope : resource["scopeSpans"]) {
          for (const auto& span : scope["spans"]) {
            ++spans;
            if (span["name"] != "llm_request") continue;
            ASSERT_LT(next, store.request_records.size());
            const auto& r = store.request_records[next++];
            EXPECT_EQ(r.arrival, std::stoll(span["startTimeUnixNano"].get<std::string>()));
            EXPECT_EQ(r.finished, std::stoll(span["endTimeUnixNano"].get<std::string>()));
            const std::map<std::string, int64_t> stated = {{"gen_ai.latency.e2e", r.e2e},
                                                           {"gen_ai.latency.time_in_queue", r.queue_time},
                                                           {"gen_ai.latency.time_to_first_token", r.ttft},
                                                           {"gen_ai.latency.time_in_model_prefill", r.prefill_time},
                                                           {"gen_ai.latency.time_in_model_decode", r.decode_time},
                                                           {"gen_ai.usage.prompt_tokens", r.prompt_tokens},
                                                           {"gen_ai.usage.completion_tokens", r.output_tokens}};
            size_t compared = 0;
            for (const auto& attribute : span["attributes"]) {
              const std::string key = attribute["key"];
              const auto& value = attribute["value"];
              if (key == "gen_ai.request.id") {
                EXPECT_EQ(r.id, value["stringValue"].get<std::string>());
              }
              const auto it = stated.find(key);
              if (it == stated.end()) continue;
              ++compared;
              const int64_t expected = value.contains("intValue")
                                           ? std::stoll(value["intValue"].get<std::string>())
                                           : std::llround(value["doubleValue"].get<double>() * 1e9);
              EXPECT_EQ(it->second, expected) << key;
            }
            EXPECT_EQ(compared, stated.size());
            EXPECT_EQ(r.engine, "vllm");
          }
        }
      }
    }
    EXPECT_EQ(next, store.request_records.size());
    EXPECT_EQ(spans, store.spans.size());
    requests += next;
  }
  EXPECT_EQ(requests, 223u);
}

TEST(Otlp, ATornLineCostsOnlyItself) {
  const std::string whole =
      OneSpan(R"("name":"a","startTimeUnixNano":"1700000000000000000","endTimeUnixNano":"1700000000000000005")");
  for (size_t cut = 1; cut < whole.size(); ++cut) {
    const trace::Store store = ReadText(whole + "\n" + whole.substr(0, cut) + "\n" + whole + "\n" + whole + "\n");
    const uint64_t torn_but_whole = cut >= whole.rfind("}]}]}]}") + 1 ? 1 : 0;
    EXPECT_EQ(store.spans.size(), 3u + torn_but_whole) << cut;
  }
}

}  // namespace
}  // namespace teller::ingest
