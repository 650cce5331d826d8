#pragma once

#include <cstdint>
#include <vector>

#include "engine/structures.hpp"
#include "tpe/tokens.hpp"
#include "tpe/vocabulary.hpp"

namespace teller::engine {

/// One piece as tokens.
struct EncodedPiece {
  tpe::Tokens tokens;
  uint64_t unknown = 0;  ///< nodes whose name the vocabulary lacks
};

/// Encodes the pieces whose number is in `pieces` (by row; empty = all), on several threads; others stay empty. Order:
/// that of the pieces. Errors: those of VocabularySymbols::Check and Encoder::Encode, kCancelled.
base::Result<std::vector<EncodedPiece>> EncodePieces(const Structures& structures, const tpe::Vocabulary& vocabulary,
                                                     const std::vector<bool>& pieces, unsigned threads,
                                                     base::Progress* progress);

}  // namespace teller::engine
