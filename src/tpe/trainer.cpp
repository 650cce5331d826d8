#include "tpe/trainer.hpp"

#include "tpe/plain.hpp"

namespace teller::tpe {

base::Result<Vocabulary> Train(Corpus&& corpus, const TrainOptions& options, TrainStats*) {
  return TrainPlain(corpus, options);
}

base::Result<Vocabulary> Extend(const Vocabulary& old, Corpus&& corpus, const TrainOptions& options, TrainStats*) {
  return ExtendPlain(old, corpus, options);
}

}  // namespace teller::tpe
