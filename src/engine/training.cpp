#include "engine/training.hpp"

#include <set>

namespace teller::engine {

base::Result<Training> TrainVocabulary(const Structures& structures, uint32_t merges, const tpe::Vocabulary* old,
                                       unsigned threads, base::Progress* progress) {
  auto corpus = CorpusOf(structures, {});
  if (!corpus) return corpus.error();
  if (progress != nullptr) progress->Update("training", 0, 0);
  Training out{.files = structures.sources.size(), .skipped = structures.skipped};
  const tpe::TrainOptions options{.max_merges = merges, .min_base_count = kFewestOfName, .threads = threads};
  auto learned = old == nullptr ? tpe::Train(std::move(*corpus), options, &out.stats)
                                : tpe::Extend(*old, std::move(*corpus), options, &out.stats);
  if (!learned) return learned.error();
  out.vocabulary = std::move(*learned);
  std::set<std::string> engines;
  for (const Structures::Source& source : structures.sources) engines.insert(source.engine);
  out.engines.assign(engines.begin(), engines.end());
  return out;
}

}  // namespace teller::engine
