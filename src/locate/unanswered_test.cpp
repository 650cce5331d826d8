#include "locate/unanswered.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "locate/locate.hpp"
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
  int late_again = -1;  ///< half second in which another one is late
  double used_again = 0;

  void Make(trace::Store& store, trace::Trees& trees) const {
    store.files.push_back({.path = "host.jsonl", .kind = "host-counters"});
    store.files.push_back({.path = "metrics.txt", .kind = "prometheus"});
    const auto inside = [](int i) { return i >= kStop && i < kStop + 2; };
    const auto again = [&](int i) { return late_again >= 0 && i >= late_again && i < late_again + 2; };
    AddRate(store, "APIServer", "cpu_s", kHalves, [&](int i) {
      return inside(i) ? used : again(i) ? used_again : usual;
    });
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
      if (late_again >= 0 && at == kEpoch + late_again * kHalf) at += kSecond;
    }
    trace::Request request;
    request.arrival = kEpoch;
    request.finished = asked ? kEpoch + kHalves * kHalf : kEpoch + kSecond;
    trees.requests.push_back(request);
  }

  std::vector<trace::Finding> Find() const {
    trace::Store store;
    trace::Trees trees;
    Make(store, trees);
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

/// Samples of the host every 200 ms; the front end stops `after` it should have answered.
std::vector<trace::Finding> FindBetween(Nanos offset, Nanos late, double usual, Nanos after = 0) {
  constexpr Nanos kEvery = 200'000'000;
  constexpr Nanos kStopped = kEpoch + kStop * kHalf;
  trace::Store store;
  trace::Trees trees;
  Service{.late = late}.Make(store, trees);
  store.counters.erase(store.counters.begin(), store.counters.begin() + 2 * (kHalves + 1));
  for (uint32_t i = 0; i < 100; ++i) {
    const Nanos at = kEpoch + offset + i * kEvery;
    const Nanos still = std::clamp<Nanos>(at - kStopped - after, 0, late);
    store.counters.push_back({at, trace::CounterRow(0), i, static_cast<double>(at - kEpoch - still) / 1e9 * usual});
    store.counters.push_back({at, trace::CounterRow(1), i, static_cast<double>(at - kEpoch) / 1e9 * 0.6});
  }
  return FindUnanswered(store, trees, CpuWitness(store));
}

TEST(Unanswered, OnlyWhatSamplesCoverCounts) {
  constexpr Nanos kMs = 1'000'000;
  for (Nanos offset = 0; offset < 200 * kMs; offset += 10 * kMs) {
    EXPECT_EQ(FindBetween(offset, 900 * kMs, 0.045).size(), 1u) << offset;
    EXPECT_TRUE(FindBetween(offset, 410 * kMs, 0.062).empty()) << offset;
  }
  // It computes for 90 ms more; what samples show is too short to hold a tick.
  EXPECT_TRUE(FindBetween(90 * kMs, 450 * kMs, 0.06, 90 * kMs).empty());
}

TEST(Unanswered, EachLateScrapeIsAChance) {
  EXPECT_EQ(Service().Find().at(0).false_alarm_probability, 0.004);
  const Service twice{.late = kSecond, .late_again = 30, .used_again = 0.08};
  EXPECT_EQ(twice.Find().at(0).false_alarm_probability, 0.008);
}

TEST(Unanswered, AProcessIsNamedOnce) {
  const Service service{.late = kSecond, .late_again = 28};
  const auto twice = service.Find();
  ASSERT_EQ(twice.size(), 1u);
  EXPECT_EQ(twice[0].false_alarm_probability, 0.004);
  EXPECT_NE(twice[0].explanation.find("2 times"), std::string::npos) << twice[0].explanation;
}

TEST(Unanswered, TheThresholdForFalseAlarmsHolds) {
  trace::Store store;
  trace::Trees trees;
  Service{}.Make(store, trees);
  const auto names = [&](double false_alarms) {
    const auto diagnosis = Locate(store, trees, {.false_alarms = false_alarms});
    return std::count_if(diagnosis.findings.begin(), diagnosis.findings.end(),
                         [](const trace::Finding& f) { return f.culprit.process == "APIServer"; });
  };
  EXPECT_EQ(names(0.01), 1);
  EXPECT_EQ(names(0.001), 0);
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
