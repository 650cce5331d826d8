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

/// Three stages: what each passes on takes `usual`, and from one to the next `factor` times as long from step 8 to 14.
/// The receiver waits for it from the beginning of the step.
TestRun Stages(int slow_sender, double factor, Nanos usual, uint64_t seed = 7) {
  TestRun run(3);
  run.rng = base::Rng(seed);
  for (int r = 0; r < 3; ++r) {
    for (uint32_t s = 0; s < 24; ++s) {
      run.AddStep(r, s);
      run.AddSlot(SlotKey::Kind::kOp, "mm", 2e6);
    }
  }
  for (uint32_t s = 0; s < 24; ++s) {
    for (int from = 0; from < 2; ++from) {
      trace::Collective sent;
      sent.name = run.store.strings.Intern("ncclDevKernel_SendRecv");
      sent.group = "from " + std::to_string(from);
      sent.point_to_point = true;
      const bool slow = from == slow_sender && s >= 8 && s < 14;
      const Nanos takes = run.Noisy(static_cast<double>(usual) * (slow ? factor : 1));
      const Nanos ready = run.trees.steps[s].begin + (from + 1) * base::kMilli;
      for (int r = from; r < from + 2; ++r) {
        const Nanos at = r == from ? ready : run.trees.steps[s].begin;
        trace::CollectiveMember member;
        member.rank = r;
        member.process = trace::ProcessRow(static_cast<uint32_t>(r));
        member.span =
            trace::SpanRow(run.AddSpan(r, trace::SpanKind::kKernel, "ncclDevKernel_SendRecv", at, ready + takes - at));
        member.arrival = at;
        member.end = ready + takes;
        sent.members.push_back(member);
      }
      run.trees.collectives.push_back(sent);
    }
  }
  return run;
}

TEST(TransferShift, FindsWhichStagePassesOnSlowly) {
  for (int from = 0; from < 2; ++from) {
    const TransferShift shift = FindTransferShift(Stages(from, 5, 200'000).scene());
    ASSERT_EQ(shift.hits.size(), 2u);
    ASSERT_TRUE(shift.route.has_value());
    EXPECT_EQ(shift.route->from.value(), static_cast<uint32_t>(from));
    EXPECT_EQ(shift.route->to.value(), static_cast<uint32_t>(from + 1));
    EXPECT_EQ(shift.hits.at(static_cast<uint32_t>(from)).size(), 6u);
    EXPECT_LT(shift.false_alarm, 0.01);
  }
}

TEST(TransferShift, TheClaimNamesBothEndsAndShowsWhatWentThatWayOnly) {
  const TestRun run = Stages(1, 5, 200'000);
  const auto claims = SearchHorizontal(run.scene());
  ASSERT_EQ(claims.size(), 1u);
  EXPECT_EQ(claims[0].trouble, Trouble::kSlowTransfer);
  EXPECT_EQ(claims[0].rank, 1);
  EXPECT_EQ(claims[0].peer, 2);
  EXPECT_TRUE(claims[0].sent);
  ASSERT_EQ(claims[0].collectives.size(), 6u);
  EXPECT_NEAR(static_cast<double>(claims[0].worst), 1e6, 1e5);
  for (const uint32_t c : claims[0].collectives) EXPECT_EQ(run.trees.collectives[c].group, "from 1");
}

TEST(TransferShift, StagesThatPassOnAsEverAreLeftAlone) {
  for (uint64_t seed = 1; seed <= 60; ++seed)
    EXPECT_TRUE(FindTransferShift(Stages(0, 1, 200'000, seed).scene()).hits.empty());
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
