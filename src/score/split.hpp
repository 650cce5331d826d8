#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "score/truth.hpp"

namespace teller::score {

/// What a method may learn from and what it is asked; indices of cases.
struct Fold {
  std::string name;
  std::vector<uint32_t> train;
  std::vector<uint32_t> test;
};

/// Parts the cases. `how`:
///   none             nothing to learn from, everything is asked
///   seed:SHARE       that share, drawn by the seed, is learned from, the rest is asked
///   folds:K          K parts drawn by the seed; each is asked once, after learning from the others
///   runs:K           as folds, but cases of one recorded run stay together
///   leave-class      each fault class is asked after learning from the other ones; controls are dealt out over the
///   folds leave-stack      each stack is asked after learning from the other ones sim-real         real cases are
///   asked after learning from all others
/// In every fold no case is in both; every case is asked at most once. Kinds of faults are spread evenly by `seed:` and
/// `folds:`. Cases that were made from
/// the same recorded run can be on both sides except with `runs:`. Errors: kUsage.
base::Result<std::vector<Fold>> SplitCases(const std::vector<Truth>& cases, const std::string& how, uint64_t seed);

}  // namespace teller::score
