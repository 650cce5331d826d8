#pragma once

#include <cstddef>
#include <vector>

#include "locate/hypothesis.hpp"
#include "trace/diagnosis.hpp"

namespace teller::locate {

/// What the searches found and what is too likely by chance to be reported.
struct Unproved {
  std::vector<Hypothesis> claims;
  std::vector<trace::Finding> findings;

  /// Takes findings that are at least as likely as `false_alarms` out of a list.
  void TakeFrom(std::vector<trace::Finding>& list, double false_alarms);
  /// Copies such claims.
  void Note(const std::vector<Hypothesis>& list, double false_alarms);
};

/// Who differs most from what is usual although nothing is proved, at most `most`, most suspect first: what the
/// searches made of it, the least likely first; then processes and operators by how unusual the time of their own is
/// that they lose. Left out is who a finding names, and what happened meanwhile. Where too few steps can be compared,
/// only what the searches found is left.
/// Cost: O(slots log steps); claims beyond the first few are not looked at.
std::vector<trace::Suspect> FindSuspects(const Scene& scene, Unproved unproved,
                                         const std::vector<trace::Finding>& findings, size_t most);

}  // namespace teller::locate
