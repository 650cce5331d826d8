#include "score/retest.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "score/table.hpp"

namespace teller::score {
namespace {

/// Four steps on each of two ranks.
std::vector<ReadStep> TwoRanks() {
  std::vector<ReadStep> steps;
  for (int64_t rank = 0; rank < 2; ++rank) {
    for (uint32_t i = 0; i < 4; ++i) steps.push_back({.rank = rank, .index = i});
  }
  return steps;
}

Answer Accuses(std::vector<Candidate> candidates, std::vector<StepScore> steps) {
  Answer answer;
  answer.status = AnswerStatus::kAbnormal;
  answer.candidates = std::move(candidates);
  answer.steps = std::move(steps);
  return answer;
}

TEST(VerdictOf, OfTheFlaggedStepsTheAccusedRanksOwnAreTested) {
  const auto verdict = VerdictOf(
      Accuses({{.rank = 1, .op = "aten::mm"}, {.rank = 0}}, {{0, 0.6}, {7, 0.7}, {6, 0.9}, {5, 0.1}}), TwoRanks());
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->rank, 1);
  EXPECT_EQ(verdict->op, "aten::mm");
  EXPECT_EQ(verdict->steps, (std::vector<uint32_t>{6, 7}));
}

TEST(VerdictOf, WhereOnlyOthersAreFlaggedTheAccusedRanksStepsMeanwhileAre) {
  auto steps = TwoRanks();
  steps.push_back({.rank = {}, .index = 1});  // of a process without a rank: another series
  const auto verdict = VerdictOf(Accuses({{.rank = 1}}, {{0, 0.6}, {2, 0.9}, {8, 0.9}}), steps);
  EXPECT_EQ(verdict->steps, (std::vector<uint32_t>{4, 6}));
}

TEST(VerdictOf, WithoutARankStepsStayAsFlagged) {
  const auto verdict = VerdictOf(Accuses({{.op = "aten::mm"}}, {{2, 0.9}, {6, 0.8}, {900, 1}}), TwoRanks());
  EXPECT_EQ(verdict->steps, (std::vector<uint32_t>{2, 6}));
}

TEST(VerdictOf, WhoIsNotAccusedIsNoVerdict) {
  EXPECT_FALSE(VerdictOf(Accuses({}, {{0, 1}}), TwoRanks()).has_value());
  EXPECT_FALSE(VerdictOf(Accuses({{.process = "engine"}}, {{0, 1}}), TwoRanks()).has_value());
  EXPECT_FALSE(VerdictOf(Accuses({{.rank = 1, .below_threshold = true}}, {{0, 1}}), TwoRanks()).has_value());
  Answer answer = Accuses({{.rank = 1}}, {});
  EXPECT_TRUE(VerdictOf(answer, TwoRanks())->steps.empty());
  answer.status = AnswerStatus::kNormal;
  EXPECT_FALSE(VerdictOf(answer, TwoRanks()).has_value());
  EXPECT_TRUE(VerdictOf(Accuses({{.rank = 4'294'967'297}}, {{4, 1}}), TwoRanks())->steps.empty());
}

TEST(Retest, WhatCannotBeReadIsSaid) {
  const auto folder = std::filesystem::temp_directory_path() / ("teller_retest_" + std::to_string(getpid()));
  Truth truth;
  truth.folder = (folder / "no-case").string();
  const Verdict verdict{.rank = 1, .op = "aten::mm", .steps = {1}};
  const auto told = Retest({{.truth = &truth, .name = "case-1", .verdicts = {std::nullopt, verdict}}},
                           (folder / "work").string(), {});
  ASSERT_TRUE(told);
  EXPECT_NE(told->front().problem, "");
  ASSERT_EQ(told->front().verdicts.size(), 2u);
  EXPECT_FALSE(told->front().verdicts[1].asked_rank) << "what failed counts nowhere";
  EXPECT_FALSE(std::filesystem::exists(folder / "work" / "case-1"));
  std::filesystem::remove_all(folder);
}

Truth Fault() {
  Truth fault;
  fault.label.is_fault = true;
  fault.label.visible_in = {"trace"};
  return fault;
}

TEST(CompareRetests, CountsByWhatTheTestSays) {
  const Truth fault = Fault();
  const Truth control;
  const std::vector<const Truth*> truths{&fault, &fault, &fault, &control};
  std::vector<Judged> judged(4);
  for (Judged& j : judged) j.retested.asked_rank = j.retested.asked_op = true;
  judged[0].rank_place = judged[0].op_place = 1;
  judged[0].retested.rank = judged[0].retested.op = 0.9;
  judged[1].rank_place = 2;
  judged[1].op_place = 1;  // the right operator, of the wrong rank
  judged[1].retested.rank = judged[1].retested.op = 0.1;
  judged[2].rank_place = 0;
  judged[3].rank_place = 1;
  judged[3].retested.rank = 0.9;
  const auto rows = CompareRetests(truths, {&judged, &judged}, {.resamples = 50});
  ASSERT_EQ(rows.size(), 6u);
  const auto counts = [&](size_t g) { return std::pair(rows[g].verdicts, rows[g].right); };
  using Counts = std::pair<size_t, size_t>;
  EXPECT_EQ(counts(0), Counts(2, 2)) << "horizontal, confirmed; the control does not count";
  EXPECT_EQ(counts(1), Counts(2, 0));
  EXPECT_EQ(counts(2), Counts(2, 0)) << "not told";
  EXPECT_EQ(counts(3), Counts(2, 2)) << "vertical";
  EXPECT_EQ(counts(4), Counts(2, 0));
  EXPECT_EQ(rows[0].interval.low, 1.0);
  EXPECT_EQ(rows[1].interval.high, 0.0);
}

TEST(CompareRetests, WhatWasNotTestedCountsNowhere) {
  const Truth fault = Fault();
  std::vector<Judged> judged(1);
  judged[0].rank_place = judged[0].op_place = 1;
  EXPECT_TRUE(CompareRetests({&fault}, {&judged}, {}).empty());
  judged[0].retested.asked_op = true;
  const auto rows = CompareRetests({&fault}, {&judged}, {});
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows[2].verdicts, 0u) << "an operator without a rank says nothing of ranks";
  EXPECT_EQ(rows[5].verdicts, 1u);
}

}  // namespace
}  // namespace teller::score
