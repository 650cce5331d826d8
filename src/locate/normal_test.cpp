#include "locate/normal.hpp"

#include <gtest/gtest.h>

#include <limits>

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
