#include "align/requests.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace teller::align {
namespace {

using trace::Nanos;
using trace::PhaseKind;
using trace::Request;
using trace::RequestRecord;
using trace::StepCover;

constexpr Nanos kMs = 1'000'000;
constexpr Nanos kEpoch = 1'768'469'400'000'000'000;

/// What one request of the simulated engine really did.
struct Truth {
  Nanos arrival = 0;
  Nanos admitted = 0;
  Nanos first_token = 0;  ///< in the engine
  Nanos last_token = 0;
  std::vector<uint32_t> steps;
  int64_t prompt = 0;
  int64_t output = 0;
};

/// A continuous-batching engine: each step decodes all running requests and prefills at most one waiting one.
struct Engine {
  std::mt19937_64 random;
  trace::Store store;
  trace::Trees trees;
  std::vector<Truth> truths;

  explicit Engine(uint64_t seed) : random(seed) {}

  Nanos Between(Nanos low, Nanos high) { return std::uniform_int_distribution<Nanos>(low, high)(random); }

  void Run(size_t requests) {
    store.files.push_back({.path = "spans.jsonl", .kind = "otlp"});
    store.processes.push_back({.file = trace::FileRow(0), .pid = "1", .name = "Worker", .rank = 0, .engine = "vllm"});
    Nanos at = kEpoch + 20 * kMs;
    for (size_t i = 0; i < requests; ++i) {
      Truth truth;
      truth.arrival = at;
      truth.prompt = Between(4, 300);
      truth.output = Between(1, 60);
      truths.push_back(truth);
      at += Between(kMs, 120 * kMs);
    }
    Steps();
    for (size_t i = 0; i < truths.size(); ++i) State(i);
  }

  void Steps() {
    Nanos now = kEpoch;
    size_t next = 0;
    std::vector<size_t> running;
    while (next < truths.size() || !running.empty()) {
      if (running.empty() && truths[next].arrival > now) now = truths[next].arrival + Between(kMs / 10, kMs);
      trace::Step step;
      step.process = trace::ProcessRow(0);
      step.rank = 0;
      step.index = static_cast<uint32_t>(trees.steps.size());
      step.begin = now;
      step.decode_requests = static_cast<int64_t>(running.size());
      step.prefill_requests = 0;
      step.new_tokens = step.decode_requests;
      Nanos length = 8 * kMs + Between(0, 6 * kMs);
      std::vector<size_t> served = running;
      if (next < truths.size() && truths[next].arrival < now) {
        step.prefill_requests = 1;
        step.new_tokens += truths[next].prompt;
        length += truths[next].prompt * kMs / 10;
        truths[next].admitted = now - Between(kMs / 10, kMs);
        running.push_back(next);
        served.push_back(next++);
      }
      step.end = now + length;
      for (const size_t r : served) truths[r].steps.push_back(step.index);
      now = step.end + Between(kMs / 5, 2 * kMs);
      for (const size_t r : served) {
        if (truths[r].steps.size() == 1) truths[r].first_token = step.end + Between(0, kMs / 5);
        truths[r].last_token = step.end + Between(0, kMs / 5);
      }
      std::erase_if(running, [&](size_t r) { return truths[r].steps.size() == static_cast<size_t>(truths[r].output); });
      trees.steps.push_back(std::move(step));
    }
  }

  /// What the engine's span says of it.
  void State(size_t i) {
    const Truth& truth = truths[i];
    RequestRecord record;
    record.file = trace::FileRow(0);
    record.id = "cmpl-request-" + std::to_string(1000 + i) + "-0";
    record.engine = "vllm";
    record.arrival = truth.arrival;
    record.queue_time = std::min(kMs / 20, truth.admitted - truth.arrival);
    record.prefill_time = truth.first_token - truth.admitted;
    record.decode_time = truth.last_token - truth.first_token;
    const Nanos out = Between(kMs / 2, 3 * kMs);
    record.ttft = truth.first_token - truth.arrival + out;
    record.e2e = truth.last_token - truth.arrival + out;
    record.prompt_tokens = truth.prompt;
    record.output_tokens = truth.output;
    store.request_records.push_back(std::move(record));
  }
};

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

}  // namespace
}  // namespace teller::align
