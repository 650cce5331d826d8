#pragma once

#include "base/status.hpp"
#include "tpe/corpus.hpp"
#include "tpe/tokens.hpp"
#include "tpe/trainer.hpp"
#include "tpe/vocabulary.hpp"

namespace teller::tpe {

/// Train as the definition states it: counts all pairs anew for each merge. For tests and small inputs. Cost: O(merges
/// x nodes).
base::Result<Vocabulary> TrainPlain(const Corpus& corpus, const TrainOptions& options);

/// Extend as the definition states it.
base::Result<Vocabulary> ExtendPlain(const Vocabulary& old, const Corpus& corpus, const TrainOptions& options);

/// Encode as the definition states it: one walk over the sequence for each merge. Cost: O(merges x nodes).
base::Result<Tokens> EncodePlain(const Vocabulary& vocabulary, const ForestView& forest);

}  // namespace teller::tpe
