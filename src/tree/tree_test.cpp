#include <gtest/gtest.h>

#include "base/rng.hpp"
#include "tree/collectives.hpp"
#include "tree/dims.hpp"
#include "tree/repetition.hpp"
#include "tree/step_name.hpp"

namespace teller::tree {
namespace {

using trace::StepKind;

TEST(StepName, ReadsVllmMarksOfBothForms) {
  const auto mixed = ReadStepName("execute_context_1(44)_generation_2(2)");
  ASSERT_TRUE(mixed.has_value());
  EXPECT_EQ(mixed->kind, StepKind::kMixed);
  EXPECT_EQ(mixed->prefill_requests, 1);
  EXPECT_EQ(mixed->decode_requests, 2);
  EXPECT_EQ(mixed->new_tokens, 46);
  const auto whole = ReadStepName("execute_8192_context_9(sq8155sk8430sqsq1sqsk2)_generation_37(sq37sk34489sqsq37)");
  ASSERT_TRUE(whole.has_value());
  EXPECT_EQ(whole->new_tokens, 8155 + 37);
  EXPECT_EQ(whole->context_tokens, 8430 + 34489);
  EXPECT_EQ(ReadStepName("execute_context_0(0)_generation_0(0)")->kind, StepKind::kEmpty);
}

TEST(StepName, ReadsSglangMarks) {
  const auto decode = ReadStepName("step[DECODE bs=32]");
  ASSERT_TRUE(decode.has_value());
  EXPECT_EQ(decode->kind, StepKind::kDecode);
  EXPECT_EQ(decode->decode_requests, 32);
  const auto extend = ReadStepName("step[EXTEND bs=15 toks=15360]");
  EXPECT_EQ(extend->kind, StepKind::kPrefill);
  EXPECT_EQ(extend->prefill_requests, 15);
  EXPECT_EQ(extend->new_tokens, 15360);
}

TEST(StepName, PhaseWordsOnlyWhereTheyOpenTheText) {
  EXPECT_EQ(ReadStepName("prefill")->kind, StepKind::kPrefill);
  EXPECT_EQ(ReadStepName("decode step 12")->kind, StepKind::kDecode);
  EXPECT_FALSE(ReadStepName("FullyShardedDataParallel._pre_forward_prefetch").has_value());
  EXPECT_FALSE(ReadStepName("model_runner: sample after decode").has_value());
  EXPECT_FALSE(ReadStepName("").has_value());
  EXPECT_FALSE(ReadStepName("execute_context_(").has_value());
}

TEST(Dims, CountsElements) {
  EXPECT_DOUBLE_EQ(ElementsOfFirstTensor("[[], [2, 1, 128], [64, 128]]"), 256);
  EXPECT_DOUBLE_EQ(ElementsOfFirstTensor("[[], []]"), 0);
  EXPECT_DOUBLE_EQ(ElementsOfFirstTensor("not dims"), 0);
  EXPECT_DOUBLE_EQ(ElementsOfFirstTensor(""), 0);
  EXPECT_LE(ElementsOfFirstTensor("[[" + std::string(400, '9') + ", 0, " + std::string(400, '9') + "]]"), 1e15);
}

TEST(Repetition, FindsThePeriodOfATokenLoop) {
  std::vector<uint32_t> sequence;
  for (int step = 0; step < 8; ++step) {
    for (const uint32_t op : {1u, 2u, 3u, 2u, 3u, 2u, 3u, 4u, 5u}) sequence.push_back(op);
  }
  EXPECT_EQ(FindPeriod(sequence), 9u);
  EXPECT_EQ(FindPeriod({1, 2, 3}), 0u);
  EXPECT_EQ(FindPeriod({}), 0u);
}

/// One gloo span per rank and collective; arrivals as given, ends together.
struct CollectiveRun {
  trace::Store store;

  explicit CollectiveRun(const std::vector<std::vector<std::pair<trace::Nanos, trace::Nanos>>>& ranks) {
    store.categories.push_back({"user_annotation", trace::SpanKind::kAnnotation});
    for (size_t r = 0; r < ranks.size(); ++r) {
      trace::Process process;
      process.file = trace::FileRow(0);
      process.rank = static_cast<int>(r);
      store.processes.push_back(process);
      trace::Track track;
      track.process = trace::ProcessRow(static_cast<uint32_t>(r));
      track.first_span = static_cast<uint32_t>(store.spans.size());
      track.span_count = static_cast<uint32_t>(ranks[r].size());
      for (const auto& [begin, end] : ranks[r]) {
        store.spans.begin.push_back(begin);
        store.spans.duration.push_back(end - begin);
        store.spans.name.push_back(store.strings.Intern("gloo:all_reduce"));
        store.spans.track.push_back(trace::TrackRow(static_cast<uint32_t>(r)));
        store.spans.category.push_back(0);
        store.spans.parent.emplace_back();
        store.spans.depth.push_back(0);
      }
      store.tracks.push_back(track);
    }
  }
};

TEST(Collectives, WaitAndTransferSumToEachRanksTime) {
  CollectiveRun run({{{100, 500}, {1000, 1100}, {2000, 2100}, {9000, 9100}},
                     {{400, 500}, {1000, 1100}, {2000, 2100}, {9000, 9100}},
                     {{150, 500}, {1050, 1100}, {2000, 2100}, {9000, 9100}}});
  trace::Trees trees;
  MatchCollectives(run.store, trees);
  ASSERT_EQ(trees.collectives.size(), 4u);
  const auto& first = trees.collectives[0];
  EXPECT_EQ(first.late_rank, 1);
  EXPECT_EQ(first.transfer, 100);
  for (const auto& member : first.members) EXPECT_EQ(member.wait + first.transfer, member.end - member.arrival);
  EXPECT_EQ(trees.collectives[1].late_rank, 2);
}

TEST(Collectives, LongTracesAreStitchedToo) {
  std::vector<std::pair<trace::Nanos, trace::Nanos>> full;
  trace::Nanos at = 0;
  for (int i = 0; i < 20'000; ++i) {
    at += 10'000 + 700 * (i % 7) + 90 * (i % 11);
    full.emplace_back(at, at + 2'000);
  }
  std::vector<std::pair<trace::Nanos, trace::Nanos>> late(full.begin() + 3, full.end());
  for (auto& [begin, end] : late) {
    begin += 5'000'000;  // another clock
    end += 5'000'000;
  }
  CollectiveRun run({full, late});
  trace::Trees trees;
  MatchCollectives(run.store, trees);
  EXPECT_EQ(trees.clock_method, "collectives");
  ASSERT_EQ(trees.collectives.size(), 19'997u);
  for (const auto& collective : trees.collectives) ASSERT_EQ(collective.members[0].end, collective.members[1].end);
}

TEST(Collectives, AProfilerThatStartedLaterIsShiftedIntoPlace) {
  std::vector<std::pair<trace::Nanos, trace::Nanos>> full;
  trace::Nanos at = 0;
  for (int i = 0; i < 40; ++i) {
    at += 10'000 + 700 * (i % 7);
    full.emplace_back(at, at + 2'000);
  }
  const std::vector<std::pair<trace::Nanos, trace::Nanos>> late(full.begin() + 3, full.end());
  CollectiveRun run({full, late});
  trace::Trees trees;
  MatchCollectives(run.store, trees);
  ASSERT_EQ(trees.collectives.size(), 37u);
  for (const auto& collective : trees.collectives) EXPECT_EQ(collective.members[0].end, collective.members[1].end);
}

/// Arrivals and ends of one collective after another on ranks whose clocks lie `skews` apart.
CollectiveRun Skewed(const std::vector<trace::Nanos>& skews, int collectives, uint64_t seed, size_t late_start = 0) {
  base::Rng rng(seed);
  std::vector<std::vector<std::pair<trace::Nanos, trace::Nanos>>> ranks(skews.size());
  trace::Nanos at = 1'790'000'000 * base::kSecond;
  for (int c = 0; c < collectives; ++c) {
    at += 5 * base::kMilli + static_cast<trace::Nanos>(rng.Below(10 * base::kMilli));
    for (size_t r = 0; r < skews.size(); ++r) {
      const trace::Nanos arrival = at - static_cast<trace::Nanos>(rng.Below(2 * base::kMilli));
      const trace::Nanos end = at + base::kMilli + static_cast<trace::Nanos>(rng.Below(5 * base::kMicro));
      if (r + 1 == skews.size() && static_cast<size_t>(c) < late_start) continue;
      ranks[r].emplace_back(arrival + skews[r], end + skews[r]);
    }
  }
  return CollectiveRun(ranks);
}

TEST(Collectives, ClocksSecondsApartAreFoundWhateverTheRanksStart) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    CollectiveRun run = Skewed({0, 20 * base::kSecond, -3 * base::kSecond}, 60, seed, seed % 7);
    trace::Trees trees;
    MatchCollectives(run.store, trees);
    EXPECT_EQ(trees.clock_method, "collectives");
    ASSERT_EQ(trees.collectives.size(), 60u);
    EXPECT_NEAR(static_cast<double>(trees.clocks[1].offset), 20e9, 2e4);
    EXPECT_NEAR(static_cast<double>(trees.clocks[2].offset), -3e9, 2e4);
    for (const auto& collective : trees.collectives) {
      for (const auto& member : collective.members) {
        EXPECT_LT(std::abs(member.end - collective.members[0].end), 20 * base::kMicro);
        EXPECT_EQ(member.end, run.store.spans.end(member.span.value())) << "the store is on the same clock";
        EXPECT_LT(std::abs(member.wait + collective.transfer - (member.end - member.arrival)), 20 * base::kMicro);
      }
    }
  }
}

TEST(Collectives, CloserThanTheClocksTellIsNotOrdered) {
  CollectiveRun run = Skewed({0, 7 * base::kMilli}, 40, 3);
  trace::Trees trees;
  MatchCollectives(run.store, trees);
  ASSERT_GT(trees.clock_error, 0);
  size_t named = 0;
  for (const auto& c : trees.collectives) {
    const trace::Nanos apart = std::abs(c.members[0].arrival - c.members[1].arrival);
    EXPECT_EQ(c.late_rank >= 0, apart > trees.clock_error);
    named += c.late_rank >= 0;
  }
  EXPECT_GT(named, 30u);
}

TEST(Collectives, WithoutCalibrationNobodyIsLate) {
  CollectiveRun run = Skewed({0, 2 * base::kSecond}, 2, 5);
  const std::vector<trace::Nanos> before = run.store.spans.begin;
  trace::Trees trees;
  MatchCollectives(run.store, trees);
  EXPECT_EQ(trees.clock_method, "uncalibrated");
  EXPECT_EQ(run.store.spans.begin, before);
  EXPECT_EQ(run.store.diagnostics.Count("tree.clock_uncalibrated"), 2u);
  ASSERT_EQ(trees.collectives.size(), 2u);
  for (const auto& c : trees.collectives) {
    EXPECT_EQ(c.late_rank, -1);
    for (const auto& m : c.members) EXPECT_EQ(m.wait + c.transfer, m.end - m.arrival);
  }
}

TEST(Collectives, SequenceNumbersMatchWhereOrdinalsWouldNot) {
  CollectiveRun run = Skewed({0, base::kSecond}, 40, 9);
  for (uint32_t row = 0; row < run.store.spans.size(); ++row) {
    trace::CommArgs args;
    args.sequence = 1000 + row % 40;
    run.store.comm_args.Append(row, args);
  }
  run.store.spans.name[45] = run.store.strings.Intern("lost");  // one record of rank 1 is missing
  trace::Trees trees;
  MatchCollectives(run.store, trees);
  ASSERT_EQ(trees.collectives.size(), 39u);
  for (const auto& c : trees.collectives) {
    EXPECT_TRUE(c.matched_by_sequence);
    EXPECT_LT(std::abs(c.members[0].end - c.members[1].end), 20 * base::kMicro);
  }
}

}  // namespace
}  // namespace teller::tree
