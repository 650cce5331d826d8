#include "locate/select.hpp"

#include <algorithm>

namespace teller::locate {

namespace {

constexpr Nanos kPart = 4;            // times less than what it would explain
constexpr double kWholeDevice = 0.7;  // of what a slow device lost
constexpr double kNearlyAll = 0.9;
constexpr Nanos kSmall = 20;  // times less than what it follows

bool Overlap(const Hypothesis& a, const Hypothesis& b) {
  return a.onset < b.end && b.onset < a.end;
}

/// True when `b` is what a process shows on its way back from the pause `a`: small, and right behind it. Caches are
/// cold and work has piled up.
bool IsAftermath(const Hypothesis& a, const Hypothesis& b) {
  if (a.trouble != Trouble::kPause || b.trouble == Trouble::kPause || a.process != b.process) return false;
  const Nanos pause_end = a.worst_begin + a.worst;
  return kSmall * b.lost <= a.lost && b.onset >= a.worst_begin && b.onset <= pause_end + a.worst / 2 &&
         b.end <= pause_end + a.worst;
}

/// A rank that leaves collectives late, in a row of slow ones: the receiving end of what moves slowly.
bool LeavesASlowTransfer(const Hypothesis& transfer, const Hypothesis& pause) {
  return transfer.trouble == Trouble::kSlowTransfer && pause.trouble == Trouble::kPause && !pause.collectives.empty() &&
         transfer.lost >= pause.lost;
}

bool IsOwn(const Hypothesis& h) {
  return h.trouble != Trouble::kSlowTransfer && h.trouble != Trouble::kLateRank;
}

/// How specific a claim is: a named operator says more than a stretched process.
int Specific(Trouble trouble) {
  switch (trouble) {
    case Trouble::kSlowOperator: return 5;
    case Trouble::kHostWork: return 4;
    case Trouble::kGapWork: return 3;
    case Trouble::kSlowSave: return 3;
    case Trouble::kPause: return 2;
    case Trouble::kStarvation: return 1;
    case Trouble::kSlowDevice: return 1;
    case Trouble::kSlowTransfer: return 1;
    case Trouble::kLateRank: return 0;
  }
  return 0;
}

/// What `specific` explains of the time that `general` lost: in the steps that both name, and of all of it.
struct Part {
  double of_shared = 0;
  double of_all = 0;
};
Part Explained(const Hypothesis& specific, const Hypothesis& general) {
  double part = 0;
  double whole = 0;
  for (size_t i = 0; i < general.steps.size(); ++i) {
    const auto at = std::lower_bound(specific.steps.begin(), specific.steps.end(), general.steps[i]);
    if (at == specific.steps.end() || *at != general.steps[i]) continue;
    whole += static_cast<double>(general.lost_in[i]);
    part += std::min(static_cast<double>(specific.lost_in[static_cast<size_t>(at - specific.steps.begin())]),
                     static_cast<double>(general.lost_in[i]));
  }
  if (whole <= 0) return {};
  return {part / whole, part / std::max(static_cast<double>(general.lost), whole)};
}

/// True when the more specific claim `a` says what the more general one `b` sees the effect of.
bool Beats(const Scene& scene, const Hypothesis& a, const Hypothesis& b) {
  // The largest of many kernels that are all slow explains a part of it and is no cause.
  if (b.trouble == Trouble::kSlowDevice) return Explained(a, b).of_shared >= kWholeDevice;
  if (b.trouble == Trouble::kStarvation) {
    if (a.trouble == Trouble::kSlowOperator || a.trouble == Trouble::kHostWork) {
      // Where the recorder samples operators the two name different steps of one interval.
      const bool sampled = !b.steps.empty() && scene.profiles[b.steps.front()].opaque;
      // Among many stretched steps an operator that takes most of the time is hit by chance in a few neighbouring ones.
      return sampled || (Explained(a, b).of_shared >= 0.25 && kPart * a.lost >= b.lost);
    }
    return a.lost >= b.lost;
  }
  if (a.trouble == Trouble::kSlowOperator && b.trouble == Trouble::kPause) {
    // A rank that computes for long may leave a collective late for it: then both are as long.
    const bool leaves_late = !b.collectives.empty() && Explained(a, b).of_all >= kNearlyAll;
    return a.span == b.span || a.lost >= b.lost || leaves_late;
  }
  return 2 * a.lost >= b.lost;
}

/// Of opaque steps a pause and a stretch look alike: among many stretched ones, single worse ones are no pauses.
bool IsPartOfStarvation(const Scene& scene, const Hypothesis& pause, const Hypothesis& starvation) {
  return pause.trouble == Trouble::kPause && starvation.trouble == Trouble::kStarvation && !pause.steps.empty() &&
         !pause.in_gap && scene.profiles[pause.steps.front()].opaque && starvation.steps.size() >= pause.steps.size();
}

/// True when `a` makes `b` superfluous.
bool Covers(const Scene& scene, const Hypothesis& a, const Hypothesis& b) {
  if (IsAftermath(a, b)) return true;
  if (IsAftermath(b, a)) return false;
  if (!Overlap(a, b)) return false;
  if (LeavesASlowTransfer(a, b)) return true;
  if (LeavesASlowTransfer(b, a)) return false;
  if (a.process == b.process) {
    if (IsPartOfStarvation(scene, b, a)) return true;
    if (IsPartOfStarvation(scene, a, b)) return false;
    if (Specific(a.trouble) > Specific(b.trouble) && Beats(scene, a, b)) return true;
    if (Specific(b.trouble) > Specific(a.trouble) && Beats(scene, b, a)) return false;
    // Two searches may find the same: the one of which less is left to chance stays.
    if (a.lost == b.lost && a.trouble == b.trouble)
      return a.false_alarm < b.false_alarm || (a.false_alarm == b.false_alarm && &a < &b);
    return a.lost > b.lost || (a.lost == b.lost && Specific(a.trouble) > Specific(b.trouble));
  }
  if (IsOwn(a) && !IsOwn(b)) return 2 * a.lost >= b.lost;
  if (!IsOwn(a) && IsOwn(b)) return a.lost > 2 * b.lost;
  // Two processes at once: the larger loss is the source; an equal operator on all ranks is one regression.
  return a.lost > b.lost || (a.lost == b.lost && a.process < b.process);
}

}  // namespace

std::vector<Hypothesis> SelectCauses(const Scene& scene, std::vector<Hypothesis> claims, double false_alarms) {
  std::erase_if(claims, [&](const Hypothesis& h) { return h.false_alarm >= false_alarms || h.lost <= 0; });
  std::stable_sort(claims.begin(), claims.end(), [](const Hypothesis& a, const Hypothesis& b) {
    return std::tuple(-a.lost, -Specific(a.trouble), a.process) < std::tuple(-b.lost, -Specific(b.trouble), b.process);
  });
  std::vector<bool> dropped(claims.size(), false);
  for (size_t i = 0; i < claims.size(); ++i) {
    for (size_t j = 0; j < claims.size(); ++j) {
      if (i != j && !dropped[i] && !dropped[j] && Covers(scene, claims[i], claims[j]) &&
          !Covers(scene, claims[j], claims[i])) {
        dropped[j] = true;
      }
    }
  }
  std::vector<Hypothesis> kept;
  for (size_t i = 0; i < claims.size(); ++i) {
    if (!dropped[i]) kept.push_back(std::move(claims[i]));
  }
  return kept;
}

}  // namespace teller::locate
