#include "locate/workload.hpp"

#include <gtest/gtest.h>

#include "locate/test_run.hpp"

namespace teller::locate {
namespace {

/// Two stages that take the same steps; before step 8 both (or the second one alone) have nothing to do for 6 ms more.
TestRun Stages(bool both) {
  TestRun run(2);
  for (int r = 0; r < 2; ++r) {
    for (uint32_t s = 0; s < 16; ++s) {
      trace::Step& step = run.AddStep(r, s);
      const bool late = s >= 8 && (both || r == 1);
      if (late) step.begin += 6 * base::kMilli;
      if (late) step.end += 6 * base::kMilli;
      run.profiles.back().gap = s == 0 ? 0 : s == 8 && late ? 16 * base::kMilli : 10 * base::kMilli;
    }
  }
  for (uint32_t s = 0; s < 16; ++s) {
    trace::Collective sent;
    sent.point_to_point = true;
    for (int r = 0; r < 2; ++r) {
      trace::CollectiveMember member;
      member.rank = r;
      member.process = trace::ProcessRow(static_cast<uint32_t>(r));
      member.arrival = run.trees.steps[s].begin;
      member.end = member.arrival + base::kMilli;
      member.span = trace::SpanRow(
          run.AddSpan(r, trace::SpanKind::kKernel, "ncclDevKernel_SendRecv", member.arrival, base::kMilli));
      sent.members.push_back(member);
    }
    run.trees.collectives.push_back(sent);
  }
  return run;
}

/// That the second stage was idle for 6 ms before its step 8.
std::vector<Hypothesis> Claim(const TestRun& run) {
  Hypothesis h;
  h.trouble = Trouble::kGapWork;
  h.in_gap = true;
  h.process = trace::ProcessRow(1);
  h.rank = 1;
  h.steps = {16 + 8};
  h.lost = 6 * base::kMilli;
  h.lost_in = {h.lost};
  h.end = run.trees.steps[16 + 8].begin;
  h.onset = h.end - run.profiles[16 + 8].gap;
  return {h};
}

TEST(Workload, AStageIsNotAccusedOfABatchThatWasNotThereYet) {
  const TestRun run = Stages(true);
  std::vector<Hypothesis> claims = Claim(run);
  std::vector<trace::Note> notes;
  DropExplained(run.scene(), claims, notes);
  EXPECT_TRUE(claims.empty());
}

TEST(Workload, AStageThatLeavesItsBatchWaitingIs) {
  const TestRun run = Stages(false);
  std::vector<Hypothesis> claims = Claim(run);
  std::vector<trace::Note> notes;
  DropExplained(run.scene(), claims, notes);
  EXPECT_EQ(claims.size(), 1u);
}

}  // namespace
}  // namespace teller::locate
