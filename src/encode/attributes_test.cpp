#include "encode/attributes.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "encode/run_for_test.hpp"
#include "encode/symbol_ids.hpp"
#include "tpe/encoder.hpp"
#include "tpe/trainer.hpp"

namespace teller::encode {
namespace {

/// A run, its forests, and their tokens under a vocabulary trained on them.
struct Encoded {
  TestRun run;
  SymbolTable table;
  std::vector<Segment> segments;
  std::vector<Forest> forests;
  std::vector<tpe::Tokens> tokens;

  Encoded(uint64_t seed, uint32_t merges) : run(TestRun::Random(seed, 12)) {
    ForestBuilder builder(run.store, run.trees, table);
    tpe::Corpus corpus;
    EXPECT_TRUE(AddLayers(corpus).ok());
    CorpusSymbols symbols(corpus);
    for (const Segment& segment : SegmentsOf(run.store, run.trees)) {
      Forest forest = builder.Build(segment);
      if (forest.size() == 0) continue;
      const auto ids = symbols.Of(forest.symbol, table);
      EXPECT_TRUE(corpus.Add(View(ids.value(), forest)).ok());
      segments.push_back(segment);
      forests.push_back(std::move(forest));
    }
    const auto vocabulary = tpe::Train(std::move(corpus), {.max_merges = merges});
    EXPECT_TRUE(vocabulary);
    VocabularySymbols known(*vocabulary, table);
    EXPECT_TRUE(known.Check().ok());
    const tpe::Encoder encoder(*vocabulary);
    tpe::EncodeScratch scratch;
    for (const Forest& forest : forests) {
      tokens.emplace_back();
      EXPECT_TRUE(encoder.Encode(View(known.Of(forest.symbol), forest), scratch, tokens.back()).ok());
    }
  }
};

std::vector<Residual> Unjudged(const Forest& forest) {
  return std::vector<Residual>(forest.size());
}

TEST(Attributes, SelfTimesOfTokensAddUp) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const Encoded encoded(seed, static_cast<uint32_t>(seed * 5));
    for (size_t f = 0; f < encoded.forests.size(); ++f) {
      const Forest& forest = encoded.forests[f];
      trace::Nanos self = 0;
      trace::Nanos roots = 0;
      for (const TokenAttributes& token : Attributes(forest, encoded.tokens[f], Unjudged(forest))) {
        self += token.self;
        EXPECT_FALSE(token.worst.known());
        if (token.parent.token == tpe::kNoToken) roots += token.total;
      }
      EXPECT_EQ(self, std::accumulate(forest.self.begin(), forest.self.end(), trace::Nanos{0}));
      trace::Nanos expected = 0;
      for (size_t i = 0; i < forest.size(); ++i) expected += forest.depth[i] == 0 ? forest.total[i] : 0;
      EXPECT_EQ(roots, expected);
    }
  }
}

TEST(Attributes, WorstIsTheFirstOfTheLargestResiduals) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const Encoded encoded(seed, 200);
    base::Rng rng(seed);
    for (size_t f = 0; f < encoded.forests.size(); ++f) {
      std::vector<Residual> residuals = Unjudged(encoded.forests[f]);
      for (Residual& r : residuals) {
        if (rng.Below(3) != 0) r = {static_cast<float>(rng.Below(5)), 1};
      }
      const auto attributes = Attributes(encoded.forests[f], encoded.tokens[f], residuals);
      for (uint32_t node = 0; node < residuals.size(); ++node) {
        const tpe::Constituent at = encoded.tokens[f].Locate(node);
        EXPECT_LE(residuals[node].z, attributes[at.token].worst.z);
        if (residuals[node].known() && residuals[node].z == attributes[at.token].worst.z) {
          EXPECT_GE(at.offset, attributes[at.token].worst_offset);
        }
      }
    }
  }
}

/// A call becomes slower: so does all around it.
void Plant(Forest& forest, uint32_t node, double factor) {
  const auto more = static_cast<trace::Nanos>(static_cast<double>(forest.self[node]) * (factor - 1));
  forest.self[node] += more;
  uint32_t depth = forest.depth[node] + 1;
  for (uint32_t i = node + 1; i-- > 0;) {
    if (forest.depth[i] >= depth) continue;
    depth = forest.depth[i];
    forest.total[i] += more;
  }
}

TEST(Attributes, PointAtAPlantedSlowOperator) {
  size_t largest = 0;
  size_t planted = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Encoded encoded(seed, 4096);
    base::Rng rng(seed * 77);
    const size_t f = rng.Below(encoded.forests.size());
    const tpe::Tokens& tokens = encoded.tokens[f];
    // The token with the most nodes.
    size_t best = 0;
    const auto last = [&](size_t t) {
      return t + 1 < tokens.size() ? tokens.first_node[t + 1] : encoded.forests[f].size();
    };
    for (size_t t = 0; t < tokens.size(); ++t) {
      if (last(t) - tokens.first_node[t] > last(best) - tokens.first_node[best]) best = t;
    }
    const auto node = static_cast<uint32_t>(tokens.first_node[best] + rng.Below(last(best) - tokens.first_node[best]));
    Plant(encoded.forests[f], node, 1.5 + 18.5 * rng.Unit());
    NodeNormals normals(encoded.run.store, encoded.run.trees);
    for (size_t i = 0; i < encoded.forests.size(); ++i) normals.Add(encoded.segments[i], encoded.forests[i]);
    normals.Finish();
    const std::vector<Residual> residuals = normals.Judge(encoded.segments[f], encoded.forests[f]);
    const auto attributes = Attributes(encoded.forests[f], tokens, residuals);
    ++planted;
    bool is_largest = residuals[node].known();
    for (size_t i = tokens.first_node[best]; i < last(best); ++i)
      is_largest = is_largest && (i == node || residuals[i].z < residuals[node].z);
    if (!is_largest) continue;
    ++largest;
    EXPECT_EQ(tokens.first_node[best] + attributes[best].worst_offset, node) << seed;
  }
  // Most plants are the worst thing in their token; else the test would say nothing.
  EXPECT_GT(largest, planted * 2 / 3);
}

TEST(Attributes, NormalsDoNotDependOnTheOrderOfForests) {
  const Encoded encoded(5, 50);
  NodeNormals forward(encoded.run.store, encoded.run.trees);
  NodeNormals backward(encoded.run.store, encoded.run.trees);
  for (size_t i = 0; i < encoded.forests.size(); ++i) {
    forward.Add(encoded.segments[i], encoded.forests[i]);
    const size_t j = encoded.forests.size() - 1 - i;
    backward.Add(encoded.segments[j], encoded.forests[j]);
  }
  forward.Finish();
  backward.Finish();
  for (size_t i = 0; i < encoded.forests.size(); ++i) {
    const auto a = forward.Judge(encoded.segments[i], encoded.forests[i]);
    const auto b = backward.Judge(encoded.segments[i], encoded.forests[i]);
    for (size_t n = 0; n < a.size(); ++n) EXPECT_EQ(a[n].z, b[n].z);
  }
}

}  // namespace
}  // namespace teller::encode
