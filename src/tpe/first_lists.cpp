#include <algorithm>
#include <atomic>
#include <utility>

#include "tpe/merge_trainer.hpp"
#include "tpe/slots.hpp"

namespace teller::tpe {

/// Counts the pairs of the input once and makes their lists. Where pairs differ so much that a table of them would be
/// larger than the input, it is done for one half of the words' hashes after the other, and so on.
class MergeTrainer::FirstLists {
 public:
  FirstLists(MergeTrainer& trainer, Crew& crew)
      : trainer_(trainer), crew_(crew), memo_(trainer.columns_.symbols.size()), parts_(crew.threads()) {
    const uint64_t total = memo_.size();
    max_rows_ = std::max<uint64_t>(1u << 16, total / 16) / parts_.size();
    for (unsigned i = 0; i < parts_.size(); ++i) {
      parts_[i].begin = static_cast<uint32_t>(total * i / parts_.size());
      parts_[i].end = static_cast<uint32_t>(total * (i + 1) / parts_.size());
    }
  }

  void Make() {
    std::vector<Share> waiting = {{0, 0}};
    while (!waiting.empty()) {
      const Share share = waiting.back();
      waiting.pop_back();
      if (Count(share)) {
        Collect();
        crew_.Run([&](unsigned worker) { Fill(parts_[worker]); });
      } else {
        waiting.push_back({share.bits + 1, share.value});
        waiting.push_back({share.bits + 1, share.value | 1u << share.bits});
      }
    }
  }

 private:
  /// A share of so many bits is never halved again: it has too few different pairs to matter.
  static constexpr unsigned kMostBits = 16;

  /// The words whose hash ends in `bits` bits of `value`.
  struct Share {
    unsigned bits;
    uint32_t value;

    bool Has(uint64_t word) const {
      // Other bits than those by which tables find their slots.
      const uint64_t hash = (word ^ word >> 29) * 0xD6E8FEB86659FD93ULL >> 32;
      return ((hash ^ value) & ((1ULL << bits) - 1)) == 0;
    }
  };
  struct Row {
    uint64_t word;
    uint64_t count = 0;
    uint32_t* into = nullptr;
    uint32_t size = 0;
  };
  struct Part {
    PairTable table;
    std::vector<Row> rows;
    uint32_t begin = 0;
    uint32_t end = 0;
  };

  /// False when there were too many different pairs.
  bool Count(const Share& share) {
    std::atomic<bool> is_full = false;
    crew_.Run([&](unsigned worker) {
      Part& part = parts_[worker];
      part.table = PairTable(trainer_.options_.hash_seed);
      part.rows.clear();
      if (!CountPart(share, part)) is_full = true;
    });
    trainer_.stats_.list_steps += memo_.size();
    return !is_full;
  }
  bool CountPart(const Share& share, Part& part) {
    const uint32_t* const tokens = trainer_.columns_.symbols.data();
    const uint32_t* const depths = trainer_.columns_.depths.data();
    WeightWalk weights(trainer_.weights_);
    for (uint32_t i = part.begin; i < part.end; ++i) {
      memo_[i] = kNone;
      if (!slots::IsToken(tokens[i])) continue;
      const uint32_t next = i + trainer_.nodes_[tokens[i]];
      if (tokens[next] == slots::kBarrier) continue;
      const uint32_t delta = depths[next] - depths[i];
      if (delta > kMaxDelta) continue;  // negative ones wrap around
      const uint64_t word = Word({tokens[i], tokens[next], delta});
      if (!share.Has(word)) continue;
      const uint32_t row = part.table.FindOrAdd(word, static_cast<uint32_t>(part.rows.size()));
      if (row == part.rows.size()) {
        if (row >= max_rows_ && share.bits < kMostBits) return false;
        part.rows.push_back({word});
      }
      part.rows[row].count += weights.At(i);
      ++part.rows[row].size;
      memo_[i] = row;
    }
    return true;
  }
  /// Makes lists for what all parts counted; a part's places go behind those of the parts before it.
  void Collect() {
    PairTable table(trainer_.options_.hash_seed);
    std::vector<Row> all;
    std::vector<std::vector<std::pair<uint32_t, uint32_t>>> where(parts_.size());  // row of all, offset in its list
    for (size_t i = 0; i < parts_.size(); ++i) {
      for (const Row& counted : parts_[i].rows) {
        const uint32_t row = table.FindOrAdd(counted.word, static_cast<uint32_t>(all.size()));
        if (row == all.size()) all.push_back({counted.word});
        where[i].emplace_back(row, all[row].size);
        all[row].count += counted.count;
        all[row].size += counted.size;
      }
    }
    for (Row& row : all) {
      if (!trainer_.MayMerge(PairOf(row.word), row.count)) continue;
      row.into = trainer_.rows_[trainer_.NewRow(row.word, row.count, row.size)].places.get();
    }
    uint64_t bytes = memo_.size() * sizeof(uint32_t) + table.bytes() + all.capacity() * sizeof(Row);
    for (size_t i = 0; i < parts_.size(); ++i) {
      for (size_t row = 0; row < where[i].size(); ++row) {
        const auto& [whole, offset] = where[i][row];
        if (all[whole].into != nullptr) parts_[i].rows[row].into = all[whole].into + offset;
      }
      bytes += parts_[i].table.bytes() + parts_[i].rows.capacity() * sizeof(Row) + where[i].capacity() * 8;
    }
    trainer_.NoteBytes(bytes);
  }
  void Fill(Part& part) {
    for (uint32_t i = part.begin; i < part.end; ++i) {
      if (memo_[i] == kNone || part.rows[memo_[i]].into == nullptr) continue;
      *part.rows[memo_[i]].into++ = i;
    }
  }

  MergeTrainer& trainer_;
  Crew& crew_;
  std::vector<uint32_t> memo_;  // for each place its row of the part
  std::vector<Part> parts_;
  uint64_t max_rows_ = 0;
};

void MergeTrainer::MakeFirstLists(Crew& crew) {
  FirstLists(*this, crew).Make();
}

}  // namespace teller::tpe
