#include "locate/suspects.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "locate/test_run.hpp"

namespace teller::locate {
namespace {

using trace::FaultClass;
using trace::Suspect;

constexpr uint32_t kSteps = 24;

/// What is odd about one rank from step 10 to 15: not enough for a finding.
struct Oddity {
  int rank = -1;
  double mm = 1;    ///< times the usual
  double all = 1;   ///< times the usual, of every operator
  double host = 1;  ///< host time beside a collective
};

/// Three ranks, taken in `order`, that compute three operators a step and wait for each other.
TestRun RunWith(const Oddity& odd, std::vector<int> order = {0, 1, 2}) {
  TestRun run(3);
  for (size_t i = 0; i < order.size(); ++i) run.store.processes[i].rank = order[i];
  for (size_t i = 0; i < order.size(); ++i) {
    run.rng = base::Rng(100 + static_cast<uint64_t>(order[i]));
    for (uint32_t s = 0; s < kSteps; ++s) {
      const bool now = order[i] == odd.rank && s >= 10 && s < 16;
      const double all = now ? odd.all : 1;
      run.AddStep(static_cast<int>(i), s).rank = static_cast<int>(i);
      run.AddSlot(SlotKey::Kind::kOp, "aten::mm", 600e3, now ? odd.mm * all : 1);
      run.AddSlot(SlotKey::Kind::kOp, "aten::add", 300e3, all);
      run.AddSlot(SlotKey::Kind::kOp, "aten::silu", 200e3, all);
      run.AddSlot(SlotKey::Kind::kHost, "gloo:all_reduce", 2000e3, now ? odd.host : 1);
      run.profiles.back().slots.back().waits = true;
      run.trees.steps.back().rank = order[i];
    }
  }
  return run;
}

std::vector<Suspect> Find(const TestRun& run, Unproved unproved = {},
                          const std::vector<trace::Finding>& findings = {}) {
  return FindSuspects(run.scene(), std::move(unproved), findings, 5);
}

TEST(Suspects, TheOperatorThatIsALittleSlowerForAWhileComesFirst) {
  const auto suspects = Find(RunWith({.rank = 1, .mm = 1.5}));
  ASSERT_FALSE(suspects.empty());
  const Suspect& first = suspects.front();
  EXPECT_EQ(first.culprit.rank, 1);
  EXPECT_EQ(first.culprit.op, "aten::mm");
  EXPECT_EQ(first.fault, FaultClass::kKernelRegression);
  EXPECT_FALSE(first.false_alarm_probability.has_value());
  EXPECT_GT(first.lost, 6 * 200 * base::kMicro);
  ASSERT_FALSE(first.steps.empty());
  EXPECT_GE(first.steps.front().index, 10u);
  EXPECT_LT(first.steps.front().index, 16u);
  EXPECT_NE(first.text.find("rank 1, aten::mm"), std::string::npos) << first.text;
}

TEST(Suspects, ARankThatIsALittleSlowerThroughoutStraggles) {
  const auto suspects = Find(RunWith({.rank = 2, .all = 1.15}));
  ASSERT_FALSE(suspects.empty());
  EXPECT_EQ(suspects.front().culprit.rank, 2);
  EXPECT_EQ(suspects.front().fault, FaultClass::kStragglerRank);
}

TEST(Suspects, WhoOnlyWaitsForOthersIsNoSuspect) {
  const auto waits = Find(RunWith({.rank = 0, .host = 3}));
  const auto calm = Find(RunWith({}));
  ASSERT_EQ(waits.size(), calm.size());
  for (size_t i = 0; i < calm.size(); ++i) EXPECT_EQ(waits[i].text, calm[i].text);
}

TEST(Suspects, WhomAFindingNamesIsNoSuspect) {
  const TestRun run = RunWith({.rank = 1, .mm = 1.5});
  trace::Finding finding;
  finding.culprit = Find(run).front().culprit;
  for (const Suspect& suspect : Find(run, {}, {finding})) EXPECT_NE(suspect.culprit.rank, 1);
}

TEST(Suspects, WhatHappensDuringAFindingIsItsDamage) {
  const TestRun run = RunWith({.rank = 1, .mm = 1.5});
  trace::Finding finding;
  finding.culprit.rank = 0;
  finding.onset = run.trees.steps[10].begin;
  finding.end = run.trees.steps[15].end;
  for (const Suspect& suspect : Find(run, {}, {finding}))
    EXPECT_FALSE(suspect.culprit.rank == 1 && suspect.culprit.op == "aten::mm");
}

TEST(Suspects, TheOrderOfTheFilesDoesNotMatter) {
  for (const Oddity& odd : {Oddity{}, Oddity{.rank = 1, .mm = 1.5}, Oddity{.rank = 2, .all = 1.15}}) {
    const auto one = Find(RunWith(odd));
    const auto other = Find(RunWith(odd, {2, 0, 1}));
    ASSERT_EQ(one.size(), other.size());
    for (size_t i = 0; i < one.size(); ++i) {
      EXPECT_EQ(one[i].text, other[i].text);
      EXPECT_EQ(one[i].culprit.rank, other[i].culprit.rank);
      EXPECT_EQ(one[i].fault, other[i].fault);
    }
  }
}

TEST(Suspects, ClaimsThatChanceExplainsComeFirstAndSayHowLikely) {
  const TestRun run = RunWith({});
  Unproved unproved;
  for (const double p : {0.3, 0.05, 0.9}) {
    Hypothesis claim{.trouble = Trouble::kStarvation, .process = trace::ProcessRow(p > 0.1 ? 2u : 0u)};
    claim.rank = p > 0.1 ? 2 : 0;
    const uint32_t step = kSteps * claim.process.value() + 3;
    claim.steps = {step, step + 1};
    claim.lost_in = {base::kMilli, base::kMilli};
    claim.lost = 2 * base::kMilli;
    claim.false_alarm = p;
    unproved.claims.push_back(claim);
  }
  const auto suspects = Find(run, unproved);
  ASSERT_GE(suspects.size(), 2u);
  EXPECT_EQ(suspects[0].culprit.rank, 0);
  EXPECT_EQ(suspects[0].false_alarm_probability, 0.05);
  EXPECT_NE(suspects[0].text.find("5 of 100"), std::string::npos) << suspects[0].text;
  EXPECT_EQ(suspects[1].culprit.rank, 2);
  EXPECT_EQ(suspects[1].false_alarm_probability, 0.3);
}

TEST(Suspects, SayAlsoSmallChances) {
  const TestRun run = RunWith({});
  for (const auto& [p, text] : {std::pair(0.07, "in 7 of 100)"),
                                {0.01, "in 1 of 100)"},
                                {0.005, "in 5 of 1000)"},
                                {0.00999, "in 1 of 100)"},
                                {1e-6, "in 1 of 1000000)"},
                                {0.0, "in less than 1 of 1000000000)"}}) {
    trace::Finding finding{.false_alarm_probability = p};
    finding.culprit.rank = 2;
    finding.cost = base::kMilli;
    const auto suspects = Find(run, {.claims = {}, .findings = {finding}});
    ASSERT_FALSE(suspects.empty());
    EXPECT_NE(suspects.front().text.find(text), std::string::npos) << suspects.front().text;
  }
}

TEST(Suspects, WithoutTimeAndStepsThereIsNothingToSay) {
  trace::Finding finding{.false_alarm_probability = 0.02};
  finding.culprit.rank = 2;
  for (const Suspect& suspect : Find(RunWith({}), {.claims = {}, .findings = {finding}}))
    EXPECT_FALSE(suspect.false_alarm_probability.has_value()) << suspect.text;
}

TEST(Suspects, WhatALogSaysIsQuoted) {
  trace::Finding finding{.false_alarm_probability = 0.05, .fault = FaultClass::kGpuHwFault};
  finding.evidence.push_back({.id = "E1", .text = "NVRM: Xid 13\nmore"});
  const auto of = [&] { return Find(RunWith({}), {.claims = {}, .findings = {finding}}).at(0); };
  EXPECT_EQ(of().text, "\"NVRM: Xid 13\" (a healthy run shows as much in 5 of 100)");
  finding.culprit.rank = 2;
  EXPECT_EQ(of().text, "rank 2: \"NVRM: Xid 13\" (a healthy run shows as much in 5 of 100)");
}

TEST(Suspects, TakesOutOfAListWhatIsNotProved) {
  std::vector<trace::Finding> findings(3);
  findings[0].false_alarm_probability = 0.001;
  findings[1].false_alarm_probability = 0.01;
  findings[2].false_alarm_probability = 0.0001;
  Unproved unproved;
  unproved.TakeFrom(findings, 0.01);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[1].false_alarm_probability, 0.0001);
  ASSERT_EQ(unproved.findings.size(), 1u);
}

TEST(Suspects, TwoThatNameNobodyAreNotTheSame) {
  const TestRun run = RunWith({});
  trace::Finding known;
  known.fault = FaultClass::kGpuHwFault;
  known.culprit.layer = "device";
  Unproved unproved;
  for (const FaultClass fault : {FaultClass::kNetLinkFault, FaultClass::kGpuHwFault}) {
    trace::Finding finding;
    finding.fault = fault;
    finding.culprit.layer = fault == FaultClass::kNetLinkFault ? "network" : "device";
    finding.false_alarm_probability = 0.1;
    finding.cost = base::kMilli;
    unproved.findings.push_back(finding);
  }
  const auto suspects = Find(run, unproved, {known});
  ASSERT_FALSE(suspects.empty());
  EXPECT_EQ(suspects[0].fault, FaultClass::kNetLinkFault);
  EXPECT_TRUE(std::none_of(suspects.begin(), suspects.end(),
                           [](const Suspect& s) { return s.fault == FaultClass::kGpuHwFault; }));
}

TEST(Suspects, AreBounded) {
  const TestRun run = RunWith({.rank = 1, .mm = 1.5});
  EXPECT_LE(Find(run).size(), 5u);
  EXPECT_EQ(FindSuspects(run.scene(), {}, {}, 1).size(), 1u);
  EXPECT_TRUE(FindSuspects(run.scene(), {}, {}, 0).empty());
}

TEST(Suspects, TooFewStepsSayNothing) {
  TestRun run(1);
  for (uint32_t s = 0; s < 5; ++s) {
    run.AddStep(0, s);
    run.AddSlot(SlotKey::Kind::kOp, "aten::mm", 600e3, s == 3 ? 2 : 1);
  }
  EXPECT_TRUE(Find(run).empty());
}

}  // namespace
}  // namespace teller::locate
