#pragma once

#include <string>
#include <vector>

#include "score/answer.hpp"
#include "score/children.hpp"
#include "score/judge.hpp"
#include "score/truth.hpp"

namespace teller::score {

/// Whom a method accuses of a case: its first candidate, in the steps that it calls abnormal.
struct Verdict {
  std::optional<int64_t> rank;
  std::string op;               ///< empty: none named
  std::vector<uint32_t> steps;  ///< numbers in the features, in order: the rank's own
};

/// The verdict of an answer; none where it calls the case normal or accuses neither a rank nor an operator. A step of
/// the job is one of all ranks: where none of the accused rank's own steps is called abnormal, those are meant that
/// other ranks took meanwhile.
std::optional<Verdict> VerdictOf(const Answer& answer, const std::vector<ReadStep>& steps);

/// A case with the verdicts of several methods about it.
struct Accused {
  const Truth* truth = nullptr;
  std::string name;  ///< neutral
  std::vector<std::optional<Verdict>> verdicts;
};

/// What came of testing the verdicts about one case.
struct CaseRetest {
  std::vector<Retested> verdicts;  ///< parallel to Accused::verdicts
  std::string problem;             ///< why they could not be tested; empty when they were
};

/// Tests verdicts by re-timing (locate::RestoredShares): the rank with all that it does, and its operator. Each case
/// in a process of its own; copies and results lie in `folder` meanwhile. Errors: kUnreadable (no process, no space).
base::Result<std::vector<CaseRetest>> Retest(const std::vector<Accused>& cases, const std::string& folder,
                                             const ChildLimits& limits);

}  // namespace teller::score
