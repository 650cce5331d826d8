#include "locate/counter_cause.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "locate/test_counters.hpp"

namespace teller::locate {
namespace {

using trace::CounterKind;
using trace::FaultClass;
using trace::Nanos;

/// Counters of one host file, sampled twice a second.
class Host {
 public:
  Host() { store.files.push_back({.path = "host.jsonl", .kind = "host-counters"}); }

  void Add(const std::string& process, const std::string& name, const std::vector<double>& values,
           CounterKind kind = CounterKind::kCumulative) {
    AddCounter(store, process, name, values, kind);
  }

  /// A counter that grows by `rate` a second, by `inside` a second in samples 8 to 12.
  void Grow(const std::string& process, const std::string& name, double rate, double inside) {
    std::vector<double> values{0};
    for (int i = 1; i < 20; ++i) values.push_back(values.back() + 0.5 * (i > 8 && i <= 12 ? inside : rate));
    Add(process, name, values);
  }

  std::vector<trace::Finding> Find() const { return FindCounterCauses(store, trees); }

  trace::Store store;
  trace::Trees trees;
};

TEST(CounterCause, AProcessThatWaitsForItsProcessor) {
  Host host;
  host.Grow("scheduler", "run_ns", 0.9e9, 0.2e9);
  host.Grow("scheduler", "wait_ns", 0.05e9, 0.8e9);
  host.Grow("detokenizer", "run_ns", 0.01e9, 0.01e9);
  host.Grow("detokenizer", "wait_ns", 0.01e9, 0.02e9);  // little of a little is nothing
  const auto findings = host.Find();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].fault, FaultClass::kCpuStarved);
  EXPECT_EQ(findings[0].culprit.process, "scheduler");
  EXPECT_EQ(findings[0].onset, kEpoch + 8 * kHalf);
  EXPECT_EQ(findings[0].end, kEpoch + 12 * kHalf);
}

TEST(CounterCause, OrdinaryRunQueuesAreNone) {
  Host host;
  host.Grow("scheduler", "run_ns", 1.0e9, 1.0e9);
  host.Grow("scheduler", "wait_ns", 0.09e9, 0.3e9);
  host.Grow("", "busy_s", 1.9, 2.0);  // a full machine, but full of the service itself
  host.Grow("", "idle_s", 0.1, 0.0);
  host.Grow("Worker", "cpu_s", 1.5, 1.8);
  EXPECT_TRUE(host.Find().empty());
}

TEST(CounterCause, AProcessThatReadsItsPagesAgain) {
  Host host;
  host.Grow("llama-server", "majflt", 0, 60);
  EXPECT_TRUE(host.Find().empty());  // nobody waited: it was being loaded
  trace::Request request;
  request.arrival = kEpoch;
  request.finished = kEpoch + 20 * kHalf;
  host.trees.requests.push_back(request);
  const auto findings = host.Find();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].fault, FaultClass::kHostMemPressure);
  EXPECT_EQ(findings[0].culprit.process, "llama-server");
  EXPECT_EQ(findings[0].onset, kEpoch + 8 * kHalf);
  EXPECT_EQ(findings[0].end, kEpoch + 12 * kHalf);
  Host always;  // reads files all the time by design
  always.trees = host.trees;
  always.Grow("llama-server", "majflt", 30, 60);
  EXPECT_TRUE(always.Find().empty());
}

TEST(CounterCause, OthersHaveTheMachine) {
  Host host;
  host.Grow("", "busy_s", 1.4, 2.0);
  host.Grow("", "idle_s", 0.6, 0.0);
  host.Grow("Worker", "cpu_s", 1.3, 0.3);
  host.Grow("APIServer", "cpu_s", 0.05, 0.02);
  EXPECT_TRUE(host.Find().empty());  // nobody wanted anything of the service
  trace::Request request;
  request.arrival = kEpoch;
  request.finished = kEpoch + 20 * kHalf;
  host.trees.requests.push_back(request);
  const auto findings = host.Find();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].fault, FaultClass::kCpuStarved);
  EXPECT_EQ(findings[0].culprit.layer, "host");
}

TEST(CounterCause, AFullMachineThatLeavesTheServiceWhatItTakesIsNone) {
  Host host;
  host.Grow("", "busy_s", 1.4, 2.0);
  host.Grow("", "idle_s", 0.6, 0.0);
  host.Grow("Worker", "cpu_s", 0.4, 0.35);
  EXPECT_TRUE(host.Find().empty());
}

TEST(CounterCause, AFullMachineIsNoReasonForAServiceThatTakesNothing) {
  Host host;
  host.Grow("", "busy_s", 1.4, 2.0);
  host.Grow("", "idle_s", 0.6, 0.0);
  host.Grow("Worker", "cpu_s", 1.3, 0.01);  // stopped: one that waits for a processor still gets a share
  trace::Request request;
  request.arrival = kEpoch;
  request.finished = kEpoch + 20 * kHalf;
  host.trees.requests.push_back(request);
  EXPECT_TRUE(host.Find().empty());
}

TEST(CounterCause, AServiceThatAProfilerHoldsUpIsNotStarved) {
  Host host;
  host.Grow("", "busy_s", 1.4, 2.0);
  host.Grow("", "idle_s", 0.6, 0.0);
  host.Grow("Worker", "cpu_s", 1.3, 0.3);
  trace::Request request;
  request.arrival = kEpoch;
  request.finished = kEpoch + 20 * kHalf;
  host.trees.requests.push_back(request);
  EXPECT_EQ(host.Find().size(), 1u);
  const trace::Note note{"profiler", kEpoch + 7 * kHalf, kEpoch + 13 * kHalf, true};
  EXPECT_TRUE(FindCounterCauses(host.store, host.trees, {note}).empty());
}

TEST(CounterCause, AStandstillExplainsWhyAServiceUsesLittle) {
  Host host;
  host.Grow("", "busy_s", 1.4, 2.0);
  host.Grow("", "idle_s", 0.6, 0.0);
  host.Grow("Worker", "cpu_s", 1.3, 0.3);
  trace::Request request;
  request.arrival = kEpoch;
  request.finished = kEpoch + 20 * kHalf;
  host.trees.requests.push_back(request);
  trace::Finding still;
  still.fault = FaultClass::kRuntimePause;
  still.culprit.process = "EngineCore";
  still.culprit.layer = "process";
  still.onset = kEpoch + 8 * kHalf;
  still.end = kEpoch + 12 * kHalf;
  std::vector<trace::Finding> findings = {still};
  JoinCounterCauses(host.Find(), findings);
  EXPECT_EQ(findings.size(), 1u);
  findings[0].culprit.layer = "python";
  JoinCounterCauses(host.Find(), findings, OnlyCountedProcess(host.store));
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[1].culprit.process, "Worker");  // the only one that could be short of a processor
}

TEST(CounterCause, Throttling) {
  Host host;
  host.Grow("scheduler", "throttled_time", 0, 0.6e9);
  const auto findings = host.Find();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].fault, FaultClass::kCpuStarved);
}

TEST(CounterCause, AWorkersRankIsToldByItsNameInTracesOrLogs) {
  for (const bool traced : {true, false}) {
    Host host;
    host.Grow("Worker_TP1", "throttled_time", 0, 0.6e9);
    EXPECT_FALSE(host.Find().at(0).culprit.rank);
    if (traced) {
      host.store.processes.resize(2);
      host.store.processes[1].name = "Worker_TP1";
      host.store.processes[1].rank = 1;
    } else {
      host.store.logs.resize(1);
      host.store.logs[0].process = "Worker_TP1";
      host.store.logs[0].rank = 1;
    }
    EXPECT_EQ(host.Find().at(0).culprit.rank, 1);
    if (traced) continue;
    host.store.logs.push_back(host.store.logs[0]);
    host.store.logs[1].rank = 0;
    EXPECT_FALSE(host.Find().at(0).culprit.rank) << "two ranks have that name";
  }
}

TEST(CounterCause, RequestsThrownBack) {
  Host host;
  host.Add("", "vllm:num_preemptions_total", {0, 0, 1, 4, 9});
  host.Add("", "vllm:kv_cache_usage_perc", {0.1, 0.6, 0.99, 1.0, 0.97}, CounterKind::kGauge);
  const auto findings = host.Find();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].fault, FaultClass::kKvPressure);
  EXPECT_EQ(findings[0].culprit.process, "EngineCore");
  Host calm;
  calm.Add("", "vllm:num_preemptions_total", {7, 7, 7, 7, 7});  // from before
  calm.Add("", "vllm:kv_cache_usage_perc", {0.1, 0.6, 0.99, 1.0, 0.97}, CounterKind::kGauge);
  EXPECT_TRUE(calm.Find().empty());
}

TEST(CounterCause, HostileValuesAreNone) {
  Host host;
  const double inf = std::numeric_limits<double>::infinity();
  host.Add("x", "wait_ns", {0, 1e300, -1e300, std::nan(""), inf, 1e308, 5});
  host.Add("x", "run_ns", {0, -1e300, 1e300, std::nan(""), -inf, 0, 5});
  host.Add("", "busy_s", {0, 1e308, 0, 1e308, 5, 5, 5});
  host.Add("", "idle_s", {0, -1e308, 0, 1e308, 5, 5, 5});
  host.Add("x", "cpu_s", {0, 1e308, 0, 1e308, 5, 5, 5});
  host.Add("", "vllm:num_preemptions_total", {inf, std::nan(""), -5, -7, 0});
  for (const auto& finding : host.Find()) EXPECT_TRUE(std::isfinite(finding.score));
}

TEST(CounterCause, FiguresJoinAFindingOfTheSameClassAndTime) {
  Host host;
  host.Grow("scheduler", "run_ns", 0.9e9, 0.2e9);
  host.Grow("scheduler", "wait_ns", 0.05e9, 0.8e9);
  std::vector<trace::Finding> findings(2);
  findings[0].fault = FaultClass::kCpuStarved;
  findings[0].onset = kEpoch + 9 * kHalf;
  findings[0].end = kEpoch + 10 * kHalf;
  findings[1].fault = FaultClass::kCpuStarved;
  findings[1].onset = kEpoch + 15 * kHalf;
  findings[1].end = kEpoch + 16 * kHalf;
  JoinCounterCauses(host.Find(), findings);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].evidence.size(), 1u);
  EXPECT_TRUE(findings[1].evidence.empty());
}

}  // namespace
}  // namespace teller::locate
