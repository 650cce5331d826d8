#include <gtest/gtest.h>

#include <algorithm>

#include "locate/test_run.hpp"

namespace teller::locate {
namespace {

/// Four ranks with an all-reduce a millisecond, as spans of this kind; rank 3 ends one of them 80 ms after the others.
TestRun LeavingLate(trace::SpanKind kind, bool device) {
  TestRun run(4);
  for (int r = 0; r < 4; ++r) {
    for (uint32_t s = 0; s < 40; ++s) {
      run.AddStep(r, s);
      run.AddSlot(SlotKey::Kind::kOp, "aten::mm", 5'000'000);
      if (device) run.AddSlot(SlotKey::Kind::kGpu, "kernel", 5'000'000);
    }
  }
  for (uint32_t s = 0; s < 40; ++s) {
    trace::Collective collective;
    collective.name = run.store.strings.Intern("all_reduce");
    for (int r = 0; r < 4; ++r) {
      const Nanos at = run.trees.steps[s].begin + base::kMilli;
      const Nanos length = s == 20 && r == 3 ? 80 * base::kMilli : 10'000 + r;
      trace::CollectiveMember member;
      member.rank = r;
      member.process = trace::ProcessRow(static_cast<uint32_t>(r));
      member.span = trace::SpanRow(run.AddSpan(r, kind, "all_reduce", at, length));
      member.arrival = at;
      member.end = at + length;
      collective.members.push_back(member);
    }
    run.trees.collectives.push_back(collective);
  }
  return run;
}

size_t Pauses(const TestRun& run) {
  size_t pauses = 0;
  for (const Hypothesis& h : SearchHorizontal(run.scene()))
    pauses += h.trouble == Trouble::kPause && h.rank == 3 && h.false_alarm < 0.01 ? 1 : 0;
  return pauses;
}

TEST(Horizontal, ARankThatLeavesLateStoodStillInside) {
  EXPECT_EQ(Pauses(LeavingLate(trace::SpanKind::kAnnotation, false)), 1u);
  EXPECT_EQ(Pauses(LeavingLate(trace::SpanKind::kOp, false)), 1u);
}

TEST(Horizontal, RanksDoNotMeetInTheCallThatLaunchesACollective) {
  EXPECT_EQ(Pauses(LeavingLate(trace::SpanKind::kOp, true)), 0u);
}

bool IsSlow(uint32_t step) {
  return step == 20 || step == 21;
}

/// Four ranks with eight all-reduces a step; those of two steps take `extra` more in each of these, alike or (`one`) in
/// one of them.
TestRun TwoSlowSteps(Nanos extra, bool one) {
  constexpr uint32_t kMany = 8;
  TestRun run(4);
  for (int r = 0; r < 4; ++r) {
    for (uint32_t s = 0; s < 40; ++s) {
      trace::Step& step = run.AddStep(r, s);
      step.begin += s > 21 ? 2 * extra : s > 20 ? extra : 0;
      step.end = step.begin + 10 * base::kMilli + (IsSlow(s) ? extra : 0);
      run.AddSlot(SlotKey::Kind::kOp, "aten::mm", 5'000'000);
      run.profiles.back().comm_transfer = 100'000 + (IsSlow(s) ? extra : 0);
      run.normals.back().expected_transfer = 100'000;
    }
  }
  for (uint32_t s = 0; s < 40; ++s) {
    Nanos at = run.trees.steps[s].begin + base::kMilli;
    for (uint32_t k = 0; k < kMany; ++k) {
      trace::Collective collective;
      collective.name = run.store.strings.Intern("all_reduce");
      collective.transfer = 12'000 + (!IsSlow(s) ? 0 : !one ? extra / kMany : k == 3 ? extra : 0);
      for (int r = 0; r < 4; ++r) {
        trace::CollectiveMember member;
        member.rank = r;
        member.process = trace::ProcessRow(static_cast<uint32_t>(r));
        member.span =
            trace::SpanRow(run.AddSpan(r, trace::SpanKind::kAnnotation, "all_reduce", at, collective.transfer));
        member.arrival = at;
        member.end = at + collective.transfer;
        collective.members.push_back(member);
      }
      at += collective.transfer + 100'000;
      run.trees.collectives.push_back(collective);
    }
  }
  return run;
}

bool BlamesTransfers(const TestRun& run) {
  const auto claims = SearchHorizontal(run.scene());
  return std::any_of(claims.begin(), claims.end(),
                     [](const Hypothesis& h) { return h.trouble == Trouble::kSlowTransfer && h.false_alarm < 0.01; });
}

TEST(Horizontal, TwoStepsOfManySlowCollectivesAreASlowLink) {
  EXPECT_TRUE(BlamesTransfers(TwoSlowSteps(200 * base::kMilli, false)));
  EXPECT_FALSE(BlamesTransfers(TwoSlowSteps(200 * base::kMilli, true))) << "one each: a rank that stood still inside";
  EXPECT_FALSE(BlamesTransfers(TwoSlowSteps(20 * base::kMilli, false))) << "less than a busy host's threads cost";
}

/// Two ranks whose link loses frames from step 10 to 30: every fourth step waits 205 ms until one is sent again, the
/// others lose `between` to those that are sent again soon.
TestRun LosingLink(Nanos between) {
  TestRun run(2);
  const auto lost = [between](uint32_t s) {
    return s < 10 || s > 30 ? 0 : (s - 10) % 4 == 0 ? 205 * base::kMilli : between;
  };
  for (int r = 0; r < 2; ++r) {
    Nanos at = base::kSecond;
    for (uint32_t s = 0; s < 40; ++s) {
      trace::Step& step = run.AddStep(r, s);
      step.begin = at;
      step.end = at + 10 * base::kMilli + lost(s);
      at = step.end + base::kMilli;
      run.AddSlot(SlotKey::Kind::kOp, "aten::mm", 5'000'000);
      run.profiles.back().comm_transfer = base::kMilli + lost(s);
      run.normals.back().expected_transfer = base::kMilli;
    }
  }
  for (uint32_t s = 0; s < 40; ++s) {
    trace::Collective collective;
    collective.name = run.store.strings.Intern("all_reduce");
    collective.transfer = base::kMilli + lost(s);
    for (int r = 0; r < 2; ++r) {
      const Nanos arrival = run.trees.steps[s].begin + base::kMilli;
      const uint32_t span = run.AddSpan(r, trace::SpanKind::kAnnotation, "all_reduce", arrival, collective.transfer);
      collective.members.push_back({.rank = r,
                                    .process = trace::ProcessRow(static_cast<uint32_t>(r)),
                                    .span = trace::SpanRow(span),
                                    .arrival = arrival,
                                    .end = arrival + collective.transfer});
    }
    run.trees.collectives.push_back(collective);
  }
  return run;
}

TEST(Horizontal, ALinkThatLosesFramesAlsoSlowsTheStepsInBetween) {
  const auto steps = [](Nanos between) {
    const auto claims = SearchHorizontal(LosingLink(between).scene());
    const auto link = std::find_if(claims.begin(), claims.end(),
                                   [](const Hypothesis& h) { return h.trouble == Trouble::kSlowTransfer; });
    return link == claims.end() ? size_t{0} : link->steps.size();
  };
  EXPECT_EQ(steps(3 * base::kMilli), 21u);
  EXPECT_EQ(steps(base::kMilli / 10), 6u) << "as ever";
}

TEST(Horizontal, WhereNothingTakesTimeNoTransferIsSlow) {
  TestRun run = TwoSlowSteps(0, false);
  for (StepProfile& profile : run.profiles) {
    profile.comm_transfer = 0;
    profile.ops = 0;
    profile.host = 0;
    profile.slots.clear();
  }
  for (StepNormal& normal : run.normals) normal = {.judged = true};
  for (trace::Collective& collective : run.trees.collectives) {
    collective.transfer = 0;
    for (auto& member : collective.members) member.end = member.arrival;
  }
  for (const Hypothesis& h : SearchHorizontal(run.scene())) EXPECT_NE(h.trouble, Trouble::kSlowTransfer);
}

}  // namespace
}  // namespace teller::locate
