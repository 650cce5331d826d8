#include "locate/program.hpp"

#include <gtest/gtest.h>

#include "locate/test_run.hpp"

namespace teller::locate {
namespace {

/// Two ranks; the operators of the second one's steps are chosen by `has`: (step, name).
template <class Has>
TestRun Ranks(Has has) {
  TestRun run(2);
  for (int r = 0; r < 2; ++r) {
    for (uint32_t s = 0; s < 12; ++s) {
      run.AddStep(r, s);
      for (const char* name : {"embed", "mm", "norm", "sample"}) {
        if (r == 0 ? std::string(name) != "sample" : has(s, std::string(name)))
          run.AddSlot(SlotKey::Kind::kOp, name, 400'000);
      }
    }
  }
  return run;
}

bool Same(const TestRun& run) {
  const Programs programs(run.trees, run.profiles);
  const bool same = programs.Same(trace::ProcessRow(0), trace::ProcessRow(1));
  EXPECT_EQ(same, programs.Same(trace::ProcessRow(1), trace::ProcessRow(0)));
  return same;
}

TEST(Programs, RanksThatDoTheSameAreEqual) {
  EXPECT_TRUE(Same(Ranks([](uint32_t, const std::string& name) { return name != "sample"; })));
}

TEST(Programs, AStageThatSamplesAndOneThatEmbedsAreNot) {
  EXPECT_FALSE(Same(Ranks([](uint32_t, const std::string& name) { return name != "embed"; })));
}

TEST(Programs, OneThatDoesMoreInEachStepIsNot) {
  EXPECT_FALSE(Same(Ranks([](uint32_t, const std::string&) { return true; })));
}

TEST(Programs, WhatARankDoesNowAndThenDoesNotMatter) {
  EXPECT_TRUE(Same(Ranks([](uint32_t s, const std::string& name) { return name != "sample" || s == 4; })));
}

/// Two ranks that do the same; the second one does one thing more in each step.
TestRun OneMore(SlotKey::Kind kind, double usual) {
  TestRun run(2);
  for (int r = 0; r < 2; ++r) {
    for (uint32_t s = 0; s < 12; ++s) {
      run.AddStep(r, s);
      for (const char* name : {"embed", "mm", "norm", "silu", "add"}) run.AddSlot(SlotKey::Kind::kOp, name, 400'000);
      if (r == 1) run.AddSlot(kind, "more", usual);
    }
  }
  return run;
}

TEST(Programs, WhoSamplesForAllDoesTheSame) {
  EXPECT_TRUE(Same(OneMore(SlotKey::Kind::kOp, 40'000)));
  EXPECT_FALSE(Same(OneMore(SlotKey::Kind::kOp, 800'000))) << "too much of its time";
}

TEST(Programs, AnotherKernelIsTheSameProgram) {
  EXPECT_TRUE(Same(OneMore(SlotKey::Kind::kGpu, 800'000)));
}

TEST(Programs, OneThatDoesNothingOftenMayBeTheSame) {
  TestRun run(2);
  for (int r = 0; r < 2; ++r) {
    for (uint32_t s = 0; s < 12; ++s) {
      run.AddStep(r, s);
      const char* const rare[] = {"a", "b", "c"};
      run.AddSlot(SlotKey::Kind::kOp, r == 0 ? rare[s % 3] : s < 7 ? "a" : s < 9 ? "b" : "c", 400'000);
    }
  }
  EXPECT_TRUE(Same(run));
}

TEST(Programs, ProcessesOfWhichNoOperatorIsKnownAreTakenForEqual) {
  EXPECT_TRUE(Same(Ranks([](uint32_t, const std::string&) { return false; })));
}

}  // namespace
}  // namespace teller::locate
