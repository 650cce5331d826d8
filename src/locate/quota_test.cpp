#include "locate/quota.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "locate/explain.hpp"
#include "locate/test_counters.hpp"
#include "locate/test_run.hpp"

namespace teller::locate {
namespace {

using base::kMilli;

/// One process whose steps of 20 ms begin one after the other; `still(step, begin)`: for how long the operator in the
/// middle stands still.
TestRun Process(const std::function<Nanos(uint32_t, Nanos)>& still, uint32_t steps = 60) {
  TestRun run(1);
  Nanos at = kEpoch;
  for (uint32_t s = 0; s < steps; ++s) {
    const Nanos middle = at + 10 * kMilli;
    const Nanos pause = still(s, middle);
    trace::Step& step = run.AddStep(0, s);
    step.begin = at;
    step.end = at + 20 * kMilli + pause;
    at = step.end + 2 * kMilli;
    run.AddSlot(SlotKey::Kind::kOp, "first", 9e6);
    run.AddSlot(SlotKey::Kind::kOp, "middle", 1e6);
    Slot& slot = run.profiles.back().slots.back();
    slot.begin = middle;
    slot.cost += pause;
    slot.total += pause;
    slot.largest = kMilli + pause;
  }
  return run;
}

/// Until the next period begins, where this one's part was used up: every third step between 10 and 40.
Nanos Quota(uint32_t s, Nanos middle) {
  const Nanos left = 100 * kMilli - (middle + kMilli) % (100 * kMilli);
  return s >= 10 && s < 40 && left > 40 * kMilli && left < 75 * kMilli ? left : 0;
}

TEST(Quota, PausesThatEndWithPeriodsAreOne) {
  TestRun run = Process(Quota);
  run.store.processes[0].name = "Worker";
  ASSERT_EQ(SearchQuotas(run.scene()).size(), 1u);
  EXPECT_GE(SearchQuotas(run.scene())[0].false_alarm, 0.05) << "nothing else tells of its rhythm";
  run.store.files.push_back({.path = "host.jsonl", .kind = "host-counters"});
  AddRate(run.store, "Worker", "cpu_s", 40, [](int) { return 0.4; });
  AddRate(run.store, "", "idle_s", 40, [](int) { return 1.5; });
  const CpuWitness witness(run.store);
  Scene scene = run.scene();
  scene.witness = &witness;
  const auto claims = SearchQuotas(scene);
  ASSERT_EQ(claims.size(), 1u);
  EXPECT_GE(claims[0].steps.size(), 5u);
  EXPECT_LT(claims[0].false_alarm, 0.01);
  const trace::Finding finding = Explain(run.scene(), claims[0], std::nullopt);
  EXPECT_EQ(finding.fault, trace::FaultClass::kCpuStarved);
  EXPECT_NE(finding.explanation.find("quota"), std::string::npos) << finding.explanation;
}

TEST(Quota, PausesAtOtherMomentsAreNot) {
  base::Rng rng(3);
  size_t alarms = 0;
  for (int seed = 0; seed < 200; ++seed) {
    const TestRun run =
        Process([&](uint32_t s, Nanos) { return s % 2 == 0 ? static_cast<Nanos>((40 + rng.Below(30)) * kMilli) : 0; });
    for (const Hypothesis& claim : SearchQuotas(run.scene())) alarms += claim.false_alarm < 0.01;
  }
  EXPECT_LE(alarms, 2u);
  for (const Hypothesis& claim :
       SearchQuotas(Process([](uint32_t s, Nanos middle) { return s < 16 ? Quota(s, middle) : 0; }).scene()))
    EXPECT_GE(claim.false_alarm, 0.01) << "too few";
}

TEST(Quota, ALoopThatGoesRoundTenTimesASecondIsOnlySuspected) {
  for (const Nanos period : {100 * kMilli, 101 * kMilli}) {
    // A step takes 22 ms with the gap; it waits for the rest of its period.
    for (const Hypothesis& claim : SearchQuotas(Process([&](uint32_t, Nanos) { return period - 22 * kMilli; }).scene()))
      EXPECT_GE(claim.false_alarm, 0.01) << period;
  }
}

TEST(Quota, WaitingForOthersIsNone) {
  TestRun run = Process(Quota);
  for (StepProfile& profile : run.profiles) {
    for (Slot& slot : profile.slots) slot.key.name = run.store.strings.Intern("cudaStreamSynchronize").value();
  }
  EXPECT_TRUE(SearchQuotas(run.scene()).empty());
}

}  // namespace
}  // namespace teller::locate
