#include "locate/net_path.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ingest/log/log_reader.hpp"
#include "locate/test_run.hpp"

namespace teller::locate {
namespace {

using base::kMilli;

constexpr const char* kHead = "hostA:900:921 [0] NCCL INFO ";

/// Two ranks whose steps of 10 ms each have one collective that moves data for `transfer`; `lines` is what NCCL said.
TestRun Talking(Nanos transfer, const std::vector<std::string>& lines, bool device = true) {
  TestRun run(2);
  for (int r = 0; r < 2; ++r) {
    for (uint32_t s = 0; s < 8; ++s) {
      run.AddStep(r, s);
      run.AddSlot(device ? SlotKey::Kind::kGpu : SlotKey::Kind::kOp, "gemm", 1e6);
    }
  }
  for (uint32_t s = 0; s < 8; ++s) {
    trace::Collective collective;
    collective.name = run.store.strings.Intern("all_reduce");
    collective.transfer = transfer;
    for (uint32_t r = 0; r < 2; ++r) {
      trace::CollectiveMember member;
      member.rank = static_cast<int>(r);
      member.process = trace::ProcessRow(r);
      member.arrival = run.trees.steps[s].begin;
      member.end = member.arrival + transfer;
      collective.members.push_back(member);
    }
    run.trees.collectives.push_back(collective);
  }
  std::string text;
  for (const std::string& line : lines) {
    const bool other = line.starts_with("@hostB ");
    text += (other ? "hostB:700:721 [0] NCCL INFO " : kHead) + line.substr(other ? 7 : 0) + "\n";
  }
  run.store.files.emplace_back();
  auto source = base::OpenMemory(text);
  EXPECT_TRUE(ingest::ReadLog(*source, trace::FileRow(0), run.store, {}).ok());
  return run;
}

const std::string kSocket = "NET/Socket : Using [0]eth0:10.0.0.11<0>";
const std::string kOverSocket = "Channel 00/0 : 0[0] -> 1[1] [send] via NET/Socket/0";
const std::string kBack = "Channel 00/0 : 1[1] -> 0[0] [send] via NET/Socket/0";

TEST(NetPath, DataThatGoesOverTcpAndTakesMostOfTheTime) {
  const auto findings = FindNetPath(Talking(6 * kMilli, {kSocket, "Using network Socket", kOverSocket, kBack}).scene());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].fault, trace::FaultClass::kNetPathWrong);
  EXPECT_EQ(findings[0].steps.size(), 8u);
  EXPECT_EQ(findings[0].culprit.log_record, kSocket);
  EXPECT_LT(findings[0].false_alarm_probability, 0.01);
  EXPECT_NE(findings[0].explanation.find("[E1][E2]"), std::string::npos) << findings[0].explanation;
}

TEST(NetPath, BetweenHostsItIsOnlySuspectedUnlessAFasterNetworkIsKnown) {
  const auto chance = [](const std::vector<std::string>& lines) {
    const auto findings = FindNetPath(Talking(6 * kMilli, lines).scene());
    return findings.empty() ? 1.0 : findings[0].false_alarm_probability;
  };
  EXPECT_EQ(chance({kOverSocket}), 0.05) << "of the other rank nothing is known";
  EXPECT_EQ(chance({kOverSocket, "@hostB " + kBack}), 0.05) << "a cluster with Ethernet alone";
  EXPECT_LT(chance({kOverSocket, "@hostB " + kBack, "NCCL_IB_DISABLE set by environment to 1."}), 0.01);
}

TEST(NetPath, TimeThatIsNoStepsOrCountedTwiceDoesNotCount) {
  TestRun twice = Talking(3 * kMilli, {kSocket, kOverSocket, kBack});
  const auto once = twice.trees.collectives;
  twice.trees.collectives.insert(twice.trees.collectives.end(), once.begin(), once.end());
  EXPECT_TRUE(FindNetPath(twice.scene()).empty()) << "two groups at the same time";
  TestRun outside = Talking(6 * kMilli, {kSocket, kOverSocket, kBack});
  for (auto& collective : outside.trees.collectives) {
    for (auto& member : collective.members) member.end += 10 * kMilli;
  }
  EXPECT_TRUE(FindNetPath(outside.scene()).empty()) << "between the steps";
}

TEST(NetPath, WhatIsHiddenBehindComputingCostsNothing) {
  TestRun hidden = Talking(6 * kMilli, {kSocket, kOverSocket, kBack});
  for (int r = 0; r < 2; ++r) {
    for (uint32_t s = 0; s < 8; ++s)
      hidden.AddSpan(r, trace::SpanKind::kKernel, "gemm", hidden.trees.steps[s].begin, 5 * kMilli);
  }
  EXPECT_TRUE(FindNetPath(hidden.scene()).empty());
}

TEST(NetPath, OneConditionAloneProvesNothing) {
  // Transfers that take little of the step.
  EXPECT_TRUE(FindNetPath(Talking(kMilli, {kSocket, kOverSocket, kBack}).scene()).empty());
  // NCCL names a network, but the ranks exchange data without it.
  EXPECT_TRUE(
      FindNetPath(
          Talking(6 * kMilli, {kSocket, "Using network Socket", "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM"}).scene())
          .empty());
  // Some use a faster one.
  EXPECT_TRUE(
      FindNetPath(
          Talking(6 * kMilli, {kOverSocket, kBack, "Channel 00/0 : 1[1] -> 2[0] [send] via NET/IB/0/GDRDMA"}).scene())
          .empty());
  // A job on processors has nothing faster.
  EXPECT_TRUE(FindNetPath(Talking(6 * kMilli, {kSocket, kOverSocket, kBack}, false).scene()).empty());
  EXPECT_TRUE(FindNetPath(Talking(6 * kMilli, {}).scene()).empty());
}

}  // namespace
}  // namespace teller::locate
