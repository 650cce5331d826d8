#include "ingest/log/request_facts.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>
#include <string>

#include "ingest/log/duration_text.hpp"
#include "ingest/log/log_reader.hpp"
#include "ingest/log/python_literal.hpp"

namespace teller::ingest::log {
namespace {

using trace::kNoTime;
using trace::RequestRecord;

trace::Store ReadText(std::string_view text, const base::Limits& limits = {}) {
  trace::Store store;
  store.files.emplace_back();
  auto source = base::OpenMemory(text);
  EXPECT_TRUE(ReadLog(*source, trace::FileRow(0), store, limits).ok());
  ResolveLogTimes(store);
  return store;
}

const RequestRecord& Only(const trace::Store& store) {
  EXPECT_EQ(store.request_records.size(), 1u);
  static const RequestRecord kNone;
  return store.request_records.empty() ? kNone : store.request_records[0];
}

constexpr std::string_view kMeta =
    "'meta_info': {'id': 'q-7', 'finish_reason': {'type': 'stop', 'matched': 2}, 'prompt_tokens': 31, "
    "'num_retractions': 1, 'forward_entry_time': 1800000000.5, 'prefill_finished_time': 1800000000.625, 'queue_time': "
    "0.0038745759993616957, 'completion_tokens': 8, 'cached_tokens': 16, 'weight_versions': [{'version': 'a', 'end': "
    "8}], 'e2e_latency': 1.25, 'request_received_ts': 1800000000.1087248, 'first_token_latency': 6.5e-05, "
    "'api_server_dispatch_finish_ts': 1800000000.1096232, 'request_finished_ts': 1800000001.3587248}";

TEST(Durations, ExactAsFarAsWritten) {
  EXPECT_EQ(ParseSeconds("1795984042.1180155"), 1'795'984'042'118'015'500);
  EXPECT_EQ(ParseSeconds("1800000000.123456789"), 1'800'000'000'123'456'789);
  EXPECT_EQ(ParseSeconds("0.0038745759993616957"), 3'874'576);
  EXPECT_EQ(ParseSeconds("6.5e-05"), 65'000);
  EXPECT_EQ(ParseSeconds("12"), 12'000'000'000);
  for (const auto bad : {"", "nan", "None", "1e30", "99999999999999", "1.2.3", "--1", "1e", "0x10"})
    EXPECT_FALSE(ParseSeconds(bad).has_value()) << bad;
  EXPECT_EQ(ParseRustDuration("1.234567s"), 1'234'567'000);
  EXPECT_EQ(ParseRustDuration("12.3ms"), 12'300'000);
  EXPECT_EQ(ParseRustDuration("450.2\xc2\xb5s"), 450'200);
  EXPECT_EQ(ParseRustDuration("450.2\xce\xbcs"), 450'200);
  EXPECT_EQ(ParseRustDuration("900ns"), 900);
  EXPECT_EQ(ParseRustDuration("0ns"), 0);
  for (const auto bad : {"", "s", "12", "Some(3)", "-1s", "1.2.3s", "12 parsecs"})
    EXPECT_FALSE(ParseRustDuration(bad).has_value()) << bad;
}

TEST(PythonLiteral, WalksOneLevel) {
  std::string seen;
  EXPECT_TRUE(
      ForEachDictItem("{'a': 1, 'b': {'a': 2}, \"c\": 'x, \\'y', 'd': [1, (2)]} tail",
                      [&](auto key, auto value) { seen += std::string(key) + "=" + std::string(value) + ";"; }));
  EXPECT_EQ(seen, "a=1;b={'a': 2};c='x, \\'y';d=[1, (2)];");
  for (const auto bad : {"", "{", "{'a", "{'a'", "{'a':", "{'a': [1", "x", "{1: 2}"})
    EXPECT_FALSE(ForEachDictItem(bad, [](auto, auto) {})) << bad;
}

TEST(RequestFacts, SglangFinish) {
  // The answer's text quotes a meta_info of its own; the engine's stands last.
  const auto store = ReadText(
      "[2027-01-15 08:00:02] Finish: obj=GenerateReqInput(rid='q-7', stream=True), out={'text': \"'meta_info': "
      "{'prompt_tokens': 9}\", " +
      std::string(kMeta) + "}\n");
  const RequestRecord& r = Only(store);
  EXPECT_EQ(r.id, "q-7");
  EXPECT_EQ(r.ref, "line:1");
  EXPECT_EQ(r.engine, "sglang");
  EXPECT_EQ(r.source, trace::RequestSource::kLog);
  EXPECT_EQ(r.arrival, 1'800'000'000'108'724'800);
  EXPECT_EQ(r.dispatched, 1'800'000'000'109'623'200);
  EXPECT_EQ(r.admitted, 1'800'000'000'500'000'000);
  EXPECT_EQ(r.prefilled, 1'800'000'000'625'000'000);
  EXPECT_EQ(r.first_token, r.arrival + 65'000);
  EXPECT_EQ(r.finished, 1'800'000'001'358'724'800);
  EXPECT_EQ(r.queue_time, 3'874'576);
  EXPECT_EQ(r.e2e, 1'250'000'000);
  EXPECT_EQ(r.prompt_tokens, 31);
  EXPECT_EQ(r.cached_tokens, 16);
  EXPECT_EQ(r.output_tokens, 8);
  EXPECT_EQ(r.preemptions, 1);
  EXPECT_EQ(r.finish_reason, "stop");
  EXPECT_FALSE(r.failed);
}

TEST(RequestFacts, SglangStatesLess) {
  const auto store = ReadText(
      "[2025-06-26 07:25:31] Finish: obj=GenerateReqInput(rid='a'), out={'meta_info': {'id': 'a', 'finish_reason': "
      "{'type': 'abort', 'message': 'gone'}, 'prompt_tokens': None, 'e2e_latency': -3, 'request_received_ts': 12.5, "
      "'cached_tokens': 99999999999999999999}}\n"
      "[2025-06-26 07:25:31] Finish: obj=GenerateReqInput(rid='b')\n");
  const RequestRecord& r = Only(store);
  EXPECT_TRUE(r.failed);
  EXPECT_EQ(r.error, "gone");
  EXPECT_EQ(r.arrival, kNoTime);  // 1970 is no epoch time of a service
  EXPECT_EQ(r.prompt_tokens, -1);
  EXPECT_EQ(r.cached_tokens, -1);
  EXPECT_EQ(r.e2e, -1);
  EXPECT_EQ(r.finished, store.logs[0].at);
}

TEST(RequestFacts, ALongLineKeepsItsEnd) {
  base::Limits limits;
  limits.max_log_line_bytes = 4096;
  const std::string head = "[2027-01-15 08:00:02] Finish: obj=GenerateReqInput(rid='q-7', text='";
  for (const size_t filler : {3900u, 4000u, 4100u, 9000u, 30'000u, 300'000u}) {
    const auto store =
        ReadText(head + std::string(filler, 'x') + "'), out={" + std::string(kMeta) + "}\nnext\n", limits);
    EXPECT_EQ(store.diagnostics.Count("log.line-cut"), 1u) << filler;
    EXPECT_EQ(store.diagnostics.Count("log.request-cut"), 0u) << filler;
    EXPECT_EQ(Only(store).prompt_tokens, 31) << filler;
    EXPECT_EQ(Only(store).finished, 1'800'000'001'358'724'800) << filler;
  }
  // Behind the facts stands more than is kept: the loss is counted, and nothing is guessed from the part ahead.
  const auto lost =
      ReadText(head + std::string(4000, 'x') + "'), out={'meta_info': {'prompt_tokens': 3, 'logprobs': [" +
                   std::string(300'000, '1') + "]}}\n",
               limits);
  EXPECT_EQ(lost.diagnostics.Count("log.request-cut"), 1u);
  EXPECT_TRUE(lost.request_records.empty());
}

TEST(RequestFacts, LlamaTimingsInTheirThreeLayouts) {
  const auto store = ReadText(
      "0.10.000.000 I slot   operator(): id  0 | task 20 | new prompt, n_ctx_slot = 4096, n_keep = 0, task.n_tokens = "
      "40\n"
      "0.10.000.500 I slot   operator(): id  0 | task 20 | cached n_tokens = 23, memory_seq_rm [23, end)\n"
      "0.35.412.409 I slot print_timing: id  0 | task 20 | prompt eval time =     282.80 ms /    17 tokens (   16.64 "
      "ms per token,    60.11 tokens per second)\n"
      "0.35.412.410 I slot print_timing: id  0 | task 20 |        eval time =    1000.50 ms /     8 tokens (  125.06 "
      "ms per token,     8.00 tokens per second)\n"
      "0.35.412.411 I slot print_timing: id  0 | task 20 |       total time =    1283.30 ms /    25 tokens\n"
      "slot print_timing: id  1 | task 2209 | \n"
      "prompt eval time =     100.00 ms /    10 tokens (   10.00 ms per token,   100.00 tokens per second)\n"
      "       eval time =     200.00 ms /     4 tokens (   50.00 ms per token,    20.00 tokens per second)\n"
      "      total time =     300.00 ms /    14 tokens\n"
      "0.36.000.000 I slot print_timing: id  0 | task 21 | prompt eval time =     282.80 ms /    17 tokens (   16.64 "
      "ms per token,    60.11 tokens per second)\n");
  ASSERT_EQ(store.request_records.size(), 2u);
  const RequestRecord& a = store.request_records[0];
  EXPECT_EQ(a.id, "task 20");
  EXPECT_EQ(a.prompt_tokens, 40);
  EXPECT_EQ(a.cached_tokens, 23);
  EXPECT_EQ(a.output_tokens, 8);
  EXPECT_EQ(a.prefill_time, 282'800'000);
  EXPECT_EQ(a.decode_time, 1'000'500'000);
  EXPECT_EQ(a.finished, store.logs[4].at);
  EXPECT_EQ(a.ref, "line:5");
  const RequestRecord& b = store.request_records[1];
  EXPECT_EQ(b.id, "task 2209");
  EXPECT_EQ(b.prompt_tokens, 10);
  EXPECT_EQ(b.output_tokens, 4);
  EXPECT_EQ(b.decode_time, 200'000'000);
  EXPECT_EQ(b.finished, kNoTime);  // its lines have no time of their own
}

TEST(RequestFacts, TgiEndOfRequest) {
  const auto store = ReadText(
      "2026-03-01T10:00:00.000000Z  INFO HTTP request{otel.name=POST /generate http.method=POST}:generate_stream{"
      "parameters=GenerateParameters { best_of: None, stop: [\"}\"] } total_time=\"1.234567s\" "
      "validation_time=\"450.2\xc2\xb5s\" queue_time=\"65ns\" inference_time=\"1.2s\" time_per_token=\"12.3ms\" "
      "seed=\"Some(7)\"}: text_generation_router::server: router/src/server.rs:497: Success\n"
      "2026-03-01T10:00:01.000000Z ERROR chat_completions{total_time=\"1s\" queue_time=\"1s\" inference_time=\"1ms\"}: "
      "text_generation_router::infer: router/src/infer.rs:1: Request failed during generation: oom\n"
      "2026-03-01T10:00:02.000000Z  INFO text_generation_launcher: Shutting down shards\n");
  ASSERT_EQ(store.request_records.size(), 2u);
  const RequestRecord& a = store.request_records[0];
  EXPECT_EQ(a.engine, "tgi");
  EXPECT_EQ(a.e2e, 1'234'567'000);
  EXPECT_EQ(a.queue_time, 65);
  EXPECT_FALSE(a.failed);
  EXPECT_EQ(a.finished, store.logs[0].at);
  EXPECT_EQ(store.logs[0].message, "Success");
  EXPECT_EQ(store.logs[0].logger, "router/src/server.rs:497");
  EXPECT_TRUE(store.request_records[1].failed);
  EXPECT_EQ(store.request_records[1].error, "Request failed during generation: oom");
}

TEST(RequestFacts, EveryFinishLineOfTheRealLogsGivesARow) {
  const std::filesystem::path root = "../shared/data/lab/sglang";
  if (!std::filesystem::exists(root)) {
    GTEST_SKIP() << "the real logs (../shared/data) are not here";
  }
  size_t rows = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().filename() != "server.log") continue;
    auto source = base::OpenFile(entry.path().string());
    ASSERT_TRUE(source.has_value());
    trace::Store store;
    store.files.emplace_back();
    ASSERT_TRUE(ReadLog(**source, trace::FileRow(0), store, {}).ok());
    size_t lines = 0;
    for (const auto& record : store.logs) lines += record.message.rfind("Finish: obj=", 0) == 0 ? 1 : 0;
    EXPECT_EQ(store.request_records.size(), lines) << entry.path();
    for (const auto& r : store.request_records) {
      EXPECT_FALSE(r.id.empty());
      EXPECT_LE(r.arrival, r.dispatched) << r.id;
      EXPECT_LE(r.dispatched, r.admitted) << r.id;
      EXPECT_LE(r.admitted, r.prefilled) << r.id;
      EXPECT_LE(r.prefilled, r.finished) << r.id;
      EXPECT_LE(r.first_token, r.finished) << r.id;
      EXPECT_GT(r.output_tokens, 0) << r.id;
    }
    rows += store.request_records.size();
  }
  EXPECT_GT(rows, 50u);
  std::cout << rows << " requests\n";
}

TEST(RequestLists, EachRequestOfADumpHasItsOwnStatement) {
  const trace::Store store = ReadText(
      "(EngineCore pid=7) ERROR 11-29 21:14:01 [dump_input.py:79] Dumping scheduler output for model execution: "
      "SchedulerOutput(scheduled_new_reqs=[NewRequestData(req_id=r-1,prompt_token_ids_len=74,num_computed_tokens=16,"
      "x=None), NewRequestData(req_id=r-2,prompt_token_ids_len=50,num_computed_tokens=0,x=None)], "
      "scheduled_cached_reqs=CachedRequestData(req_ids=['r-3', 'r-4'],num_computed_tokens=[111, 29],"
      "num_output_tokens=[32, 9]), num_scheduled_tokens={r-1: 58})\n");
  ASSERT_EQ(store.request_records.size(), 4u);
  const std::vector<std::pair<int64_t, int64_t>> wanted = {{74, 16}, {50, 0}, {-1, 111}, {-1, 29}};
  for (size_t i = 0; i < 4; ++i) {
    const RequestRecord& record = store.request_records[i];
    EXPECT_EQ(record.id, "r-" + std::to_string(i + 1));
    EXPECT_EQ(record.source, trace::RequestSource::kList);
    EXPECT_EQ(std::pair(record.prompt_tokens, record.computed_tokens), wanted[i]) << record.id;
    EXPECT_TRUE(record.in_flight);
    EXPECT_EQ(record.arrival, kNoTime);
    EXPECT_EQ(record.finished, kNoTime);
  }
  EXPECT_TRUE(store.logs[0].request.empty());
}

}  // namespace
}  // namespace teller::ingest::log
