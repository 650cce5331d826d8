#include "score/answer.hpp"

#include <gtest/gtest.h>

namespace teller::score {
namespace {

trace::Suspect OnRank(int rank) {
  return {.culprit = {.rank = rank, .process = "rank" + std::to_string(rank), .op = "aten::mm"},
          .fault = trace::FaultClass::kKernelRegression};
}

TEST(AnswerOf, SuspectsComeBehindTheFindingsAndChangeNothingElse) {
  trace::Finding finding;
  finding.score = 0.3;
  finding.fault = trace::FaultClass::kRuntimePause;
  finding.culprit.rank = 2;
  finding.steps = {{.row = trace::StepRow(7), .score = 0.8}};
  trace::Diagnosis diagnosis{.status = trace::VerdictStatus::kAbnormal, .confidence = 0.7, .findings = {finding}};
  const Answer without = AnswerOf(diagnosis, "x");
  diagnosis.suspects = {OnRank(1), OnRank(0)};
  const Answer with = AnswerOf(diagnosis, "x");
  ASSERT_EQ(with.candidates.size(), 3u);
  EXPECT_EQ(with.candidates[0].rank, 2);
  EXPECT_FALSE(with.candidates[0].below_threshold);
  EXPECT_EQ(with.candidates[1].rank, 1);
  EXPECT_EQ(with.candidates[1].op, "aten::mm");
  EXPECT_EQ(with.candidates[1].fault_class, "KERNEL_REGRESSION");
  EXPECT_EQ(with.candidates[2].rank, 0);
  for (size_t i = 1; i < 3; ++i) {
    EXPECT_TRUE(with.candidates[i].below_threshold);
    EXPECT_LT(with.candidates[i].p, with.candidates[i - 1].p);
  }
  nlohmann::ordered_json rest = ToJson(with);
  rest["candidates"] = ToJson(without)["candidates"];
  EXPECT_EQ(rest, ToJson(without));
}

TEST(AnswerOf, ANormalRunStaysNormalWhoeverIsSuspected) {
  const trace::Diagnosis diagnosis{.status = trace::VerdictStatus::kNormal, .confidence = 0.9, .suspects = {OnRank(3)}};
  const Answer answer = AnswerOf(diagnosis, "x");
  EXPECT_EQ(answer.status, AnswerStatus::kNormal);
  EXPECT_EQ(answer.confidence, 0.9);
  EXPECT_TRUE(answer.steps.empty());
  ASSERT_EQ(answer.candidates.size(), 1u);
  EXPECT_EQ(answer.candidates[0].rank, 3);
}

}  // namespace
}  // namespace teller::score
