#include "tpe/encoder.hpp"

#include <gtest/gtest.h>

#include "tpe/decoder.hpp"
#include "tpe/plain.hpp"
#include "tpe/random_forest_test.hpp"
#include "tpe/stream.hpp"
#include "tpe/trainer.hpp"
#include "tpe/vocabulary_file.hpp"

namespace teller::tpe {
namespace {

using testing::MakeCorpus;
using testing::Sequences;
using testing::WithIds;

bool Same(const Tokens& a, const Tokens& b) {
  return a.ids == b.ids && a.depths == b.depths && a.first_node == b.first_node;
}

/// A vocabulary of any merges, also such as no training would learn.
Vocabulary AnyVocabulary(base::Rng& rng, uint32_t alphabet) {
  Vocabulary v;
  for (const char* name : {"api", "kernel", "op"}) (void)*v.AddClass(name);
  for (uint32_t s = 0; s < 8; ++s) {
    const char* names[] = {"op", "kernel", "api"};
    if (s < alphabet || rng.Below(2) == 0) (void)*v.AddBase(*v.FindClass(names[s % 3]), "s" + std::to_string(s));
  }
  const uint64_t merges = rng.Below(25);
  for (uint64_t i = 0; i < merges; ++i) {
    const auto left = static_cast<uint32_t>(rng.Below(v.size()));
    const auto right = static_cast<uint32_t>(rng.Below(v.size()));
    (void)v.AddMerge({left, right, static_cast<uint32_t>(rng.Below(v.last_depth(left) + 2))});
  }
  return v;
}

Vocabulary VocabularyFor(const Sequences& s, uint64_t seed) {
  base::Rng rng(seed * 31);
  if (rng.Below(3) == 0) return AnyVocabulary(rng, 3);
  auto v = Train(MakeCorpus(s), {.max_merges = static_cast<uint32_t>(rng.Below(80))});
  if (rng.Below(3) > 0) return *v;
  // Extended by something else: bases stand behind merges.
  return *Extend(*v, MakeCorpus(testing::AnySequences(rng, 80, true)), {.max_merges = 10});
}

void ForAll(uint64_t rounds, uint32_t max_nodes,
            const std::function<bool(const Sequences&, const Vocabulary&, uint64_t)>& fails) {
  for (uint64_t seed = 1; seed <= rounds; ++seed) {
    base::Rng rng(seed);
    const Vocabulary v = VocabularyFor(testing::AnySequences(rng, max_nodes, true), seed);
    const Sequences s = testing::AnySequences(rng, max_nodes, false);
    if (!fails(s, v, seed)) continue;
    const Sequences small = testing::Shrink(s, [&](const Sequences& x) { return fails(x, v, seed); });
    FAIL() << "seed " << seed << ", smallest forests:\n" << testing::Text(small);
  }
}

TEST(Encoder, EqualsThePlainOne) {
  ForAll(6000, 80, [](const Sequences& s, const Vocabulary& v, uint64_t seed) {
    const Encoder encoder(v, seed);
    EncodeScratch scratch;
    Tokens tokens;
    for (const auto& sequence : s) {
      const Forest f = WithIds(sequence.forest, v);
      if (!encoder.Encode({f.symbols, f.depths}, scratch, tokens)) return true;
      if (!Same(tokens, *EncodePlain(v, {f.symbols, f.depths}))) return true;
    }
    return false;
  });
  ForAll(150, 3000, [](const Sequences& s, const Vocabulary& v, uint64_t seed) {
    const Encoder encoder(v, seed);
    EncodeScratch scratch;
    Tokens tokens;
    for (const auto& sequence : s) {
      const Forest f = WithIds(sequence.forest, v);
      if (!encoder.Encode({f.symbols, f.depths}, scratch, tokens)) return true;
      if (!Same(tokens, *EncodePlain(v, {f.symbols, f.depths}))) return true;
    }
    return false;
  });
}

TEST(Encoder, DecodingGivesTheForestBack) {
  ForAll(3000, 150, [](const Sequences& s, const Vocabulary& v, uint64_t) {
    const Encoder encoder(v);
    EncodeScratch scratch;
    Tokens tokens;
    for (const auto& sequence : s) {
      const Forest f = WithIds(sequence.forest, v);
      if (!encoder.Encode({f.symbols, f.depths}, scratch, tokens)) return true;
      const auto back = Decode(v, tokens.ids, tokens.depths);
      if (!back || back->symbols != f.symbols || back->depths != f.depths) return true;
    }
    return false;
  });
}

TEST(Encoder, StreamingGivesTheSameTokens) {
  ForAll(3000, 120, [](const Sequences& s, const Vocabulary& v, uint64_t seed) {
    const Encoder encoder(v);
    EncodeScratch scratch;
    StreamEncoder stream(encoder, {.min_batch = static_cast<uint32_t>(1 + seed % 9)});
    Tokens expected, tokens;
    for (const auto& sequence : s) {
      const Forest f = WithIds(sequence.forest, v);
      if (!encoder.Encode({f.symbols, f.depths}, scratch, expected)) return true;
      tokens.clear();
      for (size_t i = 0; i < f.symbols.size(); ++i) {
        if (!stream.Push(f.symbols[i], f.depths[i], tokens)) return true;
      }
      if (!stream.End(tokens) || !Same(tokens, expected)) return true;
    }
    return stream.forced_cuts() != 0;
  });
}

TEST(Encoder, StreamingIsBounded) {
  Vocabulary v;
  const uint32_t op = *v.AddClass("op");
  uint32_t longest = *v.AddBase(op, "x");
  for (int i = 0; i < 4; ++i) longest = *v.AddMerge({longest, longest, 0});
  const Encoder encoder(v);
  StreamEncoder stream(encoder, {.min_batch = 16, .max_nodes = 1000});
  Tokens tokens;
  uint32_t most = 0;
  for (int i = 0; i < 100'000; ++i) {
    ASSERT_TRUE(stream.Push(1, 0, tokens).ok());
    most = std::max(most, stream.waiting());
  }
  ASSERT_TRUE(stream.End(tokens).ok());
  EXPECT_EQ(most, 1000u);  // no cut is possible inside a run of what merges with itself
  EXPECT_EQ(stream.forced_cuts(), 99u);
  const auto back = Decode(v, tokens.ids, tokens.depths);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->symbols, std::vector<uint32_t>(100'000, 1));
  EXPECT_FALSE(stream.Push(longest, 0, tokens).ok());
  EXPECT_TRUE(stream.Push(1, 5, tokens).ok());
  EXPECT_FALSE(stream.Push(1, 7, tokens).ok());
  EXPECT_TRUE(stream.Push(1, 6, tokens).ok());
}

TEST(Encoder, NodesAndConstituentsMapBothWays) {
  ForAll(500, 150, [](const Sequences& s, const Vocabulary& v, uint64_t) {
    const Encoder encoder(v);
    EncodeScratch scratch;
    Tokens tokens;
    for (const auto& sequence : s) {
      const Forest f = WithIds(sequence.forest, v);
      if (!encoder.Encode({f.symbols, f.depths}, scratch, tokens)) return true;
      for (uint32_t node = 0; node < f.symbols.size(); ++node) {
        const Constituent c = tokens.Locate(node);
        if (tokens.Node(c) != node || c.offset >= v.node_count(tokens.ids[c.token])) return true;
      }
      const auto parents = Parents(tokens, {f.symbols, f.depths});
      for (uint32_t token = 0; token < tokens.size(); ++token) {
        // The parent as the definition states it.
        Constituent expected{kNoToken, 0};
        for (uint32_t node = tokens.first_node[token]; node-- > 0;) {
          if (f.depths[node] >= tokens.depths[token]) continue;
          if (f.depths[node] + 1 == tokens.depths[token]) expected = tokens.Locate(node);
          break;
        }
        if (parents[token] != expected) return true;
      }
    }
    return false;
  });
}

/// Steps of loops for each node stay below one constant for all shapes and sizes.
TEST(Encoder, WorkIsLinear) {
  for (int shape = 0; shape < testing::kShapes; ++shape) {
    base::Rng rng(5);
    const Forest f = testing::MakeForest(rng, static_cast<testing::Shape>(shape), 1'000'000, 4);
    const auto v = Train(MakeCorpus({{f, 1}}), {.max_merges = 3000});
    ASSERT_TRUE(v);
    const Encoder encoder(*v);
    const Forest ids = WithIds(f, *v);
    for (const size_t size : {size_t{10'000}, size_t{100'000}, size_t{1'000'000}}) {
      EncodeScratch scratch;
      Tokens tokens;
      EncodeStats stats;
      const std::span symbols = std::span(ids.symbols).first(size);
      const std::span depths = std::span(ids.depths).first(size);
      ASSERT_TRUE(encoder.Encode({symbols, depths}, scratch, tokens, &stats).ok());
      EXPECT_LE(stats.steps, 12 * size + 64) << shape;
      const auto back = Decode(*v, tokens.ids, tokens.depths);
      ASSERT_TRUE(back);
      EXPECT_TRUE(std::equal(symbols.begin(), symbols.end(), back->symbols.begin(), back->symbols.end()));
    }
  }
}

/// Tokens that grow by one node each, half a million of them: neither building nor encoding may look at all pairs of
/// them.
TEST(Encoder, VocabularyOfOneLongChainOfMerges) {
  Vocabulary v;
  const uint32_t op = *v.AddClass("op");
  const uint32_t x = *v.AddBase(op, "x");
  uint32_t longest = x;
  for (int i = 0; i < 500'000; ++i) longest = *v.AddMerge({longest, x, 0});
  const Encoder encoder(v);
  const std::vector<uint32_t> symbols(1'000'000, x);
  const std::vector<uint32_t> depths(symbols.size(), 0);
  EncodeScratch scratch;
  Tokens tokens;
  EncodeStats stats;
  ASSERT_TRUE(encoder.Encode({symbols, depths}, scratch, tokens, &stats).ok());
  EXPECT_LE(stats.steps, 12 * symbols.size());
  EXPECT_TRUE(Decode(v, tokens.ids, tokens.depths));
}

TEST(Encoder, SmallestInputs) {
  Vocabulary v;
  const uint32_t op = *v.AddClass("op");
  const uint32_t x = *v.AddBase(op, "x");
  const uint32_t xx = *v.AddMerge({x, x, 1});
  const Encoder encoder(v);
  EncodeScratch scratch;
  Tokens tokens;
  ASSERT_TRUE(encoder.Encode({}, scratch, tokens).ok());
  EXPECT_TRUE(tokens.empty());
  EXPECT_EQ(tokens.Locate(0).token, kNoToken);
  const std::vector<uint32_t> symbols = {x, x, xx};
  const std::vector<uint32_t> depths = {7, 8, 9};
  ASSERT_TRUE(encoder.Encode({std::span(symbols).first(1), std::span(depths).first(1)}, scratch, tokens).ok());
  EXPECT_EQ(tokens.ids, std::vector<uint32_t>{x});
  ASSERT_TRUE(encoder.Encode({std::span(symbols).first(2), std::span(depths).first(2)}, scratch, tokens).ok());
  EXPECT_EQ(tokens.ids, std::vector<uint32_t>{xx});
  EXPECT_EQ(tokens.depths, std::vector<uint32_t>{7});
  const auto merged = encoder.Encode({symbols, depths}, scratch, tokens);
  EXPECT_EQ(merged.error().code, base::Code::kBadFormat);
  EXPECT_NE(merged.error().Text().find("node 2"), std::string::npos);
  const std::vector<uint32_t> leap = {0, 2};
  EXPECT_EQ(encoder.Encode({std::span(symbols).first(2), leap}, scratch, tokens).error().code, base::Code::kBadFormat);
  EXPECT_EQ(encoder.Encode({symbols, leap}, scratch, tokens).error().code, base::Code::kBadFormat);
}

TEST(Encoder, UnknownNamesKeepTheirClassAndCount) {
  Vocabulary v;
  const uint32_t op = *v.AddClass("op");
  const uint32_t x = *v.AddBase(op, "x");
  const uint32_t unknown = v.Unknown(op);
  const uint32_t merge = *v.AddMerge({x, unknown, 1});
  EXPECT_EQ(v.unknown_count(*v.AddMerge({merge, merge, 0})), 2u);
  const Symbol symbol = v.SymbolFor(op, "fused_op_of_the_next_release");
  EXPECT_EQ(symbol.id, unknown);
  EXPECT_NE(symbol.name_hash, v.SymbolFor(op, "another").name_hash);
  EXPECT_EQ(NameHash(""), 0xCBF29CE484222325ULL);
  EXPECT_EQ(NameHash("a"), 0xAF63DC4C8601EC8CULL);  // published test vector of FNV-1a
}

TEST(Decoder, RefusesWhatNoForestGives) {
  Vocabulary v;
  const uint32_t op = *v.AddClass("op");
  uint32_t x = *v.AddBase(op, "x");
  const std::vector<uint32_t> ids = {x, x};
  EXPECT_EQ(Decode(v, ids, std::vector<uint32_t>{3, 5}).error().code, base::Code::kBadFormat);
  EXPECT_EQ(Decode(v, ids, std::vector<uint32_t>{3}).error().code, base::Code::kBadFormat);
  EXPECT_EQ(Decode(v, std::vector<uint32_t>{2}, std::vector<uint32_t>{0}).error().code, base::Code::kBadFormat);
  EXPECT_EQ(Decode(v, ids, std::vector<uint32_t>{kMaxDepth, 0}).error().code, base::Code::kBadFormat);
  ASSERT_TRUE(Decode(v, ids, std::vector<uint32_t>{3, 0}));  // up past the first node: the forest starts inside a tree
  const uint32_t chain = *v.AddMerge({x, x, 1});
  EXPECT_EQ(Decode(v, std::vector<uint32_t>{chain}, std::vector<uint32_t>{kMaxDepth - 1}).error().code,
            base::Code::kBadFormat);
  ASSERT_TRUE(Decode(v, std::vector<uint32_t>{chain, x}, std::vector<uint32_t>{0, 2}));
  EXPECT_FALSE(Decode(v, std::vector<uint32_t>{chain, x}, std::vector<uint32_t>{0, 3}));
  for (int i = 0; i < 23; ++i) x = *v.AddMerge({x, x, 0});
  const std::vector<uint32_t> bombs(1000, x);
  EXPECT_EQ(Decode(v, bombs, std::vector<uint32_t>(1000, 0)).error().code, base::Code::kLimit);
}

TEST(Encoder, EmptyVocabulary) {
  const Vocabulary v;
  const Encoder encoder(v);
  EncodeScratch scratch;
  Tokens tokens;
  EXPECT_TRUE(encoder.Encode({}, scratch, tokens).ok());
  const std::vector<uint32_t> zero = {0};
  EXPECT_EQ(encoder.Encode({zero, zero}, scratch, tokens).error().code, base::Code::kBadFormat);
  EXPECT_TRUE(Decode(v, {}, {}));
  EXPECT_TRUE(*ParseVocabulary(SerializeVocabulary(v)) == v);
}

/// A million levels: nothing recurses, and the bound on deltas keeps chains decodable.
TEST(Encoder, DeepChain) {
  Forest f;
  for (uint32_t i = 0; i < 1'000'000; ++i) {
    f.symbols.push_back(0);
    f.depths.push_back(i);
  }
  const auto v = Train(MakeCorpus({{f, 1}}), {.max_merges = 100, .min_count = 1});
  ASSERT_TRUE(v);
  const Forest ids = WithIds(f, *v);
  const Encoder encoder(*v);
  EncodeScratch scratch;
  Tokens tokens;
  ASSERT_TRUE(encoder.Encode({ids.symbols, ids.depths}, scratch, tokens).ok());
  EXPECT_LT(tokens.size(), 40u);
  const auto back = Decode(*v, tokens.ids, tokens.depths);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->depths, f.depths);
  const auto parents = Parents(tokens, {ids.symbols, ids.depths});
  for (uint32_t i = 1; i < tokens.size(); ++i) EXPECT_EQ(tokens.Node(parents[i]) + 1, tokens.first_node[i]);
}

}  // namespace
}  // namespace teller::tpe
