#include "tpe/encoder.hpp"

#include <algorithm>
#include <string>

#include "tpe/encoder_tables.hpp"

namespace teller::tpe {

struct EncodeScratch::State {
  RankScratch rank;
  MatchScratch match;
  std::vector<uint32_t> words;
};

EncodeScratch::EncodeScratch() : state_(std::make_unique<State>()) {}
EncodeScratch::~EncodeScratch() = default;
EncodeScratch::EncodeScratch(EncodeScratch&&) noexcept = default;
EncodeScratch& EncodeScratch::operator=(EncodeScratch&&) noexcept = default;

namespace {

/// Steps for each node after which matching gives up.
constexpr uint64_t kPatience = 4;

}  // namespace

Encoder::Encoder(const Vocabulary& vocabulary, uint64_t hash_seed)
    : tables_(std::make_shared<const Tables>(vocabulary, hash_seed)) {}

base::Status Encoder::Check(const ForestView& forest) const {
  TELLER_TRY(ValidateForest(forest));
  for (size_t i = 0; i < forest.size(); ++i) {
    if (tables_->IsBase(forest.symbols[i])) continue;
    return base::Error{base::Code::kBadFormat,
                       "symbol is " + std::to_string(forest.symbols[i]) + ", expected a base id of the vocabulary",
                       {},
                       "node " + std::to_string(i)};
  }
  return {};
}

bool Encoder::MakeWords(const ForestView& forest, std::vector<uint32_t>& words) const {
  const size_t n = forest.size();
  if (n == 0 || n > kMaxForestNodes || forest.depths.size() != n) return false;
  words.resize(n);
  const uint32_t* const symbols = forest.symbols.data();
  const uint32_t* const depths = forest.depths.data();
  uint32_t* const out = words.data();
  // No branches: all checks are collected, many nodes at once. A leap downwards becomes a number above any depth.
  uint32_t far = 0, symbol = symbols[0], depth = depths[0];
  out[0] = MatchTables::WordOf(symbols[0], 0);
  for (size_t i = 1; i < n; ++i) {
    const uint32_t up = depths[i - 1] + 1 - depths[i];
    far = std::max(far, up);
    symbol = std::max(symbol, symbols[i]);
    depth = std::max(depth, depths[i]);
    out[i] = MatchTables::WordOf(symbols[i], up);
  }
  return far <= kMaxDepth && depth < kMaxDepth && symbol < tables_->leading_bases;
}

base::Status Encoder::Encode(const ForestView& forest, EncodeScratch& scratch, Tokens& out, EncodeStats* stats) const {
  out.clear();
  EncodeScratch::State& state = *scratch.state_;
  uint64_t steps = forest.size();
  const bool has_words = MakeWords(forest, state.words);
  if (!has_words) TELLER_TRY(Check(forest));
  const std::shared_ptr<const MatchTables> match(tables_, &tables_->match);
  const bool is_done = has_words && match->usable() &&
                       state.match.Encode(match, forest, state.words, kPatience * forest.size() + 64, out, steps);
  if (!is_done) state.rank.Encode(tables_->rank, forest, 0, out, steps);
  if (stats != nullptr) {
    stats->nodes += forest.size();
    stats->tokens += out.size();
    stats->steps += steps;
    stats->matched += is_done ? forest.size() : 0;
  }
  return {};
}

}  // namespace teller::tpe
