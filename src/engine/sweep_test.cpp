#include "engine/sweep.hpp"

#include <gtest/gtest.h>

#include "base/rng.hpp"
#include "engine/sequence_code.hpp"
#include "engine/token_stats.hpp"
#include "engine/training.hpp"

namespace teller::engine {
namespace {

/// Steps of a few programs, as forests without times.
Structures RandomStructures(uint64_t seed, size_t sources, size_t steps) {
  base::Rng rng(seed);
  Structures out;
  std::vector<uint32_t> rows;
  for (int i = 0; i < 12; ++i) rows.push_back(out.table.Row({encode::Layer::kOp, "op" + std::to_string(i)}));
  for (size_t s = 0; s < sources; ++s) {
    out.sources.push_back({.path = "run" + std::to_string(s) + "/t.json",
                           .run = "run" + std::to_string(s),
                           .engine = s % 2 == 0 ? "a" : "b",
                           .has_steps = true});
    for (size_t i = 0; i < steps; ++i) {
      Structures::Piece piece{.source = static_cast<uint32_t>(s), .begin = out.symbols.size()};
      base::Rng program(1 + i % 3);  // steps of one program are alike
      uint32_t depth = 0;
      for (uint32_t n = 30 + static_cast<uint32_t>(program.Below(30)); n-- > 0;) {
        out.symbols.push_back(rows[(rng.Below(20) == 0 ? rng : program).Below(rows.size())]);
        out.depths.push_back(depth);
        depth = static_cast<uint32_t>(program.Below(depth + 2));
      }
      piece.size = static_cast<uint32_t>(out.symbols.size() - piece.begin);
      out.pieces.push_back(piece);
    }
  }
  return out;
}

TEST(SequenceCode, ClosingMarksGiveTheDepthsBack) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const Structures structures = RandomStructures(seed, 2, 4);
    const Structures closed = WithClosingMarks(structures);
    for (size_t p = 0; p < structures.pieces.size(); ++p) {
      std::vector<uint32_t> symbols, depths;
      uint32_t depth = 0;
      for (const uint32_t row : closed.SymbolsOf(closed.pieces[p])) {
        if (closed.table.At(row).name == ")") {
          --depth;
          continue;
        }
        symbols.push_back(row);
        depths.push_back(depth++);
      }
      const auto expected_symbols = structures.SymbolsOf(structures.pieces[p]);
      const auto expected_depths = structures.DepthsOf(structures.pieces[p]);
      EXPECT_TRUE(std::equal(symbols.begin(), symbols.end(), expected_symbols.begin(), expected_symbols.end()));
      EXPECT_TRUE(std::equal(depths.begin(), depths.end(), expected_depths.begin(), expected_depths.end()));
    }
    const Structures folded = WithFoldedMarks(structures);
    EXPECT_EQ(folded.symbols.size(), structures.symbols.size());
  }
}

TEST(SequenceCode, NumbersTakeSevenBitsAByte) {
  EXPECT_EQ(EncodedBytes(std::vector<uint32_t>{0, 127, 128, 16384}, {}).size(), 1u + 1 + 2 + 3);
  EXPECT_EQ(EncodedBytes(std::vector<uint32_t>{1, 2, 3}, std::vector<uint32_t>{0, 1, 0}),
            std::string("\1\0\2\2\3\1", 6));
  const std::string zeros(10'000, '\0');
  EXPECT_LT(GzipBytes(zeros), 100u);
  EXPECT_LT(ZstdBytes(zeros), 100u);
  EXPECT_GT(GzipBytes(zeros), 18u);
}

TEST(Sweep, EveryNodeIsInATokenAndMoreMergesNeverNeedMore) {
  const Structures structures = RandomStructures(3, 8, 20);
  const auto sweep = RunSweep(structures, {}, {.merges = {0, 4, 16, 64, 100'000}, .threads = 2});
  ASSERT_TRUE(sweep) << sweep.error().Text();
  EXPECT_EQ(sweep->train.size() + sweep->test.size(), 8u);
  EXPECT_EQ(sweep->steps, 80u);
  ASSERT_EQ(sweep->tpe.size(), 5u);
  EXPECT_EQ(sweep->tpe[0].tokens, sweep->nodes);
  EXPECT_EQ(sweep->bpe_fold[0].tokens, sweep->nodes);
  EXPECT_EQ(sweep->tpe[0].bytes, sweep->raw_bytes);
  for (const auto* rows : {&sweep->tpe, &sweep->bpe_close, &sweep->bpe_fold}) {
    for (size_t i = 1; i < rows->size(); ++i) EXPECT_LE((*rows)[i].tokens, (*rows)[i - 1].tokens);
    for (const SweepRow& row : *rows) {
      EXPECT_LE(row.merges, row.asked);
      uint64_t sum = 0;
      for (const uint64_t tokens : row.tokens_by_engine) sum += tokens;
      EXPECT_EQ(sum, row.tokens);
    }
  }
  EXPECT_GT(sweep->repair.merges, 0u);
  EXPECT_LT(sweep->repair.tokens, sweep->nodes);
}

TEST(Sweep, SplitsByRunsThenByFiles) {
  Structures structures;
  const auto add = [&](const char* run, const char* file, const char* engine) {
    structures.sources.push_back({.path = std::string(run) + "/" + file, .run = run, .engine = engine});
  };
  add("a", "0", "x");
  add("a", "1", "x");
  add("b", "0", "x");
  add("c", "0", "y");
  add("c", "1", "y");
  add("d", "0", "z");
  std::string how;
  EXPECT_EQ(SplitSources(structures, {}, how), (std::vector<bool>{false, false, true, false, true, true}));
  EXPECT_EQ(SplitSources(structures, {"a", "d"}, how), (std::vector<bool>{true, true, false, false, false, true}));
  EXPECT_EQ(SplitSources(structures, {"./a", "b/../d/"}, how),
            (std::vector<bool>{true, true, false, false, false, true}));
}

TEST(Sweep, SaysWhatIsMissing) {
  const Structures structures = RandomStructures(1, 2, 3);
  EXPECT_EQ(RunSweep(structures, {"run0", "run1"}, {.merges = {1}}).error().code, base::Code::kNotFound);
  EXPECT_EQ(RunSweep(structures, {"elsewhere"}, {.merges = {1}}).error().code, base::Code::kNotFound);
}

TEST(TokenStats, CountsAreThoseOfThePiecesWhateverTheThreads) {
  const Structures structures = RandomStructures(9, 5, 12);
  const auto training = TrainVocabulary(structures, 50, nullptr, 1, nullptr);
  ASSERT_TRUE(training);
  const auto one = MeasureTokens(structures, training->vocabulary, 1, nullptr);
  const auto four = MeasureTokens(structures, training->vocabulary, 4, nullptr);
  ASSERT_TRUE(one);
  ASSERT_TRUE(four);
  EXPECT_EQ(one->steps.nodes, structures.symbols.size());
  EXPECT_EQ(one->steps.steps, 60u);
  uint64_t covered = 0;
  for (const TokenUse& use : one->used) covered += use.nodes;
  EXPECT_EQ(covered, one->steps.nodes);
  ASSERT_EQ(one->used.size(), four->used.size());
  for (size_t i = 0; i < one->used.size(); ++i) EXPECT_EQ(one->used[i].id, four->used[i].id);
  EXPECT_EQ(one->steps.tokens, four->steps.tokens);
}

TEST(Training, ExtendingKeepsIds) {
  const auto first = TrainVocabulary(RandomStructures(1, 2, 9), 20, nullptr, 1, nullptr);
  ASSERT_TRUE(first);
  const auto second = TrainVocabulary(RandomStructures(2, 3, 9), 20, &first->vocabulary, 2, nullptr);
  ASSERT_TRUE(second);
  EXPECT_GT(second->vocabulary.size(), first->vocabulary.size());
  for (uint32_t id = 0; id < first->vocabulary.size(); ++id) {
    ASSERT_EQ(first->vocabulary.kind(id), second->vocabulary.kind(id));
    if (first->vocabulary.is_merge(id)) {
      EXPECT_EQ(first->vocabulary.pair(id), second->vocabulary.pair(id));
    } else {
      EXPECT_EQ(first->vocabulary.name(id), second->vocabulary.name(id));
    }
  }
}

}  // namespace
}  // namespace teller::engine
