#include "locate/explain.hpp"

#include <gtest/gtest.h>

#include "locate/test_counters.hpp"
#include "locate/test_run.hpp"

namespace teller::locate {
namespace {

/// Three pauses of a lone worker in steps one after the other, while it uses so much of a processor. Each ends at the
/// same moment of a period of 100 ms, or so much later.
trace::FaultClass ClassOfPauses(double used, std::vector<Nanos> lengths, std::vector<Nanos> later = {0, 0, 0}) {
  TestRun run(1);
  run.store.files.push_back({.path = "host.jsonl", .kind = "host-counters"});
  run.store.processes[0].name = "Worker";
  for (uint32_t s = 0; s < 30; ++s) {
    trace::Step& step = run.AddStep(0, s, 90 * base::kMilli);
    step.begin = kEpoch + static_cast<Nanos>(s) * 100 * base::kMilli;
    step.end = step.begin + 90 * base::kMilli;
    if (s < 21 || s > 25 || s % 2 == 0) continue;
    const size_t which = (s - 21) / 2;
    run.AddSlot(SlotKey::Kind::kHost, "wait", 1000);
    Slot& slot = run.profiles.back().slots.back();
    slot.cost = slot.total = slot.largest = lengths[which];
    slot.begin = step.begin + 85 * base::kMilli + later[which] - lengths[which];
  }
  const auto inside = [](int i) { return i == 4 || i == 5; };
  AddRate(run.store, "Worker", "cpu_s", 20, [&](int i) { return inside(i) ? used : 1.0; });
  AddRate(run.store, "", "idle_s", 20, [&](int i) { return inside(i) ? 1.7 : 0.9; });
  AddRate(run.store, "", "busy_s", 20, [&](int i) { return inside(i) ? 0.3 : 1.1; });
  Hypothesis h;
  h.trouble = Trouble::kPause;
  h.process = trace::ProcessRow(0);
  h.steps = {21, 23, 25};
  h.lost_in = std::move(lengths);
  for (const Nanos lost : h.lost_in) {
    h.lost += lost;
    h.worst = std::max(h.worst, lost);
  }
  h.onset = run.trees.steps[21].begin;
  h.end = run.trees.steps[25].end;
  h.worst_begin = h.onset + base::kMilli;
  h.false_alarm = 1e-4;
  const CpuWitness witness(run.store);
  const Scene scene{run.store, run.trees, run.profiles, run.normals, &witness};
  return Explain(scene, h, std::nullopt).fault;
}

constexpr Nanos kMs = base::kMilli;

TEST(Explain, EqualPausesOfAProcessThatUsesALittleAreAQuota) {
  EXPECT_EQ(ClassOfPauses(0.2, {80 * kMs, 75 * kMs, 81 * kMs}), trace::FaultClass::kCpuStarved);
}

TEST(Explain, EqualPausesThatEndAnywhereInAPeriodAreCalls) {
  EXPECT_EQ(ClassOfPauses(0.2, {80 * kMs, 75 * kMs, 81 * kMs}, {0, 30 * kMs, -20 * kMs}),
            trace::FaultClass::kRuntimePause);
}

TEST(Explain, PausesOfAProcessThatUsesNothingOrEverythingAreNone) {
  EXPECT_EQ(ClassOfPauses(0.0, {80 * kMs, 75 * kMs, 81 * kMs}), trace::FaultClass::kRuntimePause);
  EXPECT_EQ(ClassOfPauses(1.0, {80 * kMs, 75 * kMs, 81 * kMs}), trace::FaultClass::kRuntimePause);
}

TEST(Explain, PausesThatDifferOrOutlastAPeriodAreNone) {
  EXPECT_EQ(ClassOfPauses(0.2, {80 * kMs, 25 * kMs, 81 * kMs}), trace::FaultClass::kRuntimePause);
  EXPECT_EQ(ClassOfPauses(0.2, {380 * kMs, 375 * kMs, 381 * kMs}), trace::FaultClass::kRuntimePause);
}

}  // namespace
}  // namespace teller::locate
