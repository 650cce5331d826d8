#pragma once

#include <cstdint>
#include <vector>

#include "base/status.hpp"
#include "encode/forest.hpp"
#include "tpe/corpus.hpp"
#include "tpe/vocabulary.hpp"

namespace teller::encode {

/// Adds the classes of all layers, so that a vocabulary trained on the corpus knows an unknown operator of any layer.
base::Status AddLayers(tpe::Corpus& corpus);

/// The symbols of a run as symbols of a corpus. Threads: confined.
class CorpusSymbols {
 public:
  explicit CorpusSymbols(tpe::Corpus& corpus) : corpus_(corpus) {}
  /// Ids of `rows` (of `table`). Errors: those of Corpus::AddSymbol.
  base::Result<std::vector<uint32_t>> Of(std::span<const uint32_t> rows, const SymbolTable& table);

 private:
  tpe::Corpus& corpus_;
  std::vector<uint32_t> ids_;  // by row
};

/// An unknown operator of a forest: the vocabulary has its layer, not its name.
struct UnknownNode {
  uint32_t node = 0;  ///< in pre-order
  uint64_t name_hash = 0;
};

/// The symbols of a run as entries of a vocabulary. Lifetime: the vocabulary and the table outlive it. Threads:
/// confined.
class VocabularySymbols {
 public:
  VocabularySymbols(const tpe::Vocabulary& vocabulary, const SymbolTable& table);

  /// Errors: kBadFormat when the vocabulary lacks the class of a layer (it was not trained on runs).
  base::Status Check() const;
  /// Base or unknown entries of `rows`; unknown nodes are appended to `unknown` when it is given.
  std::vector<uint32_t> Of(std::span<const uint32_t> rows, std::vector<UnknownNode>* unknown = nullptr);

 private:
  const tpe::Vocabulary& vocabulary_;
  const SymbolTable& table_;
  std::vector<uint32_t> classes_;     // by layer; UINT32_MAX = lacking
  std::vector<tpe::Symbol> symbols_;  // by row
};

}  // namespace teller::encode
