#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "trace/step.hpp"
#include "trace/store.hpp"

/// A simulated serving engine for tests: what it did, what its trace shows and what its spans state.
namespace teller::align::testing {

using trace::Nanos;
using trace::RequestRecord;

inline constexpr Nanos kMs = 1'000'000;
inline constexpr Nanos kEpoch = 1'768'469'400'000'000'000;

/// What one request of the simulated engine really did.
struct Truth {
  Nanos arrival = 0;
  Nanos front = 0;   ///< what the front end takes before the engine can have it
  Nanos queued = 0;  ///< the scheduler has it
  Nanos admitted = 0;
  Nanos first_token = 0;  ///< in the engine
  Nanos last_token = 0;
  std::vector<uint32_t> steps;
  int64_t prompt = 0;
  int64_t output = 0;

  Nanos Reached() const { return arrival + front; }
};

/// A continuous-batching engine: each step decodes all running requests and prefills at most one waiting one.
struct Engine {
  std::mt19937_64 random;
  trace::Store store;
  trace::Trees trees;
  std::vector<Truth> truths;
  Nanos stop_at = 0;  ///< when the whole engine stands still; 0 = never
  Nanos stop_for = 0;

  explicit Engine(uint64_t seed) : random(seed) {}

  Nanos Between(Nanos low, Nanos high) { return std::uniform_int_distribution<Nanos>(low, high)(random); }

  void Run(size_t requests) {
    Arrive(requests);
    Finish();
  }

  void Arrive(size_t requests) {
    store.files.push_back({.path = "spans.jsonl", .kind = "otlp"});
    store.processes.push_back({.file = trace::FileRow(0), .pid = "1", .name = "Worker", .rank = 0, .engine = "vllm"});
    Nanos at = kEpoch + 20 * kMs;
    for (size_t i = 0; i < requests; ++i) {
      Truth truth;
      truth.arrival = at;
      truth.front = Between(kMs, 4 * kMs);
      truth.prompt = Between(4, 300);
      truth.output = Between(1, 60);
      truths.push_back(truth);
      at += Between(kMs, 120 * kMs);
    }
  }

  /// Order of truths after it: by arrival, as trees order requests.
  void Finish() {
    Steps();
    std::stable_sort(truths.begin(), truths.end(),
                     [](const Truth& a, const Truth& b) { return a.arrival < b.arrival; });
    for (size_t i = 0; i < truths.size(); ++i) State(i);
  }

  void Steps() {
    std::stable_sort(truths.begin(), truths.end(),
                     [](const Truth& a, const Truth& b) { return a.Reached() < b.Reached(); });
    Nanos now = kEpoch;
    size_t next = 0;
    std::vector<size_t> running;
    while (next < truths.size() || !running.empty()) {
      if (running.empty() && truths[next].Reached() > now) now = truths[next].Reached() + Between(kMs / 10, kMs);
      trace::Step step;
      step.process = trace::ProcessRow(0);
      step.rank = 0;
      step.index = static_cast<uint32_t>(trees.steps.size());
      step.begin = now;
      step.decode_requests = static_cast<int64_t>(running.size());
      step.prefill_requests = 0;
      step.new_tokens = step.decode_requests;
      Nanos length = 8 * kMs + Between(0, 6 * kMs);
      for (size_t r = next; r < truths.size() && truths[r].Reached() < now; ++r) {
        if (truths[r].queued == 0) truths[r].queued = std::max(truths[r].Reached(), now - kMs / 2);
      }
      std::vector<size_t> served = running;
      if (next < truths.size() && truths[next].Reached() < now) {
        step.prefill_requests = 1;
        step.new_tokens += truths[next].prompt;
        length += truths[next].prompt * kMs / 10;
        truths[next].admitted = std::max(truths[next].queued, now - Between(kMs / 10, kMs));
        running.push_back(next);
        served.push_back(next++);
      }
      step.end = now + length;
      for (const size_t r : served) truths[r].steps.push_back(step.index);
      now = step.end + Between(kMs / 5, 2 * kMs);
      if (stop_at != 0 && now >= stop_at) now += std::exchange(stop_for, 0);
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
    record.queue_time = truth.admitted - truth.queued;
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

}  // namespace teller::align::testing
