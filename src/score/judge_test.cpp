#include "score/judge.hpp"

#include <gtest/gtest.h>

namespace teller::score {
namespace {

using base::kMilli;

Truth SlowOperatorOnRank1() {
  Truth truth;
  truth.label.is_fault = true;
  truth.label.fault = trace::FaultClass::kKernelRegression;
  truth.label.accepted = {trace::FaultClass::kStragglerRank};
  truth.label.world_size = 2;
  truth.label.culprit =
      inject::LabelCulprit{.rank = 1, .process = {}, .layer = "op", .op = "aten::mm", .module = {}, .function = {}};
  truth.label.window = inject::Interval{200 * kMilli, 300 * kMilli};
  truth.accepted_ops = {"aten::mm"};
  truth.steps_told = true;
  truth.abnormal = {{{200 * kMilli, 300 * kMilli}, {200 * kMilli, 300 * kMilli}}};
  return truth;
}

/// Four steps of 100 ms on each of two ranks.
std::vector<ReadStep> TwoRanks() {
  std::vector<ReadStep> steps;
  for (int64_t rank = 0; rank < 2; ++rank) {
    for (uint32_t i = 0; i < 4; ++i)
      steps.push_back({.rank = rank,
                       .index = i,
                       .kind = "decode",
                       .begin = i * 100 * kMilli,
                       .end = (i + 1) * 100 * kMilli,
                       .gap = 0});
  }
  return steps;
}

Answer Abnormal(std::vector<Candidate> candidates) {
  Answer answer;
  answer.status = AnswerStatus::kAbnormal;
  answer.confidence = 0.9;
  answer.candidates = std::move(candidates);
  return answer;
}

TEST(Judge, RightWhenClassRankAndOperatorAre) {
  Answer answer = Abnormal({{.rank = 1, .op = "aten::mm", .fault_class = "STRAGGLER_RANK"}});
  answer.steps = {{6, 1}};  // step 2 of rank 1
  const Judged j = Judge(SlowOperatorOnRank1(), TwoRanks(), &answer);
  EXPECT_TRUE(j.right) << j.loss;
  EXPECT_EQ(j.loss, "");
  EXPECT_EQ(j.op_place, 1u);
  EXPECT_EQ(j.rank_place, 1u);
  EXPECT_EQ(j.counted_class, "KERNEL_REGRESSION");
}

TEST(Judge, WhoIsOnlySuspectedIsNoVerdictOfWhatARepairSaves) {
  const Answer answer =
      Abnormal({{.rank = 0, .fault_class = "STRAGGLER_RANK"},
                {.rank = 1, .op = "aten::mm", .fault_class = "KERNEL_REGRESSION", .below_threshold = true}});
  const Judged j = Judge(SlowOperatorOnRank1(), TwoRanks(), &answer);
  EXPECT_EQ(j.rank_place, 2u);
  EXPECT_EQ(j.op_place, 2u);
  EXPECT_EQ(j.candidates.size(), 1u);
  EXPECT_EQ(j.said_class, "STRAGGLER_RANK");
}

TEST(Judge, WhoIsSuspectedInACaseCalledNormalHasAPlace) {
  Answer answer =
      Abnormal({{.rank = 1, .op = "aten::mm", .fault_class = "KERNEL_REGRESSION", .below_threshold = true}});
  answer.status = AnswerStatus::kNormal;
  const Judged j = Judge(SlowOperatorOnRank1(), TwoRanks(), &answer);
  EXPECT_EQ(j.rank_place, 1u);
  EXPECT_EQ(j.op_place, 1u);
  EXPECT_EQ(j.loss, "missed");
  EXPECT_TRUE(j.candidates.empty());
}

TEST(Judge, EachWayToBeWrongHasItsReason) {
  const Truth truth = SlowOperatorOnRank1();
  const auto loss = [&](const Answer* answer) { return Judge(truth, TwoRanks(), answer).loss; };
  EXPECT_EQ(loss(nullptr), "no answer");
  Answer answer;
  EXPECT_EQ(loss(&answer), "abstained");
  answer.status = AnswerStatus::kNormal;
  EXPECT_EQ(loss(&answer), "missed");
  answer = Abnormal({{.rank = 1, .op = "aten::mm", .fault_class = "PROC_DEATH"}});
  EXPECT_EQ(loss(&answer), "wrong class");
  EXPECT_EQ(Judge(truth, TwoRanks(), &answer).loss_what, "KERNEL_REGRESSION called PROC_DEATH");
  answer = Abnormal({{.rank = 0, .op = "aten::mm", .fault_class = "STRAGGLER_RANK"}});
  EXPECT_EQ(loss(&answer), "wrong rank");
  answer = Abnormal({{.rank = 1, .op = "aten::add", .fault_class = "STRAGGLER_RANK"},
                     {.rank = 1, .op = "aten::mm", .fault_class = "STRAGGLER_RANK"}});
  EXPECT_EQ(loss(&answer), "wrong operator");
  EXPECT_EQ(Judge(truth, TwoRanks(), &answer).op_place, 2u);
  answer = Abnormal({{.rank = 1, .op = "aten::mm", .fault_class = "STRAGGLER_RANK"}});
  answer.steps = {{5, 1}};  // a healthy one
  EXPECT_EQ(loss(&answer), "wrong step");
  EXPECT_TRUE(Judge(truth, TwoRanks(), &answer).right);
}

TEST(Judge, SuspectsOfACaseThatIsCalledNormalAreRankedButMissed) {
  Answer answer = Abnormal({{.rank = 1, .op = "aten::mm", .fault_class = "STRAGGLER_RANK"}});
  answer.status = AnswerStatus::kNormal;
  const Judged j = Judge(SlowOperatorOnRank1(), TwoRanks(), &answer);
  EXPECT_EQ(j.rank_place, 1u);
  EXPECT_EQ(j.op_place, 1u);
  EXPECT_EQ(j.loss, "missed");
  EXPECT_EQ(j.counted_class, "NOT_A_FAULT");
  EXPECT_TRUE(j.candidates.empty());
}

TEST(Judge, AlarmOnAControlIsALoss) {
  Truth truth;
  truth.label.fault = trace::FaultClass::kNotAFault;
  truth.label.kind = "long_prefill";
  truth.steps_told = true;
  const Answer answer = Abnormal({});
  EXPECT_EQ(Judge(truth, TwoRanks(), &answer).loss, "false alarm");
  EXPECT_EQ(Judge(truth, TwoRanks(), &answer).loss_what, "long_prefill");
}

TEST(Judge, StepsOfAllRanksAreOneStepOfTheJob) {
  Answer answer = Abnormal({});
  answer.steps = {{2, 0.9}, {4, 0.7}};  // step 2 of rank 0, step 0 of rank 1
  answer.threshold = 0.5;
  const Judged j = Judge(SlowOperatorOnRank1(), TwoRanks(), &answer);
  ASSERT_EQ(j.steps.size(), 4u);
  EXPECT_TRUE(j.steps[2].abnormal && j.steps[2].flagged);
  EXPECT_TRUE(!j.steps[0].abnormal && j.steps[0].flagged);
  EXPECT_FALSE(j.steps[1].flagged || j.steps[3].flagged);
}

TEST(JudgeSteps, WhatTheFaultTouchedWithoutBeingAbnormalIsIgnored) {
  Truth truth = SlowOperatorOnRank1();
  truth.label.window = inject::Interval{200 * kMilli, 320 * kMilli};
  const auto verdicts = JudgeSteps(truth, TwoRanks());
  EXPECT_EQ(verdicts[1], StepTruth::kHealthy);
  EXPECT_EQ(verdicts[2], StepTruth::kAbnormal);
  EXPECT_EQ(verdicts[3], StepTruth::kIgnored);
}

TEST(JudgeSteps, AStepThatSomeRankNeverFinishedCountsForNobody) {
  Truth truth = SlowOperatorOnRank1();
  truth.abnormal.clear();
  truth.unfinished = {{200 * kMilli, INT64_MAX}};
  truth.label.window = inject::Interval{210 * kMilli, 211 * kMilli};
  const auto verdicts = JudgeSteps(truth, TwoRanks());
  EXPECT_EQ(verdicts[1], StepTruth::kHealthy);
  EXPECT_EQ(verdicts[2], StepTruth::kIgnored);
  EXPECT_EQ(verdicts[3], StepTruth::kIgnored);
}

TEST(JudgeSteps, FaultsThatNoTraceShowsCountNone) {
  Truth truth = SlowOperatorOnRank1();
  truth.label.visible_in = {{"log", "metrics"}};
  for (const StepTruth verdict : JudgeSteps(truth, TwoRanks())) EXPECT_EQ(verdict, StepTruth::kIgnored);
  truth.label.visible_in = {{"log", "trace"}};
  EXPECT_EQ(JudgeSteps(truth, TwoRanks())[2], StepTruth::kAbnormal);
}

TEST(JudgeSteps, FaultsWithoutToldStepsCountNone) {
  Truth truth = SlowOperatorOnRank1();
  truth.steps_told = false;
  for (const StepTruth verdict : JudgeSteps(truth, TwoRanks())) EXPECT_EQ(verdict, StepTruth::kIgnored);
}

TEST(EffectOf, IsTheFactorOverHealthySteps) {
  std::vector<ReadStep> steps = TwoRanks();
  for (ReadStep& step : steps) {
    if (step.index == 2) step.end = step.begin + 240 * kMilli;
  }
  std::vector<StepTruth> verdicts(steps.size(), StepTruth::kHealthy);
  verdicts[2] = verdicts[6] = StepTruth::kAbnormal;
  EXPECT_EQ(EffectOf(steps, verdicts), "x1.5-3");
  EXPECT_EQ(EffectOf(steps, std::vector<StepTruth>(steps.size(), StepTruth::kHealthy)), "not told");
}

TEST(SameName, LettersAndDigitsOneHoldsTheOther) {
  EXPECT_TRUE(SameName("aten::mm", "aten_mm"));
  EXPECT_TRUE(SameName("model.layers.2.mlp.down_proj", "layers.2.mlp"));
  EXPECT_FALSE(SameName("aten::mm", "aten::addmm"));
  EXPECT_FALSE(SameName("", "aten::mm"));
  EXPECT_FALSE(SameName("mm", "aten::mm"));
}

}  // namespace
}  // namespace teller::score
