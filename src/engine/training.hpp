#pragma once

#include <string>
#include <vector>

#include "engine/structures.hpp"
#include "tpe/trainer.hpp"
#include "tpe/vocabulary.hpp"

namespace teller::engine {

/// Names that the runs have fewer times are learned as unknown operators of their layer: so the pairs around operators
/// that only later runs have are learned too.
inline constexpr uint64_t kFewestOfName = 3;

/// A vocabulary and what it was learned from.
struct Training {
  tpe::Vocabulary vocabulary;
  tpe::TrainStats stats;
  uint64_t files = 0;
  std::vector<std::string> engines;  ///< order: by name, each once
  std::vector<Structures::Skipped> skipped;
};

/// Learns `merges` merges from all segments; on top of `old` when it is given, whose ids keep their meaning.
/// Independent of the order of runs and of the number of threads. Errors: those of tpe::Train and tpe::Extend.
base::Result<Training> TrainVocabulary(const Structures& structures, uint32_t merges, const tpe::Vocabulary* old,
                                       unsigned threads, base::Progress* progress);

}  // namespace teller::engine
