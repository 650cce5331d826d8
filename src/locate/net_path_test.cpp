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
constexpr const char* kOther = "hostA:901:931 [1] NCCL INFO ";
constexpr const char* kOnHostB = "hostB:700:721 [0] NCCL INFO ";

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
    const size_t who = line.starts_with("@") ? line.find(' ') : 0;
    const std::string head = who == 0 ? kHead : line.starts_with("@hostB") ? kOnHostB : kOther;
    text += head + line.substr(who == 0 ? 0 : who + 1) + "\n";
  }
  run.store.files.emplace_back();
  auto source = base::OpenMemory(text);
  EXPECT_TRUE(ingest::ReadLog(*source, trace::FileRow(0), run.store, {}).ok());
  return run;
}

const std::string kSocket = "NET/Socket : Using [0]eth0:10.0.0.11<0>";
const std::string kOverSocket = "Channel 00/0 : 0[0] -> 1[1] [send] via NET/Socket/0";
const std::string kBack = "Channel 00/0 : 1[1] -> 0[0] [send] via NET/Socket/0";
const std::string kBackHere = "@other " + kBack;

TEST(NetPath, DataThatGoesOverTcpAndTakesMostOfTheTime) {
  const auto findings =
      FindNetPath(Talking(6 * kMilli, {kSocket, "Using network Socket", kOverSocket, kBackHere}).scene());
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
  EXPECT_EQ(chance({kOverSocket, "@hostB " + kBack, "NCCL_IB_DISABLE set by environment to 1."}), 0.05)
      << "also set where there is none";
  EXPECT_LT(chance({kOverSocket, "@hostB " + kBack, "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.11<0>"}),
            0.01);
}

TEST(NetPath, NumbersOfSeveralCommunicatorsAreNoRanks) {
  const auto chance = [](const std::vector<std::string>& lines) {
    const auto findings = FindNetPath(Talking(6 * kMilli, lines).scene());
    return findings.empty() ? 1.0 : findings[0].false_alarm_probability;
  };
  const std::string world = "Channel 00/0 : 1[1] -> 2[0] [send] via NET/Socket/0";
  const std::string pipeline = "Channel 00/0 : 2[0] -> 1[0] [send] via NET/Socket/0";
  EXPECT_EQ(chance({world, pipeline}), 0.05) << "one process speaks for 1 and for 2";
  EXPECT_EQ(chance({kOverSocket, kBack}), 0.05) << "one process cannot be both ends";
  EXPECT_EQ(chance({world, "@hostB Channel 00/0 : 1[1] -> 2[0] [receive] via NET/Socket/0",
                    "@other Channel 00/0 : 2[0] -> 1[0] [send] via NET/Socket/0"}),
            0.05)
      << "two processes speak for 2";
}

TEST(NetPath, HostsOfOneNameWithOtherAddressesAreNotOne) {
  const auto chance = [](const std::string& address) {
    const auto findings = FindNetPath(
        Talking(6 * kMilli, {kSocket, kOverSocket, "@other NET/Socket : Using [0]eth0:" + address, "@other " + kBack})
            .scene());
    return findings.empty() ? 1.0 : findings[0].false_alarm_probability;
  };
  EXPECT_LT(chance("10.0.0.11<0>"), 0.01);
  EXPECT_EQ(chance("10.0.0.12<0>"), 0.05);
}

TEST(NetPath, TimeThatIsNoStepsOrCountedTwiceDoesNotCount) {
  TestRun twice = Talking(3 * kMilli, {kSocket, kOverSocket, kBackHere});
  const auto once = twice.trees.collectives;
  twice.trees.collectives.insert(twice.trees.collectives.end(), once.begin(), once.end());
  EXPECT_TRUE(FindNetPath(twice.scene()).empty()) << "two groups at the same time";
  TestRun outside = Talking(6 * kMilli, {kSocket, kOverSocket, kBackHere});
  for (auto& collective : outside.trees.collectives) {
    for (auto& member : collective.members) member.end += 10 * kMilli;
  }
  EXPECT_TRUE(FindNetPath(outside.scene()).empty()) << "between the steps";
}

TEST(NetPath, WhatIsHiddenBehindComputingCostsNothing) {
  TestRun hidden = Talking(6 * kMilli, {kSocket, kOverSocket, kBackHere});
  for (int r = 0; r < 2; ++r) {
    for (uint32_t s = 0; s < 8; ++s)
      hidden.AddSpan(r, trace::SpanKind::kKernel, "gemm", hidden.trees.steps[s].begin, 5 * kMilli);
  }
  EXPECT_TRUE(FindNetPath(hidden.scene()).empty());
}

TEST(NetPath, OneConditionAloneProvesNothing) {
  // Transfers that take little of the step.
  EXPECT_TRUE(FindNetPath(Talking(kMilli, {kSocket, kOverSocket, kBackHere}).scene()).empty());
  // NCCL names a network, but the ranks exchange data without it.
  EXPECT_TRUE(
      FindNetPath(
          Talking(6 * kMilli, {kSocket, "Using network Socket", "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM"}).scene())
          .empty());
  // Some use a faster one.
  EXPECT_TRUE(FindNetPath(Talking(6 * kMilli,
                                  {kOverSocket, kBackHere, "Channel 00/0 : 1[1] -> 2[0] [send] via NET/IB/0/GDRDMA"})
                              .scene())
                  .empty());
  // A job on processors has nothing faster.
  EXPECT_TRUE(FindNetPath(Talking(6 * kMilli, {kSocket, kOverSocket, kBackHere}, false).scene()).empty());
  EXPECT_TRUE(FindNetPath(Talking(6 * kMilli, {}).scene()).empty());
}

}  // namespace
}  // namespace teller::locate
