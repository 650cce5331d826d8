#include "tpe/plain.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "tpe/bases.hpp"

namespace teller::tpe {
namespace {

/// The pair of tokens i and i + 1, when they are one.
std::optional<Pair> PairAt(const Tokens& tokens, size_t i) {
  if (i + 1 >= tokens.size() || tokens.depths[i + 1] < tokens.depths[i]) return std::nullopt;
  return Pair{tokens.ids[i], tokens.ids[i + 1], tokens.depths[i + 1] - tokens.depths[i]};
}

/// Joins the occurrences of `pair` from left to right.
void Apply(const Pair& pair, uint32_t id, Tokens& tokens) {
  Tokens out;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool joined = PairAt(tokens, i) == pair;
    out.ids.push_back(joined ? id : tokens.ids[i]);
    out.depths.push_back(tokens.depths[i]);
    out.first_node.push_back(tokens.first_node[i]);
    i += joined;
  }
  tokens = std::move(out);
}

Tokens Encoded(const Vocabulary& vocabulary, const ForestView& forest) {
  Tokens tokens;
  for (uint32_t i = 0; i < forest.size(); ++i) {
    tokens.ids.push_back(forest.symbols[i]);
    tokens.depths.push_back(forest.depths[i]);
    tokens.first_node.push_back(i);
  }
  for (uint32_t id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.is_merge(id)) Apply(vocabulary.pair(id), id, tokens);
  }
  return tokens;
}

/// The most frequent pair that may be merged, ties to the smallest.
std::optional<Pair> MostFrequent(const std::vector<Tokens>& texts, const Corpus& corpus, const Vocabulary& vocabulary,
                                 const TrainOptions& options) {
  std::map<Pair, uint64_t> counts;
  for (size_t text = 0; text < texts.size(); ++text) {
    for (size_t i = 0; i < texts[text].size(); ++i) {
      if (const auto pair = PairAt(texts[text], i)) counts[*pair] += corpus.sequences()[text].weight;
    }
  }
  std::optional<Pair> best;
  uint64_t most = std::max<uint64_t>(options.min_count, 1) - 1;
  for (const auto& [pair, count] : counts) {
    const uint64_t nodes = uint64_t{vocabulary.node_count(pair.left)} + vocabulary.node_count(pair.right);
    if (nodes > options.max_token_nodes || pair.delta > kMaxDelta || count <= most) continue;
    best = pair;
    most = count;
  }
  return best;
}

}  // namespace

base::Result<Vocabulary> ExtendPlain(const Vocabulary& old, const Corpus& corpus, const TrainOptions& options) {
  TELLER_TRY(CheckOptions(options));
  Vocabulary vocabulary = old;
  const auto bases = AppendBases(corpus, options, vocabulary);
  if (!bases) return bases.error();
  std::vector<Tokens> texts;
  for (const Corpus::Sequence& sequence : corpus.sequences()) {
    std::vector<uint32_t> symbols;
    for (uint32_t i = 0; i < sequence.size; ++i) symbols.push_back((*bases)[corpus.symbols()[sequence.begin + i]]);
    texts.push_back(Encoded(vocabulary, {symbols, std::span(corpus.depths()).subspan(sequence.begin, sequence.size)}));
  }
  for (uint32_t merge = 0; merge < options.max_merges; ++merge) {
    const auto pair = MostFrequent(texts, corpus, vocabulary, options);
    if (!pair) break;
    const auto id = vocabulary.AddMerge(*pair);
    if (!id) return id.error();
    for (Tokens& text : texts) Apply(*pair, *id, text);
  }
  return vocabulary;
}

base::Result<Vocabulary> TrainPlain(const Corpus& corpus, const TrainOptions& options) {
  return ExtendPlain(Vocabulary(), corpus, options);
}

base::Result<Tokens> EncodePlain(const Vocabulary& vocabulary, const ForestView& forest) {
  TELLER_TRY(ValidateForest(forest));
  for (size_t i = 0; i < forest.size(); ++i) {
    if (forest.symbols[i] >= vocabulary.size() || vocabulary.is_merge(forest.symbols[i])) {
      return base::Error{base::Code::kBadFormat,
                         "symbol is " + std::to_string(forest.symbols[i]) + ", expected a base id of the vocabulary",
                         {},
                         "node " + std::to_string(i)};
    }
  }
  return Encoded(vocabulary, forest);
}

}  // namespace teller::tpe
