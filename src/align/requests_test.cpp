#include "align/requests.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "align/engine_simulation.hpp"

namespace teller::align {
namespace {

using testing::Engine;
using testing::kEpoch;
using testing::kMs;
using trace::Nanos;
using trace::PhaseKind;
using trace::Request;
using trace::RequestRecord;
using trace::StepCover;

void ExpectSums(const Request& request) {
  Nanos sum = 0;
  for (const auto& phase : request.phases) {
    EXPECT_GT(phase.duration, 0);
    sum += phase.duration;
  }
  if (!request.phases.empty()) {
    EXPECT_EQ(sum, request.e2e);
  }
  if (request.cover == StepCover::kNone) return;
  for (const Nanos part : {request.own, request.others, request.blocked, request.between, request.unrecorded})
    EXPECT_GE(part, 0);
  EXPECT_EQ(request.own + request.others + request.blocked + request.between + request.unrecorded,
            request.phase(PhaseKind::kPrefill) + request.phase(PhaseKind::kDecode));
}

TEST(Requests, StepsOfASimulatedEngineAreFoundExactly) {
  size_t exact = 0;
  size_t all = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Engine engine(seed);
    engine.Run(40);
    BuildRequests(engine.store, engine.trees);
    ASSERT_EQ(engine.trees.requests.size(), engine.truths.size());
    for (size_t i = 0; i < engine.truths.size(); ++i) {
      const Request& request = engine.trees.requests[i];
      ExpectSums(request);
      ++all;
      if (request.cover != StepCover::kExact) continue;
      ++exact;
      std::vector<uint32_t> steps;
      for (const auto& step : request.steps) steps.push_back(step.step.value());
      EXPECT_EQ(steps, engine.truths[i].steps) << "seed " << seed << " request " << i;
    }
  }
  EXPECT_GE(exact * 100, all * 97) << exact << " of " << all;
}

TEST(Requests, SharesOfAStepAddUpToAtMostTheStep) {
  Engine engine(5);
  engine.Run(60);
  BuildRequests(engine.store, engine.trees);
  std::vector<Nanos> shares(engine.trees.steps.size());
  for (const Request& request : engine.trees.requests) {
    for (const auto& step : request.steps) shares[step.step.value()] += step.share;
  }
  for (size_t s = 0; s < shares.size(); ++s) EXPECT_LE(shares[s], engine.trees.steps[s].duration()) << s;
}

TEST(Requests, WhatWasNotRecordedIsSaid) {
  Engine engine(6);
  engine.Run(30);
  // Only the middle of the run was traced.
  auto& steps = engine.trees.steps;
  const size_t third = steps.size() / 3;
  steps.erase(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(third));
  steps.resize(third);
  BuildRequests(engine.store, engine.trees);
  size_t none = 0;
  size_t part = 0;
  for (const Request& request : engine.trees.requests) {
    ExpectSums(request);
    none += request.cover == StepCover::kNone;
    part += request.cover == StepCover::kPart;
    if (request.cover != StepCover::kExact) continue;
    EXPECT_GE(request.finished, steps.front().begin);
    EXPECT_EQ(static_cast<int64_t>(request.steps.size()), request.output_tokens);
  }
  EXPECT_GT(none, 0u);
  EXPECT_GT(part, 0u);
}

TEST(Requests, ALongPromptOfAnotherIsNamed) {
  Engine engine(7);
  engine.Run(2);
  engine.truths.clear();
  engine.trees = {};
  engine.store = {};
  engine.store.files.push_back({.path = "spans.jsonl"});
  engine.store.processes.push_back({.file = trace::FileRow(0), .pid = "1", .rank = 0});
  engine.truths.push_back({.arrival = kEpoch, .prompt = 10, .output = 40});
  engine.truths.push_back({.arrival = kEpoch + 100 * kMs, .prompt = 9000, .output = 3});
  engine.Steps();
  for (size_t i = 0; i < 2; ++i) engine.State(i);
  BuildRequests(engine.store, engine.trees);
  const Request& held = engine.trees.requests[0];
  ASSERT_EQ(held.cover, StepCover::kExact);
  ASSERT_FALSE(held.blocked_by.empty());
  ASSERT_TRUE(held.blocked_by.front().by.valid());
  EXPECT_EQ(engine.trees.requests[held.blocked_by.front().by.value()].prompt_tokens, 9000);
  EXPECT_GT(held.blocked_by.front().duration, 800 * kMs);
}

TEST(Requests, PhasesWithoutAnyTrace) {
  trace::Store store;
  trace::Trees trees;
  store.files.resize(1);
  RequestRecord record;
  record.file = trace::FileRow(0);
  record.id = "0025-006";
  record.arrival = kEpoch;
  record.dispatched = kEpoch + 2 * kMs;
  record.admitted = kEpoch + 10 * kMs;
  record.queue_time = 5 * kMs;
  record.prefilled = kEpoch + 110 * kMs;
  record.finished = kEpoch + 1000 * kMs;
  record.output_tokens = 21;
  store.request_records.push_back(record);
  BuildRequests(store, trees);
  ASSERT_EQ(trees.requests.size(), 1u);
  const Request& request = trees.requests[0];
  ExpectSums(request);
  EXPECT_EQ(request.phase(PhaseKind::kFrontEnd), 5 * kMs);
  EXPECT_EQ(request.phase(PhaseKind::kQueue), 5 * kMs);
  EXPECT_EQ(request.phase(PhaseKind::kPrefill), 100 * kMs);
  EXPECT_EQ(request.phase(PhaseKind::kDecode), 890 * kMs);
  EXPECT_EQ(request.handed_on, 2 * kMs);
  EXPECT_EQ(request.cover, StepCover::kNone);
}

/// Any numbers at all: sums hold, nothing overflows.
TEST(Requests, HostileNumbers) {
  std::mt19937_64 random(11);
  const std::vector<int64_t> odd = {INT64_MIN, INT64_MIN + 1, -1,           0, 1, 4'000'000'000'000'000'000, INT64_MAX,
                                    kEpoch,    kEpoch + 1,    1'000'000'000};
  const auto pick = [&] { return odd[random() % odd.size()]; };
  for (int round = 0; round < 2000; ++round) {
    Engine engine(static_cast<uint64_t>(round % 3) + 1);
    if (round % 10 == 0) engine.Run(3);
    engine.store.files.resize(1);
    RequestRecord record;
    record.file = trace::FileRow(0);
    record.id = round % 2 == 0 ? "x" : "";
    for (Nanos* time :
         {&record.arrival, &record.dispatched, &record.admitted, &record.prefilled, &record.first_token,
          &record.finished, &record.queue_time, &record.prefill_time, &record.decode_time, &record.ttft, &record.e2e}) {
      *time = pick();
    }
    for (int64_t* count : {&record.prompt_tokens, &record.cached_tokens, &record.output_tokens, &record.preemptions})
      *count = pick();
    engine.store.request_records.push_back(record);
    BuildRequests(engine.store, engine.trees);
    for (const Request& request : engine.trees.requests) ExpectSums(request);
  }
}

TEST(Requests, LinesMakeARequestWhereNothingElseDoes) {
  trace::Store store;
  trace::Trees trees;
  store.files.resize(1);
  for (int i = 0; i < 3; ++i) {
    trace::LogRecord record;
    record.file = trace::FileRow(0);
    record.line = static_cast<uint32_t>(i + 1);
    record.at = kEpoch + i * 500 * kMs;
    record.at_error = kMs;
    record.request = i == 1 ? "cmpl-aa11bb22-0-94880aa5" : "cmpl-aa11bb22-0";
    store.logs.push_back(record);
  }
  BuildRequests(store, trees);
  ASSERT_EQ(trees.requests.size(), 1u);
  EXPECT_EQ(trees.requests[0].logs.size(), 3u);
  EXPECT_EQ(trees.requests[0].e2e, 1000 * kMs);
  EXPECT_EQ(trees.requests[0].phase(PhaseKind::kUnexplained), 1000 * kMs);
  EXPECT_EQ(trees.requests[0].at_error, kMs);
  EXPECT_EQ(trees.logs_on_request, 3u);
}

TEST(Requests, OneIdInTwoTracesIsTwoRequests) {
  trace::Store store;
  trace::Trees trees;
  store.files.resize(1);
  for (const char* trace_id : {"aa", "bb", "aa"}) {
    RequestRecord record;
    record.file = trace::FileRow(0);
    record.id = "same";
    record.trace_id = trace_id;
    record.arrival = kEpoch;
    record.e2e = kMs;
    store.request_records.push_back(record);
  }
  BuildRequests(store, trees);
  EXPECT_EQ(trees.requests.size(), 2u);
}

/// A log of a llama.cpp server, line by line.
struct LlamaLog {
  trace::Store store;
  trace::Trees trees;
  Nanos at = kEpoch;

  LlamaLog() { store.files.push_back({.path = "server.log"}); }

  void Line(const std::string& id, const std::string& message, Nanos after = 10 * kMs) {
    at += after;
    trace::LogRecord record;
    record.file = trace::FileRow(0);
    record.line = static_cast<uint32_t>(store.logs.size() + 1);
    record.source = trace::LogSource::kLlamaCpp;
    record.request = id;
    record.message = message;
    record.at = at;
    store.logs.push_back(record);
  }
  void Timings(const std::string& id, int64_t tokens) {
    Line(id, "prompt eval time and all the rest");
    store.logs.back().statistics = {{"prompt_eval_ms", 5.0}, {"total_ms", 9.0}};
    RequestRecord record;
    record.file = trace::FileRow(0);
    record.source = trace::RequestSource::kLog;
    record.engine = "llama.cpp";
    record.ref = "line:" + std::to_string(store.logs.back().line);
    record.id = id;
    record.output_tokens = tokens;
    record.prefill_time = 5 * kMs;
    record.decode_time = 4 * kMs;
    store.request_records.push_back(record);
  }
  void Task(const std::string& id, int64_t tokens) {
    Line(id, "slot launch_slot_: processing task");
    Timings(id, tokens);
    Line(id, "stop processing");
  }
  /// Output tokens and number of lines of each request with this id, in order of time.
  std::vector<std::pair<int64_t, size_t>> Of(const std::string& id) {
    BuildRequests(store, trees);
    std::vector<std::pair<int64_t, size_t>> out;
    for (const Request& request : trees.requests) {
      if (request.id == id) out.emplace_back(request.output_tokens, request.logs.size());
    }
    return out;
  }
};

using Told = std::vector<std::pair<int64_t, size_t>>;

TEST(Requests, ATaskNumberThatIsGivenAgainIsAnotherRequest) {
  LlamaLog log;
  log.Task("task 0", 7);
  log.Task("task 1", 8);
  log.Line("", "main: server is listening", 100 * kMs);  // started again
  log.Task("task 0", 9);
  EXPECT_EQ(log.Of("task 0"), (Told{{7, 3}, {9, 3}}));
  EXPECT_EQ(log.Of("task 1"), (Told{{8, 3}}));
}

TEST(Requests, ATaskThatNeverEndedAndItsNumberAgainAreTwo) {
  LlamaLog log;
  log.Line("task 0", "slot launch_slot_: processing task");
  log.Line("task 0", "new prompt");
  log.Task("task 0", 9);
  EXPECT_EQ(log.Of("task 0"), (Told{{-1, 2}, {9, 3}}));
}

TEST(Requests, TimingsAloneTellTasksOfOneNumberApart) {
  LlamaLog log;
  log.Timings("task 5", 7);
  log.Timings("task 5", 8);
  EXPECT_EQ(log.Of("task 5"), (Told{{7, 1}, {8, 1}}));
}

TEST(Requests, LinesLongAfterTheEndOfATaskAreOfAnother) {
  LlamaLog log;
  log.Timings("task 5", 7);
  log.Line("task 5", "stop processing");
  log.Line("task 5", "restored context checkpoint", 120'000 * kMs);
  EXPECT_EQ(log.Of("task 5"), (Told{{7, 2}, {-1, 1}}));
}

TEST(Requests, OneTaskThatTakesLongStaysOne) {
  LlamaLog log;
  log.Line("task 3", "slot launch_slot_: processing task");
  log.at += 1'800'000 * kMs;  // decoding prints nothing
  log.Timings("task 3", 7);
  log.Line("task 3", "stop processing");
  EXPECT_EQ(log.Of("task 3"), (Told{{7, 3}}));
}

RequestRecord Stated() {
  RequestRecord record;
  record.file = trace::FileRow(0);
  record.id = "0025-006";
  record.arrival = kEpoch;
  record.admitted = kEpoch + 10 * kMs;
  record.prefilled = kEpoch + 110 * kMs;
  record.finished = kEpoch + 1000 * kMs;
  return record;
}

Request Built(const RequestRecord& record) {
  trace::Store store;
  trace::Trees trees;
  store.files.resize(1);
  store.request_records.push_back(record);
  BuildRequests(store, trees);
  EXPECT_EQ(trees.requests.size(), 1u);
  ExpectSums(trees.requests[0]);
  return trees.requests[0];
}

TEST(Requests, AStatedDecodeTimeLeavesTheWayOut) {
  RequestRecord record = Stated();
  EXPECT_EQ(Built(record).phase(PhaseKind::kDecode), 890 * kMs);
  EXPECT_FALSE(Built(record).tells(PhaseKind::kOutput));
  record.decode_time = 800 * kMs;
  const Request request = Built(record);
  EXPECT_EQ(request.phase(PhaseKind::kDecode), 800 * kMs);
  EXPECT_EQ(request.phase(PhaseKind::kOutput), 90 * kMs);
  EXPECT_TRUE(request.tells(PhaseKind::kOutput));
  record.decode_time = 2000 * kMs;  // longer than there is room
  EXPECT_EQ(Built(record).phase(PhaseKind::kDecode), 890 * kMs);
  record.decode_time = 300 * kMs;
  record.preemptions = 1;  // of several decodings one is stated
  EXPECT_EQ(Built(record).phase(PhaseKind::kDecode), 890 * kMs);
}

TEST(Requests, OnlyWhatIsStatedIsTold) {
  RequestRecord record = Stated();
  EXPECT_FALSE(Built(record).tells(PhaseKind::kFrontEnd));
  record.queue_time = 0;
  EXPECT_TRUE(Built(record).tells(PhaseKind::kFrontEnd));
  EXPECT_TRUE(Built(record).tells(PhaseKind::kQueue));
  RequestRecord total;
  total.file = trace::FileRow(0);
  total.id = "x";
  total.e2e = 1000 * kMs;
  total.prefill_time = 0;
  const Request request = Built(total);
  for (const PhaseKind kind : {PhaseKind::kFrontEnd, PhaseKind::kQueue, PhaseKind::kDecode, PhaseKind::kOutput})
    EXPECT_FALSE(request.tells(kind));
  EXPECT_TRUE(request.tells(PhaseKind::kPrefill)) << "0 is a statement too";
}

TEST(Requests, WhyNoStepsAreKnownIsTold) {
  const auto why = [](std::vector<trace::Step> steps, const RequestRecord& record) {
    trace::Store store;
    trace::Trees trees;
    store.files.resize(1);
    store.processes.resize(2);
    trees.steps = std::move(steps);
    store.request_records.push_back(record);
    BuildRequests(store, trees);
    EXPECT_EQ(trees.requests[0].cover, StepCover::kNone);
    return trees.requests[0].no_steps;
  };
  const auto step = [](uint32_t process, Nanos begin, int prefills, int decodes) {
    trace::Step s{.process = trace::ProcessRow(process), .begin = begin, .end = begin + 300 * kMs};
    s.prefill_requests = prefills;
    s.decode_requests = decodes;
    s.rank = 0;
    return s;
  };
  RequestRecord record = Stated();
  record.output_tokens = 90;
  EXPECT_EQ(why({}, record), trace::NoSteps::kNoneRecorded);
  EXPECT_EQ(why({step(0, kEpoch, -1, -1)}, record), trace::NoSteps::kUnmarked);
  EXPECT_EQ(why({step(0, kEpoch + 5000 * kMs, 0, 1)}, record), trace::NoSteps::kOutside);
  // Two engines that do not run in lockstep, and counts that fit neither.
  EXPECT_EQ(why({step(0, kEpoch + 200 * kMs, 0, 1), step(1, kEpoch + 350 * kMs, 0, 1)}, record),
            trace::NoSteps::kUncertain);
  RequestRecord timeless;
  timeless.file = trace::FileRow(0);
  timeless.id = "y";
  timeless.e2e = 5 * kMs;
  EXPECT_EQ(why({step(0, kEpoch, 0, 1)}, timeless), trace::NoSteps::kUntimed);
}

}  // namespace
}  // namespace teller::align
