#include "locate/saves.hpp"

#include <gtest/gtest.h>

#include "locate/test_run.hpp"

namespace teller::locate {
namespace {

/// A rank that saves its state before some steps: the gaps take as long as given.
TestRun Saving(const std::vector<std::pair<uint32_t, Nanos>>& gaps, int64_t bytes) {
  TestRun run(1);
  Nanos at = base::kSecond;
  for (uint32_t s = 0; s < 30; ++s) {
    trace::Step& step = run.AddStep(0, s);
    Nanos gap = s == 0 ? 0 : base::kMilli;
    for (const auto& [index, length] : gaps) gap = index == s ? length : gap;
    if (gap > base::kMilli) {
      for (int part = 0; part < 4; ++part) {
        const uint32_t copy =
            run.AddSpan(0, trace::SpanKind::kCopy, "Memcpy DtoH (Device -> Pinned)", at + part * 1000, 500);
        run.store.gpu_args.Append(copy, trace::GpuArgs{.bytes = bytes / 4});
      }
    }
    step.gap_before = s == 0 ? -1 : gap;
    step.begin = at + gap;
    step.end = step.begin + 10 * base::kMilli;
    at = step.end;
  }
  run.profiles = ProfileSteps(run.store, run.trees);
  return run;
}

TEST(Saves, AGapInWhichStateIsCopiedToTheHostIsNoStall) {
  TestRun run = Saving({{8, 400 * base::kMilli}, {18, 380 * base::kMilli}}, 400 << 20);
  EXPECT_EQ(run.profiles[8].gap, 0);
  EXPECT_EQ(run.profiles[8].saved_bytes, 400 << 20);
  EXPECT_GT(run.profiles[9].gap, 0);
  EXPECT_TRUE(SearchSlowSaves(run.scene()).empty());
  std::vector<trace::Note> notes;
  NoteSaves(run.scene(), {}, notes);
  EXPECT_EQ(notes.size(), 1u);
}

TEST(Saves, AGapWithAFewBytesCopiedIsAStall) {
  const TestRun run = Saving({{8, 400 * base::kMilli}}, 4 << 10);
  EXPECT_GT(run.profiles[8].gap, 300 * base::kMilli);
}

TEST(Saves, OneThatTakesSeveralTimesAsLongIsSlowStorage) {
  const TestRun run = Saving({{6, 400 * base::kMilli}, {13, 2400 * base::kMilli}, {20, 450 * base::kMilli}}, 400 << 20);
  const auto claims = SearchSlowSaves(run.scene());
  ASSERT_EQ(claims.size(), 1u);
  EXPECT_EQ(claims[0].steps, std::vector<uint32_t>{13});
  EXPECT_LT(claims[0].false_alarm, 0.01);
  std::vector<trace::Note> notes;
  NoteSaves(run.scene(), claims, notes);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].text.find("2 times"), std::string::npos);
}

TEST(Saves, TwoThatTakeAsLongAreEachOthersUsual) {
  const TestRun run =
      Saving({{6, 400 * base::kMilli}, {13, 2400 * base::kMilli}, {20, 2400 * base::kMilli}}, 400 << 20);
  EXPECT_TRUE(SearchSlowSaves(run.scene()).empty());
}

TEST(Saves, ALargerSaveIsNotComparedWithASmallOne) {
  TestRun run = Saving({{6, 400 * base::kMilli}, {13, 2400 * base::kMilli}}, 400 << 20);
  run.profiles[13].saved_bytes *= 6;
  EXPECT_TRUE(SearchSlowSaves(run.scene()).empty());
}

}  // namespace
}  // namespace teller::locate
