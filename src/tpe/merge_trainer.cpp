#include "tpe/merge_trainer.hpp"

#include <algorithm>
#include <atomic>
#include <tuple>
#include <utility>

#include "tpe/slots.hpp"

namespace teller::tpe {
namespace {

/// Lists shorter than this are worked by one thread: handing out work would take longer.
constexpr uint32_t kWorthSharing = 1u << 14;

/// Slots are read and written by several threads at once while a merge is applied. What one thread reads of another's
/// part only decides whether a place dropped out, and the answer is the same before and after the other's write.
uint32_t Load(uint32_t& slot) {
  return std::atomic_ref<uint32_t>(slot).load(std::memory_order_relaxed);
}
void Store(uint32_t& slot, uint32_t value) {
  std::atomic_ref<uint32_t>(slot).store(value, std::memory_order_relaxed);
}

}  // namespace

MergeTrainer::MergeTrainer(Corpus::Columns columns, const TrainOptions& options, Vocabulary& vocabulary,
                           TrainStats& stats)
    : columns_(std::move(columns)),
      options_(options),
      min_count_(std::max<uint64_t>(options.min_count, 1)),
      vocabulary_(vocabulary),
      stats_(stats),
      index_(options.hash_seed) {
  for (uint32_t id = 0; id < vocabulary.size(); ++id) nodes_.push_back(vocabulary.node_count(id));
  for (const Corpus::Sequence& sequence : columns_.sequences) {
    if (weights_.empty() || weights_.back().weight != sequence.weight)
      weights_.push_back({sequence.begin, sequence.weight});
  }
}

bool MergeTrainer::MayMerge(const Pair& pair, uint64_t count) const {
  return count >= min_count_ && pair.delta <= kMaxDelta &&
         uint64_t{nodes_[pair.left]} + nodes_[pair.right] <= options_.max_token_nodes;
}

void MergeTrainer::NoteBytes(uint64_t extra) {
  uint64_t bytes = extra + list_bytes_ + index_.bytes() + rows_.capacity() * sizeof(PairRow) +
                   heap_.capacity() * sizeof(HeapEntry) +
                   (free_rows_.capacity() + nodes_.capacity()) * sizeof(uint32_t) +
                   weights_.capacity() * sizeof(Stretch) + columns_.sequences.capacity() * sizeof(Corpus::Sequence) +
                   (columns_.symbols.capacity() + columns_.depths.capacity()) * sizeof(uint32_t);
  for (const Worker& worker : workers_) {
    bytes += worker.left.bytes() + worker.right.bytes() + worker.memo.capacity() * sizeof(uint32_t);
  }
  stats_.peak_bytes = std::max(stats_.peak_bytes, bytes);
}

uint32_t MergeTrainer::NewRow(uint64_t word, uint64_t count, uint32_t size) {
  uint32_t row;
  if (free_rows_.empty()) {
    row = static_cast<uint32_t>(rows_.size());
    rows_.emplace_back();
  } else {
    row = free_rows_.back();
    free_rows_.pop_back();
  }
  rows_[row] = {word, count, std::make_unique_for_overwrite<uint32_t[]>(size), size};
  list_bytes_ += uint64_t{size} * sizeof(uint32_t);
  index_.FindOrAdd(word, row);
  Push(row);
  ++stats_.pairs_seen;
  stats_.occurrences += size;
  return row;
}

void MergeTrainer::DropRow(uint32_t row) {
  index_.Erase(rows_[row].word);
  list_bytes_ -= uint64_t{rows_[row].size} * sizeof(uint32_t);
  rows_[row] = PairRow{};
  free_rows_.push_back(row);
}

namespace {

/// Whether a goes below b in the heap: smaller count, then larger word.
constexpr auto kBelow = [](const auto& a, const auto& b) {
  return std::tuple(a.count, ~a.word) < std::tuple(b.count, ~b.word);
};

}  // namespace

void MergeTrainer::Push(uint32_t row) {
  heap_.push_back({rows_[row].count, rows_[row].word, row});
  std::push_heap(heap_.begin(), heap_.end(), kBelow);
}

uint32_t MergeTrainer::PopBest() {
  while (!heap_.empty()) {
    ++stats_.heap_pops;
    const HeapEntry top = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end(), kBelow);
    heap_.pop_back();
    const PairRow& row = rows_[top.row];
    if (row.count == 0 || row.word != top.word) continue;  // dropped, perhaps used for another pair
    if (row.count == top.count) return top.row;
    Push(top.row);
  }
  return kNone;
}

base::Status MergeTrainer::Run(Crew& crew) {
  workers_.resize(crew.threads());
  if (columns_.sequences.empty() || options_.max_merges == 0) return {};
  MakeFirstLists(crew);
  for (uint32_t merge = 0; merge < options_.max_merges; ++merge) {
    const uint32_t row = PopBest();
    if (row == kNone) break;
    Current current;
    current.pair = PairOf(rows_[row].word);
    const auto id = vocabulary_.AddMerge(current.pair);
    if (!id) return id.error();
    current.id = *id;
    current.left_nodes = nodes_[current.pair.left];
    current.nodes = vocabulary_.node_count(*id);
    nodes_.push_back(current.nodes);
    Apply(crew, current, row);
  }
  return {};
}

void MergeTrainer::Split(const uint32_t* places, uint32_t size, uint32_t left_nodes, unsigned parts) {
  uint32_t begin = 0;
  for (unsigned part = 0; part < parts; ++part) {
    auto end = static_cast<uint32_t>(uint64_t{size} * (part + 1) / parts);
    end = std::max(end, begin);
    // Places that share a token belong to one part: which of them are joined depends on the first of their run.
    while (end > begin && end < size && places[end] - places[end - 1] == left_nodes) ++end;
    workers_[part].begin = begin;
    workers_[part].end = end;
    begin = end;
  }
}

uint32_t MergeTrainer::JoinPart(const Current& merge, uint32_t* places, Worker& worker) {
  uint32_t* const tokens = columns_.symbols.data();
  uint32_t kept = worker.begin;
  for (uint32_t at = worker.begin; at < worker.end; ++at) {
    const uint32_t left = places[at];
    const uint32_t right = left + merge.left_nodes;
    if (Load(tokens[left]) != merge.pair.left || Load(tokens[right]) != merge.pair.right) continue;
    Store(tokens[left], merge.id);
    Store(tokens[right], slots::kDead);
    Store(tokens[left + merge.nodes - 1], slots::kDead | merge.nodes);
    places[kept++] = left;
  }
  worker.steps += worker.end - worker.begin;
  return kept;
}

void MergeTrainer::CountPart(const Current& merge, const uint32_t* places, Worker& worker) {
  const uint32_t* const tokens = columns_.symbols.data();
  const uint32_t* const depths = columns_.depths.data();
  // Deltas of the pair that goes and of the one that comes differ by the merge's own: one of them may be small enough.
  constexpr uint32_t kFarthest = 2 * kMaxDelta + 1;
  WeightWalk weights(weights_);
  worker.memo.resize(2 * size_t{worker.end - worker.begin});
  uint32_t* memo = worker.memo.data();
  for (uint32_t at = worker.begin; at < worker.end; ++at) {
    const uint32_t i = places[at];
    const uint64_t weight = weights.At(i);
    *memo = kNone;
    if (tokens[i - 1] != slots::kBarrier) {
      const uint32_t before = slots::Before(tokens, i);
      const uint32_t delta = depths[i] - depths[before];
      // Where another new token stands before, it counts the two as seen from there.
      if (tokens[before] != merge.id && delta <= kMaxDelta) {
        *memo = worker.left.Find(tokens[before], delta);
        Neighbours::Row& row = worker.left.rows()[*memo];
        ++row.size;
        row.count += weight;
      }
    }
    ++memo;
    *memo = kNone;
    const uint32_t after = i + merge.nodes;
    const uint32_t delta = depths[after] - depths[i];
    if (tokens[after] != slots::kBarrier && delta <= kFarthest) {
      *memo = worker.right.Find(tokens[after], delta);
      Neighbours::Row& row = worker.right.rows()[*memo];
      ++row.size;
      row.count += weight;
    }
    ++memo;
  }
  worker.steps += 2 * uint64_t{worker.end - worker.begin};
}

void MergeTrainer::FillPart(const uint32_t* places, Worker& worker) {
  const uint32_t* const tokens = columns_.symbols.data();
  const uint32_t* memo = worker.memo.data();
  for (uint32_t at = worker.begin; at < worker.end; ++at, memo += 2) {
    const uint32_t i = places[at];
    if (memo[0] != kNone) {
      Neighbours::Row& row = worker.left.rows()[memo[0]];
      if (row.into != nullptr) *row.into++ = slots::Before(tokens, i);
    }
    if (memo[1] != kNone) {
      Neighbours::Row& row = worker.right.rows()[memo[1]];
      if (row.into != nullptr) *row.into++ = i;
    }
  }
  worker.steps += worker.end - worker.begin;
}

void MergeTrainer::Lower(const Pair& pair, uint64_t count) {
  if (pair.delta > kMaxDelta) return;
  const uint32_t row = index_.Find(Word(pair));
  if (row == PairTable::kNone) return;
  rows_[row].count -= count;
  if (rows_[row].count < min_count_) DropRow(row);
}

void MergeTrainer::Settle(const Current& merge, unsigned parts) {
  // A part's places go behind those of the parts before it: `into` of the first worker's rows keeps the list until the
  // end.
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> where(2 *
                                                                parts);  // worker's row -> (first worker's row, offset)
  for (unsigned part = 1; part < parts; ++part) {
    for (const bool is_left : {true, false}) {
      Neighbours& all = is_left ? workers_[0].left : workers_[0].right;
      for (const Neighbours::Row& row : (is_left ? workers_[part].left : workers_[part].right).rows()) {
        const uint32_t whole = all.Find(row.id, row.delta);
        where[2 * part + is_left].emplace_back(whole, all.rows()[whole].size);
        all.rows()[whole].size += row.size;
        all.rows()[whole].count += row.count;
      }
    }
  }
  const auto list_for = [&](const Pair& pair, const Neighbours::Row& row) {
    return MayMerge(pair, row.count) ? rows_[NewRow(Word(pair), row.count, row.size)].places.get() : nullptr;
  };
  for (Neighbours::Row& row : workers_[0].left.rows()) {
    Lower({row.id, merge.pair.left, row.delta}, row.count);
    row.into = list_for({row.id, merge.id, row.delta}, row);
  }
  for (Neighbours::Row& row : workers_[0].right.rows()) {
    const uint32_t was = row.id == merge.id ? merge.pair.left : row.id;
    if (row.delta >= merge.pair.delta) Lower({merge.pair.right, was, row.delta - merge.pair.delta}, row.count);
    row.into = list_for({merge.id, row.id, row.delta}, row);
  }
  for (unsigned part = 1; part < parts; ++part) {
    for (const bool is_left : {true, false}) {
      Neighbours& all = is_left ? workers_[0].left : workers_[0].right;
      auto& rows = (is_left ? workers_[part].left : workers_[part].right).rows();
      for (size_t i = 0; i < rows.size(); ++i) {
        const auto& [whole, offset] = where[2 * part + is_left][i];
        uint32_t* const list = all.rows()[whole].into;
        rows[i].into = list == nullptr ? nullptr : list + offset;
      }
    }
  }
}

void MergeTrainer::Apply(Crew& crew, const Current& merge, uint32_t row) {
  const std::unique_ptr<uint32_t[]> places = std::move(rows_[row].places);
  const uint32_t size = rows_[row].size;
  DropRow(row);
  const unsigned parts = size < kWorthSharing ? 1 : crew.threads();
  const auto each = [&](const auto& work) {
    if (parts == 1) return work(workers_[0]);
    crew.Run([&](unsigned worker) { work(workers_[worker]); });
  };
  Split(places.get(), size, merge.left_nodes, parts);
  for (unsigned part = 0; part < parts; ++part) {
    workers_[part].left.Prepare(vocabulary_.size());
    workers_[part].right.Prepare(vocabulary_.size());
  }
  each([&](Worker& worker) { worker.end = JoinPart(merge, places.get(), worker); });
  each([&](Worker& worker) { CountPart(merge, places.get(), worker); });
  Settle(merge, parts);
  each([&](Worker& worker) { FillPart(places.get(), worker); });
  NoteBytes(uint64_t{size} * sizeof(uint32_t));
  for (unsigned part = 0; part < parts; ++part) {
    Worker& worker = workers_[part];
    stats_.merged += worker.end - worker.begin;
    stats_.list_steps += std::exchange(worker.steps, 0);
    worker.left.Clear();
    worker.right.Clear();
    if (worker.memo.capacity() > (1u << 20)) worker.memo = {};
  }
}

}  // namespace teller::tpe
