#include "tpe/rank_encoder.hpp"

#include "tpe/slots.hpp"

namespace teller::tpe {
namespace {

constexpr uint32_t kEnd = 0xFFFFFFFFu;

}  // namespace

RankTables::RankTables(const Vocabulary& vocabulary, uint64_t hash_seed) : pairs(hash_seed) {
  entries.reserve(vocabulary.size());
  for (uint32_t id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.is_merge(id)) {
      const Pair pair = vocabulary.pair(id);
      entries.push_back({pair.left, pair.right, vocabulary.node_count(id), id});
      pairs.FindOrAdd(Word(pair), id);
    } else {
      entries.push_back({id, id, 1, 0});
    }
  }
}

void RankScratch::Put(uint32_t merge, uint32_t position) {
  const auto row = static_cast<uint32_t>(pool_.size());
  pool_.push_back({position, kEnd});
  Bucket& bucket = buckets_[merge];
  if (bucket.head == kEnd) {
    bucket.head = row;
    touched_.Add(merge);
  } else {
    pool_[bucket.tail].next = row;
  }
  bucket.tail = row;
}

void RankScratch::PutPair(const RankTables& tables, const ForestView& forest, uint32_t left, uint32_t right) {
  // A negative delta becomes a large number and is refused with the too large ones.
  const uint32_t delta = forest.depths[right] - forest.depths[left];
  if (delta > kMaxDelta) return;
  const uint32_t merge = tables.pairs.Find(Word({tokens_[left], tokens_[right], delta}));
  if (merge != PairTable::kNone) Put(merge, left);
}

void RankScratch::Encode(const RankTables& tables, const ForestView& forest, uint32_t first, Tokens& out,
                         uint64_t& steps) {
  const auto n = static_cast<uint32_t>(forest.size());
  if (buckets_.size() != tables.entries.size()) {
    buckets_.assign(tables.entries.size(), {kEnd, kEnd});
    touched_.Reset(static_cast<uint32_t>(tables.entries.size()));
  }
  pool_.clear();
  tokens_.assign(forest.symbols.begin(), forest.symbols.end());
  for (uint32_t i = 1; i < n; ++i) PutPair(tables, forest, i - 1, i);
  uint64_t work = n;
  while (!touched_.empty()) {
    const uint32_t merge = touched_.PopSmallest();
    const RankTables::Entry& entry = tables.entries[merge];
    const uint32_t left_nodes = tables.entries[entry.left].nodes;
    uint32_t row = buckets_[merge].head;
    buckets_[merge] = {kEnd, kEnd};
    for (++work; row != kEnd; row = pool_[row].next, ++work) {
      const uint32_t i = pool_[row].position;
      const uint32_t j = i + left_nodes;
      // The same two tokens at the same place have the same depths: nothing else is to check.
      if (tokens_[i] != entry.left || tokens_[j] != entry.right) continue;
      slots::Join(tokens_.data(), i, j, entry.nodes, merge);
      if (i > 0) PutPair(tables, forest, slots::Before(tokens_.data(), i), i);
      if (i + entry.nodes < n) PutPair(tables, forest, i, i + entry.nodes);
    }
  }
  steps += work;
  for (uint32_t i = 0; i < n; i += tables.entries[tokens_[i]].nodes) {
    out.ids.push_back(tokens_[i]);
    out.depths.push_back(forest.depths[i]);
    out.first_node.push_back(first + i);
  }
}

}  // namespace teller::tpe
