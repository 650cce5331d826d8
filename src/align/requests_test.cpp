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

}  // namespace
}  // namespace teller::align
