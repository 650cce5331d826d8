#pragma once

#include <cstdint>

#include "base/status.hpp"
#include "tpe/corpus.hpp"
#include "tpe/vocabulary.hpp"

namespace teller::tpe {

struct TrainOptions {
  uint32_t max_merges = 4096;                 ///< merges to learn, on top of the bases; 0 = bases only
  uint64_t min_count = 2;                     ///< a pair with a smaller weighted count is not merged; 0 counts as 1
  uint64_t min_base_count = 1;                ///< names with a smaller weighted count become unknown
  uint32_t max_bases = kMaxEntries / 2;       ///< names beyond the most frequent ones become unknown
  uint32_t max_token_nodes = kMaxTokenNodes;  ///< pairs with more nodes are not merged
  unsigned threads = 1;                       ///< 0 = one per core; never visible in the result
  uint64_t hash_seed = 0;                     ///< of the trainer's tables; never visible in the result
};

/// What training did. Operations count steps of loops, for the linear bound.
struct TrainStats {
  uint64_t nodes = 0;           ///< stored nodes that were trained on
  uint64_t weighted_nodes = 0;  ///< nodes times weight
  uint64_t tokens = 0;          ///< stored tokens that are left
  uint64_t pairs_seen = 0;      ///< different pairs that ever had the minimal count
  uint64_t merged = 0;          ///< pairs of neighbours that were joined
  uint64_t occurrences = 0;     ///< entries of occurrence lists ever made; at most 3 for each node
  uint64_t list_steps = 0;      ///< entries looked at
  uint64_t heap_pops = 0;
  uint64_t peak_bytes = 0;  ///< of all containers at once, the corpus's columns included
};

/// Learns a vocabulary. Bases: one unknown entry for each class, classes ordered by name; then names ordered by
/// weighted count, highest first, then class name, then name, as bytes. Merges: again and again the pair with the
/// highest weighted count of neighbouring positions, ties to the smallest (left, right, delta); its occurrences are
/// joined from left to right. The corpus is used up. Errors: kUsage (options), kLimit (entries). Source:
/// docs/concepts/tpe.md.
base::Result<Vocabulary> Train(Corpus&& corpus, const TrainOptions& options, TrainStats* stats = nullptr);

/// The same on top of `old`, whose entries keep their ids: classes and names that it lacks are appended, the corpus is
/// encoded with the old merges, and training goes on from there; `max_merges` counts the new ones.
/// Encoding takes up to 44 more bytes for each node of the longest sequence that a thread works on.
base::Result<Vocabulary> Extend(const Vocabulary& old, Corpus&& corpus, const TrainOptions& options,
                                TrainStats* stats = nullptr);

}  // namespace teller::tpe
