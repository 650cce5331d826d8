#include "locate/stand_still.hpp"

#include <gtest/gtest.h>

#include "align/engine_simulation.hpp"
#include "align/requests.hpp"
#include "locate/locate.hpp"

namespace teller::locate {
namespace {

using align::testing::Engine;
using align::testing::kMs;
using trace::Finding;
using trace::Nanos;

std::vector<Finding> Find(Engine& engine) {
  align::BuildRequests(engine.store, engine.trees);
  std::vector<Finding> findings = FindStandStills(engine.store, engine.trees, CpuWitness(engine.store));
  std::erase_if(findings, [](const Finding& f) { return f.false_alarm_probability >= LocateOptions().false_alarms; });
  return findings;
}

/// From request `first` on everything comes `by` later, so that the engine is idle before it.
void Pause(Engine& engine, size_t first, Nanos by) {
  for (size_t i = first; i < engine.truths.size(); ++i) engine.truths[i].arrival += by;
}

/// CPU seconds of a process, twice a second over the whole run: `rate` processors, `inside` of them in [begin, end).
void Count(Engine& engine, const std::string& process, double rate, double inside, Nanos begin, Nanos end) {
  const trace::CounterRow row(static_cast<uint32_t>(engine.store.counter_series.size()));
  trace::CounterSeries series;
  series.file = trace::FileRow(0);
  series.process_name = process;
  series.name = "cpu_s";
  engine.store.counter_series.push_back(series);
  double used = 0;
  uint32_t scrape = 0;
  for (Nanos at = align::testing::kEpoch; at < align::testing::kEpoch + 20'000 * kMs; at += kMs) {
    if ((at - align::testing::kEpoch) % (500 * kMs) == 0) engine.store.counters.push_back({at, row, scrape++, used});
    used += (at >= begin && at < end ? inside : rate) * 1e-3;
  }
}

TEST(StandStill, HealthyRunsGiveNone) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Engine engine(seed);
    engine.Run(40);
    EXPECT_TRUE(Find(engine).empty()) << "seed " << seed;
  }
}

/// Requests 20 to 22 come 150 ms apart while nobody looks into the engine's input.
void StopIdle(Engine& engine, Nanos& begin, Nanos& end) {
  engine.Arrive(40);
  Pause(engine, 20, 5'000 * kMs);
  Pause(engine, 23, 1'000 * kMs);
  begin = engine.truths[20].arrival;
  end = begin + 900 * kMs;
  for (size_t i = 20; i < 23; ++i) {
    engine.truths[i].arrival = begin + static_cast<Nanos>(i - 20) * 150 * kMs;
    engine.truths[i].front = end - engine.truths[i].arrival;
  }
  engine.Finish();
}

TEST(StandStill, AStoppedEngineIsNamedThoughItWasIdle) {
  size_t found = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Engine engine(seed);
    Nanos begin = 0;
    Nanos end = 0;
    StopIdle(engine, begin, end);
    const auto findings = Find(engine);
    if (findings.empty()) continue;
    ++found;
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].culprit.process, "EngineCore");
    EXPECT_EQ(findings[0].fault, trace::FaultClass::kRuntimePause);
    EXPECT_GE(findings[0].onset, begin);
    EXPECT_LE(findings[0].end, end + 50 * kMs);
  }
  EXPECT_GE(found, 30u);
}

TEST(StandStill, RequestsAloneShowItWhereALogSaysThatNoProfilerWasAtWork) {
  size_t found = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    for (const int given : {0, 1, 2}) {  // nothing, a log, a log that speaks of a profiler
      Engine engine(seed);
      Nanos begin = 0;
      Nanos end = 0;
      StopIdle(engine, begin, end);
      engine.trees.steps.clear();
      if (given > 0) engine.store.logs.push_back({.source = trace::LogSource::kVllm});
      align::BuildRequests(engine.store, engine.trees);
      std::vector<trace::Note> notes;
      if (given == 2) notes.push_back({"profiler", begin, end, true});
      const auto findings = FindStandStills(engine.store, engine.trees, CpuWitness(engine.store), notes);
      if (given != 1) {
        EXPECT_TRUE(findings.empty()) << "seed " << seed;
        continue;
      }
      if (findings.empty()) continue;
      ++found;
      EXPECT_EQ(findings[0].culprit.process, "EngineCore");
    }
  }
  EXPECT_GE(found, 25u);
}

TEST(StandStill, WithoutStepsHealthyRunsAndSlowTokenizersGiveNone) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Engine engine(seed);
    engine.Arrive(40);
    if (seed % 2 == 0) {
      Nanos free = engine.truths[20].arrival;
      for (size_t i = 20; i < 24; ++i) {
        free = std::max(free, engine.truths[i].arrival) + 350 * kMs;
        engine.truths[i].front = free - engine.truths[i].arrival;
      }
    }
    engine.Finish();
    engine.trees.steps.clear();
    engine.store.logs.push_back({.source = trace::LogSource::kVllm});
    EXPECT_TRUE(Find(engine).empty()) << "seed " << seed;
  }
}

TEST(StandStill, AFrontEndThatComputesMeanwhileClearsTheEngine) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Engine engine(seed);
    Nanos begin = 0;
    Nanos end = 0;
    StopIdle(engine, begin, end);
    Count(engine, "APIServer", 0.05, 1.0, begin, end);
    EXPECT_TRUE(Find(engine).empty()) << "seed " << seed;
  }
}

TEST(StandStill, ATokenizerThatTakesThemOneByOneIsNoStoppedEngine) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Engine engine(seed);
    engine.Arrive(40);
    Pause(engine, 20, 5'000 * kMs);
    Nanos free = engine.truths[20].arrival;
    for (size_t i = 20; i < 24; ++i) {
      free = std::max(free, engine.truths[i].arrival) + 350 * kMs;
      engine.truths[i].front = free - engine.truths[i].arrival;
    }
    engine.Finish();
    EXPECT_TRUE(Find(engine).empty()) << "seed " << seed;
  }
}

TEST(StandStill, ATokenizerThatTakesThoseWhoWaitedTogetherIsNoStoppedEngine) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Engine engine(seed);
    engine.Arrive(40);
    Pause(engine, 20, 5'000 * kMs);
    Pause(engine, 23, 2'000 * kMs);
    // The first is in the tokenizer for 500 ms; the two that come meanwhile go through in one call right after it.
    engine.truths[21].arrival = engine.truths[20].arrival + 120 * kMs;
    engine.truths[22].arrival = engine.truths[20].arrival + 200 * kMs;
    engine.truths[20].front = 500 * kMs;
    engine.truths[21].front = 400 * kMs;
    engine.truths[22].front = 320 * kMs;
    engine.Finish();
    EXPECT_TRUE(Find(engine).empty()) << "seed " << seed;
  }
}

TEST(StandStill, ABlockedFrontEndBunchesArrivalsAndAccusesNobody) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Engine engine(seed);
    engine.Arrive(40);
    Pause(engine, 20, 5'000 * kMs);
    for (size_t i = 21; i < 24; ++i)
      engine.truths[i].arrival = engine.truths[20].arrival + static_cast<Nanos>(i - 20) * kMs;
    engine.Finish();
    EXPECT_TRUE(Find(engine).empty()) << "seed " << seed;
  }
}

TEST(StandStill, AnEngineThatComputesALongPromptIsNotStopped) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Engine engine(seed);
    engine.Arrive(40);
    engine.truths[20].prompt = 9'000;  // 900 ms
    engine.Finish();
    EXPECT_TRUE(Find(engine).empty()) << "seed " << seed;
  }
}

/// Request 20 is scheduled, but its step begins 400 ms later; everything after it moves by as much.
void StopWorker(Engine& engine, Nanos& begin) {
  engine.Arrive(40);
  Pause(engine, 20, 5'000 * kMs);
  engine.Finish();
  constexpr Nanos kStop = 400 * kMs;
  begin = engine.truths[20].admitted;
  for (auto& step : engine.trees.steps) {
    if (step.begin < begin) continue;
    step.begin += kStop;
    step.end += kStop;
  }
  for (size_t i = 21; i < engine.truths.size(); ++i) engine.store.request_records[i].arrival += kStop;
  auto& record = engine.store.request_records[20];
  record.prefill_time += kStop;
  record.ttft += kStop;
  record.e2e += kStop;
}

TEST(StandStill, AWorkerThatDoesNotBeginItsStepIsNamed) {
  size_t found = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Engine engine(seed);
    Nanos begin = 0;
    StopWorker(engine, begin);
    const auto findings = Find(engine);
    if (findings.empty()) continue;
    ++found;
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].culprit.process, "Worker");
    EXPECT_EQ(findings[0].culprit.rank, 0);
    EXPECT_NEAR(static_cast<double>(findings[0].cost), 400e6, 20e6);
  }
  EXPECT_GE(found, 30u);
}

TEST(StandStill, AWorkerThatComputesMeanwhileWasNotStopped) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Engine engine(seed);
    Nanos begin = 0;
    StopWorker(engine, begin);
    Count(engine, "Worker", 1.0, 1.0, begin, begin + 400 * kMs);
    EXPECT_TRUE(Find(engine).empty()) << "seed " << seed;
  }
}

TEST(StandStill, APauseLaidOnTheSchedulerYieldsToTheWorkerThatIsShownToStandStill) {
  Finding worker;
  worker.fault = trace::FaultClass::kRuntimePause;
  worker.culprit.process = "Worker";
  worker.culprit.rank = 0;
  worker.culprit.layer = "process";
  worker.score = 0.9;
  Finding scheduler = worker;
  scheduler.culprit.process = "EngineCore";
  scheduler.culprit.rank.reset();
  scheduler.score = 1.0;
  std::vector<Finding> findings = {scheduler};
  JoinStandStills({worker}, findings);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_LT(findings[0].score, findings[1].score);
}

TEST(CpuWitness, OnAFullMachineWhoSpinsMayHaveGivenWay) {
  Engine engine(1);
  const Nanos begin = align::testing::kEpoch + 4'000 * kMs;
  const Nanos end = begin + 1'000 * kMs;
  Count(engine, "spins", 1.0, 0.0, begin, end);
  EXPECT_EQ(CpuWitness(engine.store).During("spins", begin, end), CpuWitness::Use::kUnknown);
  Count(engine, "", 0.5, 0.0, begin, end);
  engine.store.counter_series.back().name = "idle_s";
  EXPECT_EQ(CpuWitness(engine.store).During("spins", begin, end), CpuWitness::Use::kUnknown);
  EXPECT_NEAR(CpuWitness(engine.store).Used("spins", begin - 500 * kMs, begin), 1.0, 0.01);
  EXPECT_LT(CpuWitness(engine.store).Used("nobody", begin, end), 0);
}

TEST(CpuWitness, TellsStillFromWorkingFromIdleAndKnowsWhenItCannot) {
  Engine engine(1);
  const Nanos begin = align::testing::kEpoch + 4'000 * kMs;
  const Nanos end = begin + 1'000 * kMs;
  Count(engine, "spins", 1.0, 0.0, begin, end);
  Count(engine, "goes on", 1.0, 1.0, begin, end);
  Count(engine, "rests", 0.05, 0.0, begin, end);
  Count(engine, "computes", 0.05, 1.0, begin, end);
  Count(engine, "", 0.5, 0.4, begin, end);  // of the machine: idle
  engine.store.counter_series.back().name = "idle_s";
  const CpuWitness witness(engine.store);
  using Use = CpuWitness::Use;
  EXPECT_EQ(witness.During("spins", begin, end), Use::kStill);
  EXPECT_EQ(witness.During("goes on", begin, end), Use::kWorking);
  EXPECT_EQ(witness.During("rests", begin, end), Use::kIdle);
  EXPECT_EQ(witness.During("computes", begin, end), Use::kWorking);
  EXPECT_EQ(witness.During("computes", begin + 100 * kMs, begin + 120 * kMs), Use::kUnknown);
  EXPECT_EQ(witness.During("nobody", begin, end), Use::kUnknown);
  EXPECT_EQ(witness.During("spins", begin - 90'000 * kMs, end), Use::kUnknown);
  EXPECT_EQ(witness.During("spins", end, begin), Use::kUnknown);
}

}  // namespace
}  // namespace teller::locate
