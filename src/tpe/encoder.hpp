#pragma once

#include <cstdint>
#include <memory>

#include "base/status.hpp"
#include "tpe/forest.hpp"
#include "tpe/tokens.hpp"
#include "tpe/vocabulary.hpp"

namespace teller::tpe {

/// Steps of loops of one or more calls of Encode, for the linear bound.
struct EncodeStats {
  uint64_t nodes = 0;
  uint64_t tokens = 0;
  uint64_t steps = 0;  ///< all loop steps; bounded by a constant times nodes
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
/// result is that of EncodePlain. Symbols of the forest are base (or unknown) ids of the vocabulary. Lifetime: copies
/// what it needs. Threads: immutable; Encode may run on many threads, each with its own scratch.
class Encoder {
 public:
  explicit Encoder(const Vocabulary& vocabulary, uint64_t hash_seed = 0);
  ~Encoder();
  Encoder(Encoder&&) noexcept;
  Encoder& operator=(Encoder&&) noexcept;

  /// Replaces `out`. Errors: those of ValidateForest; kBadFormat (a symbol is no base id), with the node. Cost:
  /// O(nodes).
  base::Status Encode(const ForestView& forest, EncodeScratch& scratch, Tokens& out,
                      EncodeStats* stats = nullptr) const;

 private:
  friend class StreamEncoder;
  struct Tables;
  std::unique_ptr<Tables> tables_;
};

}  // namespace teller::tpe
