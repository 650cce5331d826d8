#include "locate/front_end.hpp"

#include <gtest/gtest.h>

#include "align/engine_simulation.hpp"
#include "align/requests.hpp"
#include "locate/locate.hpp"

namespace teller::locate {
namespace {

using align::testing::Engine;
using align::testing::kMs;

std::vector<trace::Finding> Alarms(Engine& engine) {
  engine.Finish();
  align::BuildRequests(engine.store, engine.trees);
  std::vector<trace::Finding> findings = FindFrontEndCauses(engine.store, engine.trees);
  std::erase_if(findings,
                [](const trace::Finding& f) { return f.false_alarm_probability >= LocateOptions().false_alarms; });
  return findings;
}

TEST(FrontEnd, HealthyRunsGiveNone) {
  size_t alarms = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Engine engine(seed);
    engine.Arrive(40);
    alarms += !Alarms(engine).empty();
  }
  EXPECT_LE(alarms, 2u);
}

TEST(FrontEnd, SlowTokenizerIsFoundAndNamed) {
  size_t found = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Engine engine(seed);
    engine.Arrive(40);
    for (size_t i = 18; i < 22; ++i) engine.truths[i].front = 300 * kMs;
    const auto findings = Alarms(engine);
    if (findings.empty()) continue;
    ++found;
    EXPECT_EQ(findings.front().culprit.process, "APIServer");
    EXPECT_EQ(findings.front().fault, trace::FaultClass::kHostCpuBound);
    EXPECT_TRUE(findings.front().steps.empty());
  }
  EXPECT_GE(found, 32u);
}

TEST(FrontEnd, RequestsThatAProfilerHeldUpDoNotTellWhatIsUsual) {
  size_t found = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Engine engine(seed);
    engine.Arrive(40);
    for (size_t i = 14; i < 20; ++i) engine.truths[i].front = 300 * kMs;
    for (size_t i = 28; i < 40; ++i) engine.truths[i].front = 4000 * kMs;
    const trace::Note note{.text = "export",
                           .begin = engine.truths[28].arrival + 1500 * kMs,
                           .end = engine.truths[28].arrival + 4000 * kMs,
                           .observer = true};
    engine.Finish();
    align::BuildRequests(engine.store, engine.trees);
    const auto findings = FindFrontEndCauses(engine.store, engine.trees, {note});
    found += !findings.empty() && findings.front().onset < engine.truths[20].arrival;
  }
  EXPECT_GE(found, 30u);
}

TEST(FrontEnd, AStoppedEngineIsNotTheFrontEndsFault) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Engine engine(seed);
    engine.Arrive(40);
    engine.stop_at = engine.truths[15].arrival;
    engine.stop_for = 900 * kMs;
    // The engine itself may be named, as it stood still over its queue.
    for (const auto& finding : Alarms(engine)) EXPECT_EQ(finding.culprit.process, "EngineCore") << "seed " << seed;
  }
}

TEST(FrontEnd, AnEngineThatStandsStillOverItsQueueIsNamed) {
  size_t found = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Engine engine(seed);
    engine.Arrive(40);
    engine.Finish();
    // One request was in the queue for 300 ms during which no step ran: everything after it moves by as much.
    const auto& truth = engine.truths[20];
    for (auto& step : engine.trees.steps) {
      if (step.begin < truth.admitted) continue;
      step.begin += 300 * kMs;
      step.end += 300 * kMs;
    }
    for (size_t i = 0; i < engine.truths.size(); ++i) {
      auto& record = engine.store.request_records[i];
      if (engine.truths[i].arrival > truth.arrival) record.arrival += 300 * kMs;
    }
    auto& record = engine.store.request_records[20];
    record.queue_time += 300 * kMs;
    record.ttft += 300 * kMs;
    record.e2e += 300 * kMs;
    align::BuildRequests(engine.store, engine.trees);
    const auto findings = FindFrontEndCauses(engine.store, engine.trees);
    const bool named = std::any_of(findings.begin(), findings.end(), [](const trace::Finding& f) {
      return f.fault == trace::FaultClass::kRuntimePause && f.culprit.process == "EngineCore";
    });
    found += named;
  }
  EXPECT_GE(found, 30u);
}

TEST(FrontEnd, WithoutTracesOvertakenRequestsProveIt) {
  size_t found = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Engine engine(seed);
    engine.Arrive(60);
    for (size_t i = 20; i < 40; i += 3) engine.truths[i].front = 400 * kMs;
    engine.Finish();
    engine.trees.steps.clear();
    align::BuildRequests(engine.store, engine.trees);
    found += !FindFrontEndCauses(engine.store, engine.trees).empty();
  }
  EXPECT_GE(found, 30u);
}

TEST(FrontEnd, WithoutTracesAStoppedEngineAccusesNobody) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Engine engine(seed);
    engine.Arrive(40);
    engine.stop_at = engine.truths[15].arrival;
    engine.stop_for = 900 * kMs;
    engine.Finish();
    engine.trees.steps.clear();
    align::BuildRequests(engine.store, engine.trees);
    EXPECT_TRUE(FindFrontEndCauses(engine.store, engine.trees).empty()) << "seed " << seed;
  }
}

TEST(FrontEnd, ABurstIsNot) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Engine engine(seed);
    engine.Arrive(40);
    // Twenty requests at once; the tokenizer takes them one after the other.
    for (size_t i = 15; i < 35; ++i) {
      engine.truths[i].arrival = engine.truths[15].arrival;
      engine.truths[i].front = static_cast<trace::Nanos>(i - 14) * 3 * kMs;
    }
    EXPECT_TRUE(Alarms(engine).empty()) << "seed " << seed;
  }
}

/// An engine in whose spans the last token's time is when it left the server, as SGLang states it, and some of which
/// were held back by `late`.
void HoldBack(Engine& engine, size_t first, size_t last, trace::Nanos late) {
  engine.Finish();
  for (size_t i = 0; i < engine.truths.size(); ++i) {
    auto& record = engine.store.request_records[i];
    const auto& truth = engine.truths[i];
    record.engine = "sglang";
    record.admitted = truth.admitted;
    record.prefilled = truth.first_token;
    record.queue_time = record.prefill_time = record.decode_time = -1;
    record.finished = truth.last_token + (i >= first && i < last ? late : kMs);
    record.e2e = record.finished - truth.arrival;
  }
  engine.store.processes[0].engine = "sglang";
}

/// Of 40 runs in which four requests were held back, those in which the way out is accused.
size_t AccusedOfHoldingBack(bool pipeline) {
  size_t found = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Engine engine(seed);
    engine.Arrive(40);
    for (auto& truth : engine.truths) truth.output = std::max<int64_t>(truth.output, 4);
    HoldBack(engine, 18, 22, 700 * kMs);
    align::BuildRequests(engine.store, engine.trees);
    if (pipeline) engine.trees.collectives.emplace_back().point_to_point = true;
    const auto findings = FindFrontEndCauses(engine.store, engine.trees);
    found += std::any_of(findings.begin(), findings.end(), [](const trace::Finding& f) {
      return f.culprit.process == "detokenizer" || f.culprit.process == "tokenizer_manager";
    });
  }
  return found;
}

TEST(FrontEnd, TokensThatWereMadeLongBeforeTheyLeftAreFoundByCountingSteps) {
  EXPECT_GE(AccusedOfHoldingBack(false), 34u);
}

TEST(FrontEnd, StepsOfAPipelineAreNotCounted) {
  EXPECT_EQ(AccusedOfHoldingBack(true), 0u);
}

/// Host counters of the detokenizer, which uses so much of a processor all the time.
void Count(Engine& engine, double rate) {
  const trace::CounterRow row(static_cast<uint32_t>(engine.store.counter_series.size()));
  trace::CounterSeries series;
  series.file = trace::FileRow(0);
  series.process_name = "detokenizer";
  series.name = "cpu_s";
  series.kind = trace::CounterKind::kCumulative;
  engine.store.counter_series.push_back(series);
  const trace::Nanos begin = engine.truths.front().arrival - 1000 * kMs;
  const trace::Nanos end = engine.truths.back().last_token + 3000 * kMs;
  uint32_t n = 0;
  for (trace::Nanos at = begin; at < end; at += 500 * kMs, ++n)
    engine.store.counters.push_back({at, row, n, rate * static_cast<double>(at - begin) / 1e9});
}

TEST(FrontEnd, ADetokenizerThatUsesNoProcessorIsStoppedThoughRequestsComeIn) {
  size_t stopped = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    for (const double rate : {0.01, 0.95}) {
      Engine engine(seed);
      engine.Arrive(40);
      for (auto& truth : engine.truths) truth.output = std::max<int64_t>(truth.output, 4);
      HoldBack(engine, 0, 0, 0);
      const trace::Nanos from = engine.truths[18].last_token;
      for (size_t i = 0; i < engine.truths.size(); ++i) {
        auto& record = engine.store.request_records[i];
        if (record.finished < from || record.finished >= from + 700 * kMs) continue;
        record.finished = from + 700 * kMs;
        record.e2e = record.finished - engine.truths[i].arrival;
      }
      Count(engine, rate);
      align::BuildRequests(engine.store, engine.trees);
      const CpuWitness witness(engine.store);
      for (const auto& finding : FindFrontEndCauses(engine.store, engine.trees, {}, &witness)) {
        if (finding.culprit.process != "detokenizer") continue;
        const bool pause = finding.fault == trace::FaultClass::kRuntimePause;
        EXPECT_FALSE(pause && rate > 0.5) << seed;
        if (rate > 0.5 && finding.end - finding.onset < 800 * kMs) {
          EXPECT_GE(finding.false_alarm_probability, 0.05) << "it computed, once: a garbage collection does that too";
        }
        stopped += pause && rate < 0.5 ? 1 : 0;
      }
    }
  }
  EXPECT_GE(stopped, 20u);
}

TEST(FrontEnd, CountingStepsAccusesNoHealthyServer) {
  size_t alarms = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Engine engine(seed);
    engine.Arrive(40);
    HoldBack(engine, 0, 0, 0);
    align::BuildRequests(engine.store, engine.trees);
    alarms += FindFrontEndCauses(engine.store, engine.trees).empty() ? 0 : 1;
  }
  EXPECT_LE(alarms, 1u);
}

}  // namespace
}  // namespace teller::locate
