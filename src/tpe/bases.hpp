#pragma once

#include <cstdint>
#include <vector>

#include "base/status.hpp"
#include "tpe/corpus.hpp"
#include "tpe/trainer.hpp"
#include "tpe/vocabulary.hpp"

namespace teller::tpe {

/// Checks what both trainers refuse. Errors: kUsage.
base::Status CheckOptions(const TrainOptions& options);

/// Appends the classes and names of `corpus` that `vocabulary` lacks, in the order that Train states; gives the base id
/// for each symbol of the corpus. Errors: kLimit.
base::Result<std::vector<uint32_t>> AppendBases(const Corpus& corpus, const TrainOptions& options,
                                                Vocabulary& vocabulary);

}  // namespace teller::tpe
