#include <gtest/gtest.h>

#include "locate/log_cause.hpp"

namespace teller::locate {
namespace {

using trace::CommRecord;
using trace::FaultClass;

/// Dumps of `world` ranks in one group.
class Dumps {
 public:
  explicit Dumps(int world) : world_(world) {}
  Dumps& Add(int rank, int64_t sequence, std::string state = "scheduled", std::string op = "nccl:all_reduce",
             std::string group = "0 default_pg") {
    CommRecord r;
    r.rank = rank;
    r.group = std::move(group);
    r.members = static_cast<int32_t>(store_.comm_groups.size());
    auto& members = store_.comm_groups.emplace_back();
    for (int i = 0; i < world_; ++i) members.push_back(i);
    r.sequence = sequence;
    r.state = std::move(state);
    r.op = std::move(op);
    r.sizes = "[[4]]";
    r.created = 1'000'000'000 + sequence;
    store_.comm_records.push_back(std::move(r));
    return *this;
  }
  LogCauses Find() const { return FindCommRecordCauses(store_); }

 private:
  int world_;
  trace::Store store_;
};

TEST(CommRecordCause, NamesTheRankThatDidNotArrive) {
  const auto causes = Dumps(3).Add(0, 7).Add(1, 6, "completed").Add(2, 7).Find();
  ASSERT_EQ(causes.findings.size(), 1u);
  EXPECT_EQ(causes.findings[0].culprit.rank, 1);
  EXPECT_EQ(causes.findings[0].fault, FaultClass::kCollDivergence);
}

TEST(CommRecordCause, NamesTheRankWithoutADump) {
  const auto causes = Dumps(3).Add(0, 7).Add(2, 7).Find();
  ASSERT_EQ(causes.findings.size(), 1u);
  EXPECT_EQ(causes.findings[0].culprit.rank, 1);
  EXPECT_EQ(causes.findings[0].fault, FaultClass::kProcDeath);
}

TEST(CommRecordCause, NamesTheRankThatNeverFinished) {
  const auto causes = Dumps(3).Add(0, 9).Add(1, 7).Add(1, 8).Add(1, 9).Add(2, 9).Find();
  ASSERT_EQ(causes.findings.size(), 1u);
  EXPECT_EQ(causes.findings[0].culprit.rank, 1);
  EXPECT_EQ(causes.findings[0].fault, FaultClass::kGpuHwFault);
}

TEST(CommRecordCause, DumpsOfDifferentMomentsAccuseNobody) {
  // Rank 1 has finished what rank 0 had not even issued when its dump was taken: the job was running.
  EXPECT_TRUE(Dumps(2)
                  .Add(0, 20, "started")
                  .Add(1, 20, "completed")
                  .Add(1, 21, "completed")
                  .Add(1, 23, "completed")
                  .Find()
                  .findings.empty());
}

TEST(CommRecordCause, ARankCaughtInTheLastOperationIsNotAccused) {
  EXPECT_TRUE(Dumps(2).Add(0, 20, "started").Add(1, 20, "completed").Find().findings.empty());
}

TEST(CommRecordCause, ARootThatBroadcastAheadIsNoProofOfDifferentMoments) {
  const auto causes = Dumps(3)
                          .Add(0, 7, "completed", "nccl:broadcast")
                          .Add(0, 8)
                          .Add(1, 6, "completed")
                          .Add(2, 7, "completed", "nccl:broadcast")
                          .Add(2, 8)
                          .Find();
  ASSERT_FALSE(causes.findings.empty());
  EXPECT_EQ(causes.findings[0].culprit.rank, 1);
}

TEST(CommRecordCause, AWaiterInAnotherGroupIsAVictim) {
  // Rank 1 has not arrived in group A because it waits for rank 2 in group B.
  Dumps dumps(3);
  dumps.Add(0, 7, "scheduled", "nccl:all_reduce", "A").Add(1, 6, "completed", "nccl:all_reduce", "A");
  dumps.Add(2, 6, "completed", "nccl:all_reduce", "A").Add(1, 3, "scheduled", "nccl:all_reduce", "B");
  dumps.Add(0, 3, "scheduled", "nccl:all_reduce", "B").Add(2, 2, "completed", "nccl:all_reduce", "B");
  const auto causes = dumps.Find();
  ASSERT_EQ(causes.findings.size(), 1u);
  EXPECT_EQ(causes.findings[0].culprit.rank, 2);
}

TEST(CommRecordCause, RanksThatWaitForEachOtherAreADivergenceOfNobodyAlone) {
  Dumps dumps(2);
  dumps.Add(0, 7, "scheduled", "nccl:all_reduce", "A").Add(1, 6, "completed", "nccl:all_reduce", "A");
  dumps.Add(1, 3, "scheduled", "nccl:all_reduce", "B").Add(0, 2, "completed", "nccl:all_reduce", "B");
  const auto causes = dumps.Find();
  ASSERT_EQ(causes.findings.size(), 1u);
  EXPECT_EQ(causes.findings[0].fault, FaultClass::kCollDivergence);
  EXPECT_FALSE(causes.findings[0].culprit.rank.has_value());
}

TEST(CommRecordCause, NamesTheOddOperation) {
  const auto causes = Dumps(3).Add(0, 7).Add(1, 7, "scheduled", "nccl:broadcast").Add(2, 7).Find();
  ASSERT_EQ(causes.findings.size(), 1u);
  EXPECT_EQ(causes.findings[0].culprit.rank, 1);
  EXPECT_EQ(causes.findings[0].fault, FaultClass::kCollDivergence);
}

TEST(CommRecordCause, FirstCollectiveOfAllBlamesThePathAndNobody) {
  const auto causes = Dumps(2).Add(0, 1).Add(1, 1).Find();
  ASSERT_EQ(causes.findings.size(), 1u);
  EXPECT_EQ(causes.findings[0].fault, FaultClass::kCollFirstOpHang);
  EXPECT_FALSE(causes.findings[0].culprit.rank.has_value());
}

TEST(CommRecordCause, AllDoneOrAllAlikeNamesNobody) {
  EXPECT_TRUE(Dumps(2).Add(0, 7, "completed").Add(1, 7, "completed").Find().findings.empty());
  EXPECT_TRUE(Dumps(2).Add(0, 7).Add(1, 7).Find().findings.empty());
  EXPECT_TRUE(Dumps(4).Add(2, 7).Find().findings.empty());
}

}  // namespace
}  // namespace teller::locate
