#include "locate/transfer_shift.hpp"

#include <gtest/gtest.h>

#include "locate/test_run.hpp"

namespace teller::locate {
namespace {

/// Two ranks with eight all-reduces a step; what they take after the last arrival is multiplied from step 8 to 14.
TestRun Ranks(double factor, Nanos usual, trace::SpanKind kind = trace::SpanKind::kKernel) {
  TestRun run(2);
  for (int r = 0; r < 2; ++r) {
    for (uint32_t s = 0; s < 24; ++s) run.AddStep(r, s);
  }
  for (uint32_t s = 0; s < 24; ++s) {
    for (int n = 0; n < 8; ++n) {
      trace::Collective collective;
      collective.name = run.store.strings.Intern("ncclDevKernel_AllReduce");
      collective.group = "tp";
      collective.transfer = run.Noisy(static_cast<double>(usual) * (s >= 8 && s < 14 ? factor : 1));
      for (int r = 0; r < 2; ++r) {
        const Nanos at = run.trees.steps[s].begin + (n + 1) * base::kMilli;
        trace::CollectiveMember member;
        member.rank = r;
        member.process = trace::ProcessRow(static_cast<uint32_t>(r));
        member.span = trace::SpanRow(run.AddSpan(r, kind, "ncclDevKernel_AllReduce", at, collective.transfer));
        member.arrival = at;
        member.end = at + collective.transfer;
        collective.members.push_back(member);
      }
      run.trees.collectives.push_back(collective);
    }
  }
  return run;
}

TEST(TransferShift, FindsTransfersThatTakeTwiceAsLongForAWhile) {
  const TransferShift shift = FindTransferShift(Ranks(2, 200'000).scene());
  ASSERT_EQ(shift.hits.size(), 2u);
  EXPECT_EQ(shift.hits.at(0).size(), 6u);
  EXPECT_EQ(shift.hits.at(0).front().step, 8u);
  EXPECT_NEAR(static_cast<double>(shift.usual), 200'000, 20'000);
  EXPECT_LT(shift.false_alarm, 0.01);
}

TEST(TransferShift, ASizeThatWasOnlyMetWhileTheLinkWasSlowIsKnownFromOthers) {
  TestRun run = Ranks(2, 200'000);
  for (trace::Collective& collective : run.trees.collectives) {
    const uint32_t span = collective.members.front().span.value();
    const Nanos at = collective.members.front().arrival;
    const bool slow = at >= run.trees.steps[8].begin && at < run.trees.steps[14].begin;
    run.store.comm_args.Append(span, trace::CommArgs{.in_elements = slow ? 24576 : 20480});
  }
  const TransferShift shift = FindTransferShift(run.scene());
  ASSERT_EQ(shift.hits.size(), 2u);
  EXPECT_EQ(shift.hits.at(0).size(), 6u);
}

TEST(TransferShift, ManySizesThatAreLargerThanTheOneThatIsSlowBoundIt) {
  TestRun run = Ranks(2, 200'000);
  int64_t other = 0;
  for (trace::Collective& collective : run.trees.collectives) {
    const uint32_t span = collective.members.front().span.value();
    const Nanos at = collective.members.front().arrival;
    const bool slow = at >= run.trees.steps[8].begin && at < run.trees.steps[14].begin;
    // Each other size is met a few times; the smallest is far smaller and bounds nothing.
    const int64_t elements = slow ? 20000 : ++other % 12 == 0 ? 8 : 20000 + 100 * (other % 12);
    run.store.comm_args.Append(span, trace::CommArgs{.in_elements = elements});
  }
  const TransferShift shift = FindTransferShift(run.scene());
  ASSERT_EQ(shift.hits.size(), 2u);
  EXPECT_NEAR(static_cast<double>(shift.usual), 200'000, 20'000);
}

TEST(TransferShift, WhatNobodyFeelsIsNoClaim) {
  EXPECT_TRUE(FindTransferShift(Ranks(2, 20'000).scene()).hits.empty());
}

TEST(TransferShift, SteadyTransfersAreNoClaim) {
  EXPECT_TRUE(FindTransferShift(Ranks(1, 200'000).scene()).hits.empty());
}

TEST(TransferShift, ThreadsOfAHostAreNotKernels) {
  EXPECT_TRUE(FindTransferShift(Ranks(2, 200'000, trace::SpanKind::kAnnotation).scene()).hits.empty());
}

}  // namespace
}  // namespace teller::locate
