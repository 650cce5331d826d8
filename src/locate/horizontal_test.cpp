#include <gtest/gtest.h>

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

}  // namespace
}  // namespace teller::locate
