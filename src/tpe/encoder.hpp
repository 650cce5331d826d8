#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.hpp"
#include "tpe/forest.hpp"
#include "tpe/process_seed.hpp"
#include "tpe/tokens.hpp"
#include "tpe/vocabulary.hpp"

namespace teller::tpe {

/// Steps of loops of one or more calls of Encode, for the linear bound.
struct EncodeStats {
  uint64_t nodes = 0;
  uint64_t tokens = 0;
  uint64_t matched = 0;  ///< nodes of forests for which matching whole tokens sufficed
  uint64_t steps = 0;    ///< all loop steps; bounded by a constant times nodes
};

/// Working memory of Encode, kept between calls so that warm calls do not allocate. Threads: confined, one for each.
class EncodeScratch {
 public:
  EncodeScratch();
  ~EncodeScratch();
  EncodeScratch(EncodeScratch&&) noexcept;
  EncodeScratch& operator=(EncodeScratch&&) noexcept;

 private:
  friend class Encoder;
  struct State;
  std::unique_ptr<State> state_;
};

/// Encodes forests with one vocabulary: applies its merges in the order of ids, occurrences from left to right. The
/// result is that of EncodePlain. Whole tokens are matched against the nodes; where that finds no way soon, pairs are
/// joined through buckets by rank, in linear time whatever the input. Symbols of the forest are base (or unknown) ids
/// of the vocabulary. Lifetime: copies what it needs. Threads: immutable; Encode may run on many threads, each with its
/// own scratch.
class Encoder {
 public:
  explicit Encoder(const Vocabulary& vocabulary, uint64_t hash_seed = ProcessSeed());

  /// Replaces `out`. Errors: those of ValidateForest; kBadFormat (a symbol is no base id), with the node. Cost:
  /// O(nodes).
  base::Status Encode(const ForestView& forest, EncodeScratch& scratch, Tokens& out,
                      EncodeStats* stats = nullptr) const;

 private:
  friend class StreamEncoder;
  struct Tables;

  /// What Encode promises about its input. Cost: O(nodes), a branch for each.
  base::Status Check(const ForestView& forest) const;
  /// Writes what MatchTables compares. False when the forest is not valid, or an extended vocabulary makes a closer
  /// look necessary.
  bool MakeWords(const ForestView& forest, std::vector<uint32_t>& words) const;

  std::shared_ptr<const Tables> tables_;  // shared with the scratches that keep answers about it
};

}  // namespace teller::tpe
