#include "locate/unanswered.hpp"

#include <gtest/gtest.h>

#include "locate/test_counters.hpp"

namespace teller::locate {
namespace {

using trace::FaultClass;
using trace::Nanos;

constexpr int kHalves = 40;  // samples of the host
constexpr int kStop = 20;    // the half second in which it begins
constexpr Nanos kSecond = 2 * kHalf;

struct Service {
  double free = 0.6;    ///< processors, while a scrape is late
  double used = 0;      ///< by the front end meanwhile
  double usual = 0.08;  ///< processors that it uses while it serves
  Nanos late = 900'000'000;
  bool asked = true;    ///< requests are under way
  bool regular = true;  ///< scrapes

  std::vector<trace::Finding> Find() const {
    trace::Store store;
    trace::Trees trees;
    store.files.push_back({.path = "host.jsonl", .kind = "host-counters"});
    store.files.push_back({.path = "metrics.txt", .kind = "prometheus"});
    const auto inside = [](int i) { return i >= kStop && i < kStop + 2; };
    AddRate(store, "APIServer", "cpu_s", kHalves, [&](int i) { return inside(i) ? used : usual; });
    AddRate(store, "", "idle_s", kHalves, [&](int i) { return inside(i) ? free : 0.3; });
    const trace::CounterRow row(static_cast<uint32_t>(store.counter_series.size()));
    trace::CounterSeries series;
    series.file = trace::FileRow(1);
    series.name = "vllm:num_requests_running";
    store.counter_series.push_back(series);
    Nanos at = kEpoch;
    for (uint32_t n = 0; n < 18; ++n) {
      store.counters.push_back({at, row, n, 8});
      at += regular ? kSecond : kSecond * (1 + n % 3);
      if (at == kEpoch + kStop * kHalf) at += late;
    }
    trace::Request request;
    request.arrival = kEpoch;
    request.finished = asked ? kEpoch + kHalves * kHalf : kEpoch + kSecond;
    trees.requests.push_back(request);
    return FindUnanswered(store, trees, CpuWitness(store));
  }
};

TEST(Unanswered, AFrontEndThatLeavesAScrapeAndUsesNothingStandsStill) {
  const auto findings = Service{}.Find();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].fault, FaultClass::kRuntimePause);
  EXPECT_EQ(findings[0].culprit.process, "APIServer");
  EXPECT_EQ(findings[0].onset, kEpoch + kStop * kHalf);
  EXPECT_EQ(findings[0].cost, 900'000'000);
}

TEST(Unanswered, OneThatComputesIsNotStopped) {
  EXPECT_TRUE(Service{.used = 0.08}.Find().empty());
}

TEST(Unanswered, OnAFullMachineScrapesComeLate) {
  EXPECT_TRUE(Service{.free = 0}.Find().empty());
}

TEST(Unanswered, WhoHasNoWorkUsesNothing) {
  EXPECT_TRUE(Service{.asked = false}.Find().empty());
  EXPECT_TRUE(Service{.usual = 0.01}.Find().empty()) << "less than CPU times can tell";
}

TEST(Unanswered, ScrapesThatComeAnyhowAreNotLate) {
  EXPECT_TRUE(Service{.regular = false}.Find().empty());
}

TEST(Unanswered, AShortDelayIsABusyMachine) {
  EXPECT_TRUE(Service{.late = 300'000'000}.Find().empty());
}

TEST(Unanswered, WhatSaysMoreAboutTheSameProcessStaysAlone) {
  trace::Finding known;
  known.fault = FaultClass::kHostCpuBound;
  known.culprit.process = "APIServer";
  known.onset = kEpoch + kStop * kHalf;
  known.end = known.onset + kSecond;
  std::vector<trace::Finding> findings = {known};
  JoinUnanswered(Service{}.Find(), findings);
  EXPECT_EQ(findings.size(), 1u);
  findings.front().culprit.process = "EngineCore";
  JoinUnanswered(Service{}.Find(), findings);
  EXPECT_EQ(findings.size(), 2u);
}

}  // namespace
}  // namespace teller::locate
