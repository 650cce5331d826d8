#include "tpe/match_encoder.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace teller::tpe {
namespace {

/// Words of all tokens together (64 MB), and steps that building may take; what does not fit is not matched.
constexpr uint64_t kMaxText = 1u << 24;
constexpr uint64_t kBuildBudget = 1u << 26;
/// Larger vocabularies are encoded by rank only.
constexpr uint32_t kMaxMatched = 1u << 20;

/// How many words at the beginning are equal, at most `size`.
size_t EqualWords(const uint32_t* a, const uint32_t* b, size_t size) {
  size_t i = 0;
  for (; i + 8 <= size; i += 8) {
    uint64_t x[4], y[4];
    std::memcpy(x, a + i, sizeof x);
    std::memcpy(y, b + i, sizeof y);
    if (((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3])) != 0) break;
  }
  while (i < size && a[i] == b[i]) ++i;
  return i;
}

uint64_t ChildKey(uint32_t node, uint32_t word) {
  return uint64_t{node} << 32 | word;
}

}  // namespace

MatchTables::MatchTables(const Vocabulary& vocabulary, const RankTables& ranks, uint64_t hash_seed)
    : ranks_(ranks), children_(hash_seed) {
  if (vocabulary.size() > kMaxMatched || vocabulary.merge_count() == 0) return;
  const uint32_t n = vocabulary.size();
  std::vector<uint8_t> wanted(n, 1);
  uint64_t steps = 0;
  for (uint32_t id = 0; id < n; ++id) {
    const Pair pair = vocabulary.is_merge(id) ? vocabulary.pair(id) : Pair{};
    deltas_.push_back(pair.delta);
    lengths_.push_back(vocabulary.node_count(id));
    if (!vocabulary.is_merge(id)) continue;
    const bool is_near = vocabulary.last_depth(pair.left) + 1 - pair.delta < kFar;
    // Vocabularies made to be slow would take time with the square of their size; what is not matched is left to the
    // ranks.
    wanted[id] = steps < kBuildBudget && wanted[pair.left] && wanted[pair.right] && is_near &&
                 Stay(pair.left, pair.right, pair.delta, id, steps);
  }
  places_.assign(n, kNoToken);
  end_node_.assign(n, kNoToken);
  shorter_.assign(n, kNoToken);
  PlaceTexts(vocabulary, wanted);
  nodes_.resize(n);
  for (uint32_t id = 0; id < n; ++id) {
    if (vocabulary.is_merge(id)) continue;
    nodes_[id] = {places_[id], 1, id};
    end_node_[id] = id;
  }
  // Short ones first: then what a token begins with is there before it, and stays its longest beginning.
  std::vector<uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return lengths_[a] < lengths_[b]; });
  uint64_t budget = kBuildBudget;
  for (const uint32_t id : order) {
    if (!vocabulary.is_merge(id) || !wanted[id] || places_[id] == kNoToken) continue;
    if (!Insert(vocabulary, id, budget)) break;
  }
}

void MatchTables::PlaceTexts(const Vocabulary& vocabulary, const std::vector<uint8_t>& wanted) {
  std::vector<uint32_t> symbols, depths;
  std::vector<std::pair<uint32_t, uint32_t>> waiting;
  for (uint32_t id = vocabulary.size(); id-- > 0;) {
    // What is part of a later token is found inside that one's words.
    if (!wanted[id] || places_[id] != kNoToken) continue;
    if (text_.size() + lengths_[id] > kMaxText && vocabulary.is_merge(id)) continue;
    symbols.clear();
    depths.clear();
    vocabulary.Expand(id, 0, symbols, depths);
    waiting = {{id, static_cast<uint32_t>(text_.size())}};
    for (size_t i = 0; i < symbols.size(); ++i) {
      text_.push_back(WordOf(symbols[i], i == 0 ? 0 : depths[i - 1] + 1 - depths[i]));
    }
    while (!waiting.empty()) {
      const auto [part, place] = waiting.back();
      waiting.pop_back();
      if (places_[part] != kNoToken) continue;
      places_[part] = place;
      if (!vocabulary.is_merge(part)) continue;
      const Pair pair = vocabulary.pair(part);
      waiting.emplace_back(pair.left, place);
      waiting.emplace_back(pair.right, place + lengths_[pair.left]);
    }
  }
}

bool MatchTables::Insert(const Vocabulary& vocabulary, uint32_t token, uint64_t& budget) {
  const uint32_t left = vocabulary.pair(token).left;
  if (end_node_[left] == kNoToken) return true;
  const uint32_t end = places_[token] + lengths_[token];
  uint32_t at = places_[token] + lengths_[left];
  uint32_t node = end_node_[left];
  uint32_t longest = left;
  while (at < end) {
    if (budget == 0) return false;
    const uint32_t child = children_.Find(ChildKey(node, text_[at]));
    if (child == PairTable::kNone) {
      const auto leaf = static_cast<uint32_t>(nodes_.size());
      nodes_.push_back({at, end - at, kNoToken});
      children_.FindOrAdd(ChildKey(node, text_[at]), leaf);
      node = leaf;
      break;
    }
    const uint32_t size = nodes_[child].size;
    const auto same =
        static_cast<uint32_t>(EqualWords(&text_[at], &text_[nodes_[child].begin], std::min<size_t>(end - at, size)));
    budget -= std::min<uint64_t>(budget, same + 1);
    if (same == size) {
      node = child;
      if (nodes_[child].token != kNoToken) longest = nodes_[child].token;
    } else {
      // The child keeps its lower part, so that the token which it ends does not move.
      const auto upper = static_cast<uint32_t>(nodes_.size());
      nodes_.push_back({nodes_[child].begin, same, kNoToken});
      children_.Erase(ChildKey(node, text_[at]));
      children_.FindOrAdd(ChildKey(node, text_[at]), upper);
      nodes_[child].begin += same;
      nodes_[child].size -= same;
      children_.FindOrAdd(ChildKey(upper, text_[nodes_[child].begin]), child);
      node = upper;
    }
    at += same;
  }
  if (nodes_[node].token != kNoToken) return true;
  nodes_[node].token = token;
  end_node_[token] = node;
  shorter_[token] = longest;
  return true;
}

uint32_t MatchTables::Longest(const uint32_t* words, size_t size, uint64_t& steps) const {
  uint32_t best = words[0] >> 8;
  uint32_t node = best;
  size_t at = 1;
  while (at < size) {
    ++steps;
    node = children_.Find(ChildKey(node, words[at]));
    if (node == PairTable::kNone) break;
    const Node& stretch = nodes_[node];
    if (stretch.size > size - at) break;
    const size_t same = EqualWords(words + at, &text_[stretch.begin], stretch.size);
    steps += same / 8;
    if (same < stretch.size) break;
    at += same;
    if (stretch.token != kNoToken) best = stretch.token;
  }
  return best;
}

bool MatchTables::Stay(uint32_t left, uint32_t right, int64_t delta, uint32_t limit, uint64_t& steps) const {
  // Takes the two apart again, what came last first: at each time the pieces that touch are `left` and `right`, and
  // they touch until the merge `limit`. A merge of them before that would have joined the two tokens.
  while (true) {
    ++steps;
    if (delta >= 0 && delta <= kMaxDelta) {
      const uint32_t merge = ranks_.pairs.Find(Word({left, right, static_cast<uint32_t>(delta)}));
      if (merge != PairTable::kNone && merge < limit) return false;
    }
    const RankTables::Entry& l = ranks_.entries[left];
    const RankTables::Entry& r = ranks_.entries[right];
    if (l.rank == 0 && r.rank == 0) return true;
    if (l.rank > r.rank) {
      limit = l.rank;
      delta -= deltas_[left];
      left = l.right;
    } else {
      // Among places of one merge those to the left go first: a merge of the same rank over the seam would have won.
      limit = r.rank + 1;
      right = r.left;
    }
  }
}

bool MatchScratch::Compatible(const MatchTables& tables, uint32_t left, uint32_t right, int64_t delta,
                              uint64_t& steps) {
  constexpr int64_t kBias = 1 << 14;
  if (delta < -kBias || delta >= kBias) return tables.Compatible(left, right, delta, steps);
  const uint64_t question = uint64_t{left} << 40 | uint64_t{right} << 16 | static_cast<uint64_t>((delta + kBias) << 1);
  uint64_t& answer = answers_[((question ^ question >> 31) * 0x9E3779B97F4A7C15ULL) >> (64 - kAnswerBits)];

  if ((answer ^ question) > 1) answer = question | static_cast<uint64_t>(tables.Compatible(left, right, delta, steps));
  return (answer & 1) != 0;
}

bool MatchScratch::Encode(const std::shared_ptr<const MatchTables>& shared, const ForestView& forest,
                          const std::vector<uint32_t>& words, uint64_t budget, Tokens& out, uint64_t& steps) {
  const MatchTables& tables = *shared;
  if (answers_of_ != shared) {
    answers_.assign(1u << kAnswerBits, ~0ULL);  // no delta gives this question: ids are below 2^24 - 1 here
    answers_of_ = shared;
  }
  const size_t n = forest.size();
  const size_t before = out.size();
  dead_.assign(n / 64 + 1, 0);
  size_t at = 0;
  uint32_t candidate = n > 0 ? tables.Longest(words.data(), n, steps) : 0;
  const uint64_t most = steps + budget;
  while (at < n) {
    ++steps;
    const size_t end = at + tables.length(candidate);
    const bool is_dead = (dead_[end / 64] >> (end % 64) & 1) != 0;
    if (!is_dead && (out.size() == before || Compatible(tables, out.ids.back(), candidate,
                                                        int64_t{forest.depths[at]} - out.depths.back(), steps))) {
      out.ids.push_back(candidate);
      out.depths.push_back(forest.depths[at]);
      out.first_node.push_back(static_cast<uint32_t>(at));
      at = end;
      if (at < n) candidate = tables.Longest(words.data() + at, n - at, steps);
    } else if (tables.shorter(candidate) != kNoToken) {
      candidate = tables.shorter(candidate);
    } else {
      // Whoever comes here again comes with the same tokens, as the encoding of the nodes before is unique.
      dead_[at / 64] |= 1ULL << (at % 64);
      if (out.size() == before) return false;
      candidate = out.ids.back();
      at = out.first_node.back();
      out.ids.pop_back();
      out.depths.pop_back();
      out.first_node.pop_back();
    }
    if (steps > most) break;
  }
  if (at >= n) return true;
  out.ids.resize(before);
  out.depths.resize(before);
  out.first_node.resize(before);
  return false;
}

}  // namespace teller::tpe
