#include "locate/missing.hpp"

#include <gtest/gtest.h>

namespace teller::locate {
namespace {

/// One traced process whose steps take the given times in milliseconds; all of them were judged.
struct Traced {
  trace::Store store;
  trace::Trees trees;
  std::vector<StepNormal> normals;

  explicit Traced(const std::vector<int>& times) {
    store.processes.resize(1);
    store.categories = {{"cpu_op", trace::SpanKind::kOp}};
    store.spans.category.push_back(0);
    store.spans.begin.push_back(0);
    store.spans.duration.push_back(base::kMilli);
    store.spans.name.push_back(store.strings.Intern("aten::mm"));
    store.spans.track.push_back(trace::TrackRow(0));
    store.tracks.push_back({.process = trace::ProcessRow(0), .first_span = 0, .span_count = 1});
    Nanos now = 0;
    for (const int time : times) {
      trace::Step step;
      step.process = trace::ProcessRow(0);
      step.begin = now;
      step.end = now += time * base::kMilli;
      trees.steps.push_back(step);
      normals.push_back({.judged = true});
    }
  }
  std::vector<std::string> Missing() const { return WhatIsMissing(store, trees, normals); }
};

TEST(Missing, LongStepsOfUnknownSizeAllowNoVerdict) {
  Traced run({10, 11, 10, 90, 10, 11, 95, 10});
  ASSERT_EQ(run.Missing().size(), 1u);
  EXPECT_NE(run.Missing().front().find("25 % of the steps"), std::string::npos) << run.Missing().front();
  // Once their sizes are told the comparison with steps of their size has spoken.
  for (auto& step : run.trees.steps) step.new_tokens = 4;
  EXPECT_TRUE(run.Missing().empty());
}

TEST(Missing, StepsAlikeAreNormalWithoutSizes) {
  EXPECT_TRUE(Traced({10, 11, 10, 12, 10, 11, 14, 10}).Missing().empty());
  EXPECT_TRUE(Traced({10, 11, 10, 90, 10, 11, 12, 10}).Missing().empty());  // one alone
  // Two that are long and cost little of all the time: a busy machine.
  std::vector<int> many(200, 10);
  many[50] = many[90] = 35;
  EXPECT_TRUE(Traced(many).Missing().empty());
}

TEST(Missing, StepsThatNobodyJudgedAllowNoVerdict) {
  Traced run({10, 11});
  for (auto& normal : run.normals) normal.judged = false;
  ASSERT_EQ(run.Missing().size(), 1u);
  EXPECT_NE(run.Missing().front().find("too few steps"), std::string::npos);
}

TEST(Missing, ARankThatWasNotTracedMatters) {
  Traced run({10, 10, 10, 10, 10, 40});  // told sizes: only the absent rank is in the way
  run.store.processes[0].rank = 0;
  run.store.processes[0].world_size = 2;
  for (auto& step : run.trees.steps) step.new_tokens = 1;
  ASSERT_EQ(run.Missing().size(), 1u);
  EXPECT_NE(run.Missing().front().find("traces of 1 of 2 ranks"), std::string::npos);
  run.trees.steps.back().end = run.trees.steps.back().begin + 10 * base::kMilli;
  EXPECT_TRUE(run.Missing().empty());
}

}  // namespace
}  // namespace teller::locate
