#include "locate/normal.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <vector>

#include "locate/test_run.hpp"

namespace teller::locate {
namespace {

constexpr Nanos kMs = 1'000'000;

/// A process that decodes: gaps by batch, `rounds` steps of each.
struct Trace {
  trace::Trees trees;
  std::vector<StepProfile> profiles;

  void Add(int64_t batch, Nanos gap, int rounds) {
    for (int i = 0; i < rounds; ++i) {
      trace::Step step;
      step.process = trace::ProcessRow(0);
      step.kind = trace::StepKind::kDecode;
      step.index = static_cast<uint32_t>(trees.steps.size());
      step.begin = static_cast<Nanos>(trees.steps.size()) * 100 * kMs;
      step.end = step.begin + 10 * kMs;
      step.decode_requests = batch;
      step.prefill_requests = 0;
      step.new_tokens = batch;
      StepProfile profile;
      profile.step = step.index;
      profile.gap = gap + i % 5 * kMs / 20;
      trees.steps.push_back(step);
      profiles.push_back(profile);
    }
  }

  Nanos ExpectedGap(size_t step) const { return FitNormals(trees, profiles)[step].expected_gap; }
};

/// What is normal for the ranks, of which each next one calls a few operators more and takes longer.
std::map<std::pair<int, uint32_t>, Nanos> NormalsOf(const std::vector<int>& order) {
  TestRun run(3);
  run.noise = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    for (uint32_t s = 0; s < 24; ++s) {
      run.AddStep(static_cast<int>(i), s);
      run.AddSlot(SlotKey::Kind::kOp, "mm", 1e6 * (1 + order[i]) + 1e3 * s);
      run.profiles.back().op_count = static_cast<uint32_t>(100 + 4 * order[i]);
      run.trees.steps.back().rank = order[i];
    }
  }
  const auto normals = FitNormals(run.trees, run.profiles);
  std::map<std::pair<int, uint32_t>, Nanos> own;
  for (size_t s = 0; s < normals.size(); ++s)
    own[{*run.trees.steps[s].rank, run.trees.steps[s].index}] = normals[s].expected_own;
  return own;
}

TEST(Normal, TheOrderOfProcessesDoesNotMatter) {
  EXPECT_EQ(NormalsOf({0, 1, 2}), NormalsOf({1, 0, 2}));
  EXPECT_EQ(NormalsOf({0, 1, 2}), NormalsOf({2, 1, 0}));
}

TEST(Normal, AGapMayGrowWithTheBatch) {
  Trace run;
  run.Add(1, kMs, 30);
  run.Add(16, 7 * kMs / 2, 30);
  EXPECT_NEAR(static_cast<double>(run.ExpectedGap(10)), 1e6, 0.3e6);
  EXPECT_NEAR(static_cast<double>(run.ExpectedGap(50)), 3.5e6, 0.3e6);
}

TEST(Normal, AGapThatGrowsFarBeyondTheBatchIsNotNormal) {
  Trace run;
  run.Add(1, kMs, 30);
  run.Add(16, 30 * kMs, 30);
  EXPECT_LE(run.ExpectedGap(50), 5 * kMs);
}

TEST(Normal, AFewStepsOfASizeDoNotMakeTheirOwnNormal) {
  Trace run;
  run.Add(1, kMs, 30);
  run.Add(16, 3 * kMs, 3);
  EXPECT_LE(run.ExpectedGap(32), 2 * kMs);
}

TEST(Normal, HostileBatchesDoNotCrash) {
  Trace run;
  run.Add(std::numeric_limits<int64_t>::max(), kMs, 10);
  run.Add(std::numeric_limits<int64_t>::min(), kMs, 10);
  run.Add(0, std::numeric_limits<int64_t>::max() / 2, 10);
  EXPECT_GE(run.ExpectedGap(5), 0);
}

}  // namespace
}  // namespace teller::locate
