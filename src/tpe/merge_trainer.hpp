#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.hpp"
#include "tpe/corpus.hpp"
#include "tpe/crew.hpp"
#include "tpe/neighbours.hpp"
#include "tpe/pair_table.hpp"
#include "tpe/trainer.hpp"
#include "tpe/vocabulary.hpp"
#include "tpe/weight_walk.hpp"

namespace teller::tpe {

/// The loop of the trainer over tokens in place (slots.hpp). It rests on one fact: two neighbours of which the newer is
/// entry k become neighbours while merge k is applied, at no other time. So the list of a pair's places is made once,
/// complete and ascending, when its newer entry is made; later places only drop out, and counts only fall. A heap whose
/// numbers may be too high, but never too low, then finds the most frequent pair.
class MergeTrainer {
 public:
  /// `columns` as Corpus gives them, but symbols are already tokens of `vocabulary`, in place.
  MergeTrainer(Corpus::Columns columns, const TrainOptions& options, Vocabulary& vocabulary, TrainStats& stats);

  /// Appends merges to the vocabulary. Errors: kLimit (entries).
  base::Status Run(Crew& crew);

 private:
  static constexpr uint32_t kNone = 0xFFFFFFFFu;

  /// A pair that may still be merged. Rows are used again.
  struct PairRow {
    uint64_t word = 0;
    uint64_t count = 0;  ///< of now
    std::unique_ptr<uint32_t[]> places;
    uint32_t size = 0;  ///< of places, those that dropped out included
  };
  struct HeapEntry {
    uint64_t count;  ///< of when it was pushed: never too low
    uint64_t word;
    uint32_t row;
  };
  /// Per worker: what it counted of its part.
  struct Worker {
    Neighbours left;
    Neighbours right;
    std::vector<uint32_t> memo;  ///< rows of left and right, two for each place
    uint32_t begin = 0;          ///< its part of the list
    uint32_t end = 0;
    uint64_t steps = 0;
  };
  /// A merge that is being applied.
  struct Current {
    Pair pair;
    uint32_t id = 0;
    uint32_t left_nodes = 0;
    uint32_t nodes = 0;
  };
  /// Makes the lists of the pairs that the input has.
  class FirstLists;

  void MakeFirstLists(Crew& crew);
  uint32_t NewRow(uint64_t word, uint64_t count, uint32_t size);
  void DropRow(uint32_t row);
  void Push(uint32_t row);
  uint32_t PopBest();
  void Apply(Crew& crew, const Current& merge, uint32_t row);
  void Split(const uint32_t* places, uint32_t size, uint32_t left_nodes, unsigned parts);
  uint32_t JoinPart(const Current& merge, uint32_t* places, Worker& worker);
  void CountPart(const Current& merge, const uint32_t* places, Worker& worker);
  void FillPart(const uint32_t* places, Worker& worker);
  /// Brings the workers' rows together, lowers the counts of pairs that are gone, makes lists for new ones.
  void Settle(const Current& merge, unsigned parts);
  void Lower(const Pair& pair, uint64_t count);
  bool MayMerge(const Pair& pair, uint64_t count) const;
  void NoteBytes(uint64_t extra = 0);

  Corpus::Columns columns_;
  const TrainOptions options_;
  const uint64_t min_count_;
  Vocabulary& vocabulary_;
  TrainStats& stats_;
  std::vector<uint32_t> nodes_;   // by entry
  std::vector<Stretch> weights_;  // stretches of equal weight, by position
  PairTable index_;               // word -> row, of live rows
  std::vector<PairRow> rows_;
  std::vector<uint32_t> free_rows_;
  std::vector<HeapEntry> heap_;
  std::vector<Worker> workers_;
  uint64_t list_bytes_ = 0;
};

}  // namespace teller::tpe
