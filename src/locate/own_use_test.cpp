#include "locate/own_use.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "locate/test_counters.hpp"

namespace teller::locate {
namespace {

using trace::FaultClass;
using trace::Nanos;

constexpr int kSamples = 24;

/// Two processors, one service process, sampled twice a second.
struct Host {
  trace::Store store;
  trace::Trees trees;

  Host() { store.files.push_back({.path = "host.jsonl", .kind = "host-counters"}); }

  /// `rate(i)`: processors used in the i-th interval.
  void Add(const std::string& process, const std::string& name, const std::function<double(int)>& rate) {
    AddRate(store, process, name, kSamples, rate);
  }

  /// One request in the engine from sample `first` to `last`.
  void Serve(int first, int last, Nanos front_end = 0) {
    trace::Request request;
    request.id = "r" + std::to_string(trees.requests.size());
    request.arrival = kEpoch + first * kHalf;
    request.finished = kEpoch + last * kHalf;
    const Nanos rest = request.finished - request.arrival - front_end;
    request.phases = {{trace::PhaseKind::kFrontEnd, request.arrival, front_end},
                      {trace::PhaseKind::kDecode, request.arrival + front_end, rest}};
    trees.requests.push_back(request);
  }

  std::vector<trace::Finding> Find() const { return FindUnusedProcessors(store, trees, {}); }
};

/// A server that takes one processor whenever it serves, but in samples 8 to 8 + length - 1 only `held`.
Host Held(double held, int length, double free_meanwhile = 1.7) {
  Host host;
  const auto inside = [=](int i) { return i >= 8 && i < 8 + length; };
  host.Add("server", "cpu_s", [=](int i) { return i < 2 || i >= 20 ? 0.0 : inside(i) ? held : 1.0; });
  host.Add("", "idle_s", [=](int i) { return inside(i) ? free_meanwhile : 0.9; });
  host.Serve(2, 20);
  return host;
}

TEST(OwnUse, WhoMayWaitForAProgramThatItStartedIsOnlySuspected) {
  for (const double others : {0.05, 0.6}) {  // processors of a compiler that has no counters
    Host host = Held(0.2, 5, 1.0);
    host.Add("", "busy_s", [=](int i) {
      const bool inside = i >= 8 && i < 13;
      return (i < 2 || i >= 20 ? 0.0 : inside ? 0.2 : 1.0) + (inside ? others : 0.02);
    });
    const auto findings = host.Find();
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].false_alarm_probability, others > 0.5 ? 0.05 : 0.003);
  }
}

TEST(OwnUse, AQuotaLeavesALittleInEachSample) {
  const auto findings = Held(0.2, 5).Find();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].fault, FaultClass::kCpuStarved);
  EXPECT_EQ(findings[0].culprit.process, "server");
  EXPECT_EQ(findings[0].onset, kEpoch + 8 * kHalf);
  EXPECT_EQ(findings[0].end, kEpoch + 13 * kHalf);
}

TEST(OwnUse, AStopLeavesNothing) {
  for (const int length : {1, 2, 4}) {
    const auto findings = Held(0, length).Find();
    ASSERT_EQ(findings.size(), 1u) << length;
    EXPECT_EQ(findings[0].fault, FaultClass::kRuntimePause) << length;
    EXPECT_EQ(findings[0].culprit.layer, "process");
  }
}

TEST(OwnUse, AFullMachineIsAnotherMatter) {
  EXPECT_TRUE(Held(0.2, 5, 0.05).Find().empty());
}

TEST(OwnUse, ALittleLessIsNothing) {
  EXPECT_TRUE(Held(0.8, 5).Find().empty());
  EXPECT_TRUE(Held(0.5, 1).Find().empty());
}

TEST(OwnUse, AServerWithoutRequestsRests) {
  Host host;
  host.Add("server", "cpu_s", [](int i) { return i >= 8 && i < 12 ? 0.0 : 1.0; });
  host.Add("", "idle_s", [](int) { return 1.5; });
  host.Serve(0, 8);
  host.Serve(12, kSamples);
  EXPECT_TRUE(host.Find().empty());
}

TEST(OwnUse, AnEngineWaitsForASlowFrontEnd) {
  Host host;
  host.Add("Worker", "cpu_s", [](int i) { return i >= 8 && i < 12 ? 0.0 : 1.0; });
  host.Add("", "idle_s", [](int) { return 1.5; });
  host.Serve(0, 8);
  host.Serve(8, kSamples, 4 * kHalf);  // four samples long with the tokenizer
  EXPECT_TRUE(host.Find().empty());
}

TEST(OwnUse, WhoSpinsAtAllTimesIsStoppedAlsoBeforeItTakesARequest) {
  Host host;
  host.Add("scheduler", "cpu_s", [](int i) { return i >= 8 && i < 11 ? 0.0 : 1.0; });
  host.Add("", "idle_s", [](int) { return 1.5; });
  host.Serve(2, 7);
  host.Serve(8, 20, 3 * kHalf);
  const auto findings = host.Find();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].fault, FaultClass::kRuntimePause);
  EXPECT_EQ(findings[0].culprit.process, "scheduler");
}

TEST(OwnUse, WhatVariesAnywayTellsNothing) {
  Host host;
  host.Add("EngineCore", "cpu_s", [](int i) { return i >= 8 && i < 11 ? 0.0 : 0.2 + 0.2 * (i % 5); });
  host.Add("", "idle_s", [](int) { return 1.5; });
  host.Serve(0, kSamples);
  EXPECT_TRUE(host.Find().empty());
}

}  // namespace
}  // namespace teller::locate
