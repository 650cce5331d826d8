#include "score/retest.hpp"

#include <gtest/gtest.h>

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

TEST(VerdictOf, TheAccusedRanksOwnStepsAreTestedWhoeverTheyWereFlaggedFor) {
  Answer answer;
  answer.status = AnswerStatus::kAbnormal;
  answer.candidates = {{.rank = 1, .op = "aten::mm"}, {.rank = 0}};
  answer.steps = {{0, 0.6}, {2, 0.9}, {7, 0.7}, {5, 0.1}};
  const auto verdict = VerdictOf(answer, TwoRanks());
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->rank, 1);
  EXPECT_EQ(verdict->op, "aten::mm");
  EXPECT_EQ(verdict->steps, (std::vector<uint32_t>{4, 6, 7})) << "of rank 1: steps 0, 2 and 3";
}

TEST(VerdictOf, WithoutARankStepsStayAsFlagged) {
  Answer answer;
  answer.status = AnswerStatus::kAbnormal;
  answer.candidates = {{.op = "aten::mm"}};
  answer.steps = {{2, 0.9}, {6, 0.8}, {900, 1}};
  EXPECT_EQ(VerdictOf(answer, TwoRanks())->steps, (std::vector<uint32_t>{2, 6}));
}

TEST(VerdictOf, WhoIsNotAccusedIsNoVerdict) {
  Answer answer;
  answer.status = AnswerStatus::kAbnormal;
  EXPECT_FALSE(VerdictOf(answer, TwoRanks()).has_value());
  answer.candidates = {{.rank = 1, .below_threshold = true}};
  EXPECT_FALSE(VerdictOf(answer, TwoRanks()).has_value());
  answer.candidates = {{.rank = 1}};
  EXPECT_TRUE(VerdictOf(answer, TwoRanks()).has_value());
  answer.status = AnswerStatus::kNormal;
  EXPECT_FALSE(VerdictOf(answer, TwoRanks()).has_value());
}

TEST(CompareRetests, CountsByWhatTheTestSays) {
  Truth fault;
  fault.label.is_fault = true;
  fault.label.visible_in = {"trace"};
  Truth control;
  const std::vector<const Truth*> truths{&fault, &fault, &fault, &control};
  std::vector<Judged> judged(4);
  for (Judged& j : judged) j.retested.asked = true;
  judged[0].rank_place = judged[0].op_place = 1;
  judged[0].retested.rank = judged[0].retested.op = 0.9;
  judged[1].rank_place = 2;
  judged[1].retested.rank = 0.1;
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
  EXPECT_EQ(counts(4), Counts(0, 0));
  for (Judged& j : judged) j.retested.asked = false;
  EXPECT_TRUE(CompareRetests(truths, {&judged}, {}).empty());
}

}  // namespace
}  // namespace teller::score
