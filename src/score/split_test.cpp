#include "score/split.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace teller::score {
namespace {

std::vector<Truth> Cases() {
  std::vector<Truth> cases(40);
  for (size_t i = 0; i < cases.size(); ++i) {
    cases[i].label.is_fault = i % 4 != 0;
    cases[i].label.fault = i % 4 == 0   ? trace::FaultClass::kNotAFault
                           : i % 4 == 1 ? trace::FaultClass::kKvPressure
                                        : trace::FaultClass::kProcDeath;
    cases[i].label.stack = i % 3 == 0 ? "vllm" : "fsdp";
    cases[i].origin = "run" + std::to_string(i % 7);
    cases[i].source = i % 5 == 0 ? "real" : "retimed";
  }
  return cases;
}

TEST(SplitCases, NobodyIsAskedWhatHeWasTaught) {
  for (const char* how : {"none", "seed:0.5", "folds:4", "runs:3", "leave-class", "leave-stack", "sim-real"}) {
    const auto folds = SplitCases(Cases(), how, 3);
    ASSERT_TRUE(folds) << how;
    std::set<uint32_t> asked;
    for (const Fold& fold : *folds) {
      for (const uint32_t i : fold.test) {
        EXPECT_EQ(std::count(fold.train.begin(), fold.train.end(), i), 0) << how;
        EXPECT_TRUE(asked.insert(i).second) << how << " asks " << i << " twice";
      }
      EXPECT_EQ(fold.train.size() + fold.test.size(), 40u);
    }
  }
}

TEST(SplitCases, ALeftOutClassIsNotTaught) {
  const auto cases = Cases();
  const auto folds = SplitCases(cases, "leave-class", 3);
  ASSERT_TRUE(folds);
  ASSERT_EQ(folds->size(), 2u);
  for (const Fold& fold : *folds) {
    std::set<trace::FaultClass> taught;
    std::set<trace::FaultClass> asked;
    size_t controls = 0;
    for (const uint32_t i : fold.train) taught.insert(cases[i].label.fault);
    for (const uint32_t i : fold.test) {
      if (cases[i].label.is_fault) asked.insert(cases[i].label.fault);
      controls += !cases[i].label.is_fault;
    }
    ASSERT_EQ(asked.size(), 1u);
    EXPECT_EQ(taught.count(*asked.begin()), 0u);
    EXPECT_GT(controls, 0u);
  }
}

TEST(SplitCases, ARunIsNeverTaughtAndAsked) {
  const auto cases = Cases();
  const auto folds = SplitCases(cases, "runs:3", 5);
  ASSERT_TRUE(folds);
  ASSERT_EQ(folds->size(), 3u);
  for (const Fold& fold : *folds) {
    std::set<std::string> taught;
    for (const uint32_t i : fold.train) taught.insert(cases[i].origin);
    EXPECT_FALSE(fold.test.empty());
    for (const uint32_t i : fold.test) EXPECT_EQ(taught.count(cases[i].origin), 0u);
  }
}

TEST(SplitCases, EveryKindGivesItsShare) {
  const auto cases = Cases();
  const auto folds = SplitCases(cases, "seed:0.5", 9);
  ASSERT_TRUE(folds);
  EXPECT_EQ(folds->front().train.size(), 20u);
  const auto again = SplitCases(cases, "seed:0.5", 9);
  EXPECT_EQ(folds->front().train, again->front().train);
}

TEST(SplitCases, UnknownOnesAreRefused) {
  for (const char* how : {"", "half", "seed:", "seed:1", "seed:nan", "folds:1", "folds:x", "runs:0", "leave-"})
    EXPECT_FALSE(SplitCases(Cases(), how, 1)) << how;
}

}  // namespace
}  // namespace teller::score
