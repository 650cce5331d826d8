#include "ingest/log/request_id.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace teller::ingest::log {
namespace {

using trace::LogSource;

struct Case {
  LogSource source;
  std::string message;
  std::string id;
};

TEST(RequestId, OneIdAsWritten) {
  const std::vector<Case> cases = {
      {LogSource::kVllm, "Received request cmpl-7f3a9c-0: prompt: 'request_id=no', params: SamplingParams(n=1)",
       "cmpl-7f3a9c-0"},
      {LogSource::kVllm, "Received request abc: params: SamplingParams(n=1)", "abc"},
      {LogSource::kVllm, "Added request chatcmpl-5d2f.", "chatcmpl-5d2f"},
      {LogSource::kVllm, "Aborted request 17.", "17"},
      {LogSource::kVllm, "Aborted request(s) cmpl-a1-0.", "cmpl-a1-0"},
      {LogSource::kVllm, "Finished request cmpl-4711-0.", "cmpl-4711-0"},
      {LogSource::kVllm, "Request chatcmpl-9e aborted.", "chatcmpl-9e"},
      {LogSource::kVllm, "Request cmpl-9e-0 failed (engine dead).", "cmpl-9e-0"},
      {LogSource::kVllm, "Sequence group cmpl-1f-0 is preempted by PreemptionMode.RECOMPUTE mode because", "cmpl-1f-0"},
      {LogSource::kVllm, "Generated response chatcmpl-2: output: 'request id: 5', output_token_ids: None",
       "chatcmpl-2"},
      {LogSource::kVllm, "Releasing KV blocks for request cmpl-77-0 after 480 s", "cmpl-77-0"},
      {LogSource::kVllm, "got X-Request-Id: 5ab0f2c8, request_id=cmpl-5ab0f2c8-0", "cmpl-5ab0f2c8-0"},
      {LogSource::kSglang, "Receive: obj=GenerateReqInput(rid='0025-006', session_id=None)", "0025-006"},
      {LogSource::kSglang,
       "Finish: obj=GenerateReqInput(text=\"it's rid='7'\", input_ids=None, rid='a-1', x=None), out={}", "a-1"},
      {LogSource::kSglang,
       "Decode transfer failed for request rank=0 decode_req.req.rid='f00' decode_req.req.bootstrap_room=12 with",
       "f00"},
      {LogSource::kSglang, "Receive: obj=GenerateReqInput(rid=['only'], stream=True)", "only"},
      {LogSource::kLlamaCpp, "slot      release: id  3 | task 12 | stop processing: n_tokens = 75", "task 12"},
      {LogSource::kLlamaCpp, "srv    send_error: task id = 80, error: request (1300 tokens) exceeds", "task 80"},
      {LogSource::kLlamaCpp, "srv          stop: cancel task, id_task = 21", "task 21"},
      {LogSource::kGlog, "[request id: 42] Setting state from INITIALIZED to PENDING", "42"},
      {LogSource::kPythonLogging,
       "http_request{method=POST uri=/generate request_id=\"chatcmpl-Ab3\"}: started processing request",
       "chatcmpl-Ab3"},
      {LogSource::kPythonLogging, "request_id=9b2d8c1e-0f0a-4b7e-9d5c-3a1f2b4c5d6e done",
       "9b2d8c1e-0f0a-4b7e-9d5c-3a1f2b4c5d6e"},
      {LogSource::kPythonLogging, "[trace_id=4bf92f3577b34da6a3ce929d0e0e4736 span_id=00f067aa0ba902b7] hello",
       "4bf92f3577b34da6a3ce929d0e0e4736"},
      {LogSource::kPythonLogging, "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
       "4bf92f3577b34da6a3ce929d0e0e4736"},
      {LogSource::kPythonLogging, "{\"trace_id\": \"aa11\", \"request_id\": \"r-9\"}", "r-9"},
  };
  for (const auto& c : cases) EXPECT_EQ(RequestId(c.source, c.message), c.id) << c.message;
}

TEST(RequestId, NoneWhenNoneOrSeveralAreNamed) {
  const std::vector<Case> cases = {
      {LogSource::kVllm, "Aborted request(s) cmpl-a1-0,cmpl-a2-0.", ""},
      {LogSource::kVllm, "Received request to stop profiling", ""},
      {LogSource::kVllm, "Running: 2 reqs, Waiting: 98 reqs", ""},
      {LogSource::kVllm, "moving request cmpl-11111111-0 behind request cmpl-22222222-0", ""},
      {LogSource::kSglang, "Receive: obj=GenerateReqInput(rid=['a', 'b'], stream=True)", ""},
      {LogSource::kSglang, "Receive: obj=GenerateReqInput(text='rid=5', rid=None)", ""},
      {LogSource::kSglang, "Prefill batch, #new-seq: 3, #queue-req: 1", ""},
      {LogSource::kLlamaCpp, "slot get_availabl: id  3 | task -1 | selected slot by LRU, t_last = -1", ""},
      {LogSource::kLlamaCpp, "slot x: id 0 | task 1 | moved behind id 1 | task 2 |", ""},
      {LogSource::kGlog, "[request id: <id_unknown>] Setting state", ""},
      {LogSource::kPythonLogging, "[trace_id=00000000000000000000000000000000 span_id=0] hello", ""},
      {LogSource::kPythonLogging, "grid='4x4' hybrid=1 override: yes", ""},
      {LogSource::kUvicorn, "127.0.0.1:1 - \"POST /v1/completions?request_id=5 HTTP/1.1\" 200 OK", ""},
  };
  for (const auto& c : cases) EXPECT_EQ(RequestId(c.source, c.message), c.id) << c.message;
}

TEST(RequestId, EndsOnHostileText) {
  EXPECT_EQ(RequestId(LogSource::kSglang, "rid=" + std::string(100'000, '[')), "");
  EXPECT_EQ(RequestId(LogSource::kVllm, "request_id='" + std::string(100'000, 'x')), "");
  EXPECT_EQ(RequestId(LogSource::kVllm, "request_id=" + std::string(100'000, 'x')), "");
  EXPECT_EQ(RequestId(LogSource::kVllm, "rid='"), "");
  EXPECT_EQ(RequestId(LogSource::kVllm, "rid=\\"), "");
  EXPECT_EQ(RequestId(LogSource::kLlamaCpp, "| task "), "");
}

TEST(NamedIds, ListsNameEachAndTwoNamesOfOneNone) {
  const auto ids = [](std::string_view message) {
    std::vector<std::string> out;
    for (const NamedId& named : NamedIds(LogSource::kVllm, message)) out.emplace_back(named.id);
    return out;
  };
  using Ids = std::vector<std::string>;
  EXPECT_EQ(ids("Aborted request(s) cmpl-a1-0,cmpl-b2-0."), (Ids{"cmpl-a1-0", "cmpl-b2-0"}));
  EXPECT_EQ(ids("New(req_id=a-1,x=2), New(req_id=b-2,x=3), Old(req_ids=['c-3', 'a-1'])"), (Ids{"a-1", "b-2", "c-3"}));
  EXPECT_EQ(ids("Aborted request(s) cmpl-a1-0."), Ids{});
  EXPECT_EQ(ids("request_id=engine-1 rid='client-2'"), Ids{});
}

}  // namespace
}  // namespace teller::ingest::log
