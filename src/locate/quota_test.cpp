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

/// Every step has a collective of 0.1 ms. Moves the pauses of those for which `inside` holds from the operator into it:
/// all have arrived, and it goes on `later`.
void MoveIntoCollectives(TestRun& run, const std::function<bool(uint32_t)>& inside, Nanos later = 0) {
  const trace::StringId name = run.store.strings.Intern("gloo:all_reduce");
  for (uint32_t s = 0; s < run.trees.steps.size(); ++s) {
    Slot& slot = run.profiles[s].slots.back();
    Nanos pause = slot.largest - kMilli;
    const bool moved = pause > 0 && inside(s);
    if (moved) {
      slot.cost -= pause;
      slot.total -= pause;
      slot.largest = kMilli;
      pause += later;
    }
    const Nanos all_there = slot.begin + kMilli;
    trace::Collective collective;
    collective.name = name;
    collective.members.resize(2);
    collective.members[0] = {.rank = 0, .process = trace::ProcessRow(0), .arrival = all_there - 50'000, .wait = 50'000};
    collective.members[1] = {.rank = 1, .process = trace::ProcessRow(1), .arrival = all_there};
    collective.transfer = moved ? pause : kMilli / 10;
    for (auto& member : collective.members) member.end = all_there + collective.transfer;
    run.trees.collectives.push_back(collective);
  }
}

/// Holds for every third of the steps that pause.
std::function<bool(uint32_t)> EveryThird() {
  return [stop = 0](uint32_t) mutable { return ++stop % 3 == 0; };
}

TEST(Quota, PausesInsideOfCollectivesBelongToWhomTheOthersShow) {
  TestRun run = Process(Quota);
  size_t stops = 0;
  for (const StepProfile& profile : run.profiles) stops += profile.slots.back().largest > 2 * kMilli;
  size_t moved = 0;
  MoveIntoCollectives(run, [&, every_third = EveryThird()](uint32_t s) {
    const bool moves = every_third(s);
    moved += moves;
    return moves;
  });
  ASSERT_GE(moved, 3u);
  const auto claims = SearchQuotas(run.scene());
  ASSERT_EQ(claims.size(), 1u);
  EXPECT_EQ(claims[0].steps.size(), stops);
  EXPECT_TRUE(std::is_sorted(claims[0].steps.begin(), claims[0].steps.end()));
  ASSERT_EQ(claims[0].inside.size(), moved);
  EXPECT_EQ(claims[0].inside.front().collective, claims[0].inside.front().step) << "one a step";
  EXPECT_GT(claims[0].inside.front().lost, 40 * kMilli);
  EXPECT_FALSE(claims[0].at_changing_places);

  TestRun waits_only = Process(Quota);
  MoveIntoCollectives(waits_only, [](uint32_t) { return true; });
  EXPECT_TRUE(SearchQuotas(waits_only.scene()).empty()) << "nothing says who is stopped";
  TestRun other_moments = Process(Quota);
  MoveIntoCollectives(other_moments, EveryThird(), 20 * kMilli);
  ASSERT_EQ(SearchQuotas(other_moments.scene()).size(), 1u);
  EXPECT_TRUE(SearchQuotas(other_moments.scene())[0].inside.empty());
}

TEST(Quota, ACallThatBeginsAKnownCollectiveIsTheProcesssOwn) {
  const auto run_of = [](const std::string& name) {
    TestRun run = Process(Quota);
    for (StepProfile& profile : run.profiles) {
      Slot& slot = profile.slots.back();
      slot.key.name = run.store.strings.Intern(name).value();
      run.store.spans.begin[slot.span] = slot.begin;
      run.store.spans.duration[slot.span] = slot.largest;
    }
    return run;
  };
  const auto nowhere = [](uint32_t) { return false; };
  TestRun run = run_of("c10d::allreduce_");
  EXPECT_TRUE(SearchQuotas(run.scene()).empty()) << "it may wait there";
  MoveIntoCollectives(run, nowhere);
  EXPECT_EQ(SearchQuotas(run.scene()).size(), 1u);
  for (StepProfile& profile : run.profiles) profile.uses_device = true;
  EXPECT_TRUE(SearchQuotas(run.scene()).empty()) << "the device takes part, not the call";
  TestRun other = run_of("cudaStreamSynchronize");
  MoveIntoCollectives(other, nowhere);
  EXPECT_TRUE(SearchQuotas(other.scene()).empty()) << "it begins none";
}

TEST(Quota, WhatGoesOnAtAnotherPlaceEachTimeIsStoppedByNoneOfThem) {
  TestRun run = Process(Quota);
  for (uint32_t s = 0; s < run.profiles.size(); ++s) {
    run.profiles[s].slots.back().key.name = run.store.strings.Intern("place" + std::to_string(s % 7)).value();
  }
  const auto claims = SearchQuotas(run.scene());
  ASSERT_EQ(claims.size(), 1u);
  EXPECT_TRUE(claims[0].at_changing_places);
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
