#include "tpe/stream.hpp"

#include <gtest/gtest.h>

#include "tpe/count_allocations_test.hpp"
#include "tpe/random_forest_test.hpp"
#include "tpe/trainer.hpp"

namespace teller::tpe {
namespace {

TEST(Stream, WarmStepsDoNotAllocate) {
  base::Rng rng(9);
  testing::Sequences s;
  for (int i = 0; i < 20; ++i) s.push_back({testing::MakeForest(rng, testing::Shape::kLayers, 3000, 6), 1});
  const auto v = Train(testing::MakeCorpus(s), {.max_merges = 300});
  ASSERT_TRUE(v);
  std::vector<Forest> steps;
  for (const auto& sequence : s) steps.push_back(testing::WithIds(sequence.forest, *v));
  const Encoder encoder(*v);
  StreamEncoder stream(encoder, {.min_batch = 64});
  Tokens tokens;
  uint64_t nodes = 0;
  const auto run = [&] {
    for (const Forest& step : steps) {
      tokens.clear();
      for (size_t i = 0; i < step.symbols.size(); ++i)
        nodes += stream.Push(step.symbols[i], step.depths[i], tokens).ok();
      if (!stream.End(tokens)) std::abort();
    }
  };
  run();
  const uint64_t before = testing::Allocations();
  run();
  EXPECT_EQ(testing::Allocations(), before);
  EXPECT_EQ(nodes, 2u * 20 * 3000);
}

}  // namespace
}  // namespace teller::tpe
