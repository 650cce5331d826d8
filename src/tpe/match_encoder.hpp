#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tpe/forest.hpp"
#include "tpe/pair_table.hpp"
#include "tpe/rank_encoder.hpp"
#include "tpe/tokens.hpp"
#include "tpe/vocabulary.hpp"

namespace teller::tpe {

/// Finds encodings by matching whole tokens instead of joining pairs. A sequence of tokens is the encoding of its nodes
/// exactly when each token is the encoding of its own nodes and each two neighbours are the encoding of theirs
/// ("compatible"); see docs/concepts/tpe.md. So it takes the longest token that matches and is compatible with the one
/// before, and goes back where that leads nowhere. A token costs a comparison of memory, however many pairs it is made
/// of. Only tokens that fit in a bounded table are matched; without the others it may fail, never err. Threads:
/// immutable.
class MatchTables {
 public:
  MatchTables(const Vocabulary& vocabulary, const RankTables& ranks, uint64_t hash_seed);

  /// What a node looks like inside a token: its symbol and how much less deep than a child of the node before it is.
  /// What is farther up than the low byte can say matches nothing.
  static constexpr uint32_t kFar = 0xFF;
  static uint32_t WordOf(uint32_t symbol, uint32_t up) { return symbol << 8 | (up < kFar ? up : kFar); }

  /// False when matching is not worth trying.
  bool usable() const { return !nodes_.empty(); }
  uint32_t length(uint32_t token) const { return lengths_[token]; }
  /// The longest token that is a proper beginning of this one, or kNoToken.
  uint32_t shorter(uint32_t token) const { return shorter_[token]; }
  /// The longest token that matches at `words[0]`, whose low byte is not looked at; `size` words are there. Adds words
  /// looked at.
  uint32_t Longest(const uint32_t* words, size_t size, uint64_t& steps) const;
  /// Whether two neighbouring tokens, the right one `delta` deeper, stay as they are when encoded together. Adds pairs
  /// looked up.
  bool Compatible(uint32_t left, uint32_t right, int64_t delta, uint64_t& steps) const {
    return Stay(left, right, delta, kNoToken, steps);
  }

 private:
  /// A stretch of words below its parent; a token ends where the stretch does, or none.
  struct Node {
    uint32_t begin;  ///< in text_
    uint32_t size;
    uint32_t token;
  };

  /// The same, looking at merges before `limit` only.
  bool Stay(uint32_t left, uint32_t right, int64_t delta, uint32_t limit, uint64_t& steps) const;
  void PlaceTexts(const Vocabulary& vocabulary, const std::vector<uint8_t>& wanted);
  bool Insert(const Vocabulary& vocabulary, uint32_t token, uint64_t& budget);

  const RankTables& ranks_;
  std::vector<uint32_t> deltas_;    // by id
  std::vector<uint32_t> lengths_;   // by id
  std::vector<uint32_t> shorter_;   // by id
  std::vector<uint32_t> places_;    // by id: where its words are in text_
  std::vector<uint32_t> end_node_;  // by id: the node that it ends, kNoToken when it is not matched
  std::vector<uint32_t> text_;
  std::vector<Node> nodes_;  // node id of a base is its id
  PairTable children_;       // (node, word) -> node
};

/// Working memory of matching. Threads: confined.
class MatchScratch {
 public:
  /// `words` are those of the forest. Appends to `out`, or gives false and leaves `out` as it was: when there is no way
  /// with the tokens that are matched, or when the way took more than `budget` steps.
  bool Encode(const std::shared_ptr<const MatchTables>& shared, const ForestView& forest,
              const std::vector<uint32_t>& words, uint64_t budget, Tokens& out, uint64_t& steps);

 private:
  /// Answers of Compatible, by a hash of the question.
  bool Compatible(const MatchTables& tables, uint32_t left, uint32_t right, int64_t delta, uint64_t& steps);

  static constexpr unsigned kAnswerBits = 16;
  std::vector<uint64_t> answers_;
  std::shared_ptr<const MatchTables> answers_of_;  // held, so that no other table can come to its address
  std::vector<uint64_t> dead_;  // bit by position: the encoding of the nodes before it cannot be continued
};

}  // namespace teller::tpe
