#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "locate/hypothesis.hpp"
#include "tree/kernel_name.hpp"

namespace teller::locate {

/// One step's deviations, sorted out.
struct Deviation {
  uint32_t step = 0;
  double expected = 1;  ///< own time but for what lies beside collectives, ns, > 0
  double own = 1;       ///< the same, measured
  double lost = 0;      ///< sum of slots' excess that matters
  double net = 0;       ///< own - expected
  double ratio = 1;
  double top = 0;       ///< largest single uninterrupted excess
  size_t top_slot = 0;  ///< index into the profile's slots
  double gap_lost = 0;
};

/// Adds a step's loss to a claim and widens its interval. `begin`..`end` is where in the step it was lost.
inline void AddLoss(Hypothesis& h, uint32_t step, double lost, Nanos begin, Nanos end) {
  h.steps.push_back(step);
  h.lost_in.push_back(static_cast<Nanos>(lost));
  h.lost += static_cast<Nanos>(lost);
  if (h.onset == trace::kNoTime || begin < h.onset) h.onset = begin;
  if (h.end == trace::kNoTime || end > h.end) h.end = end;
}

/// A piece of time that a claim is about.
struct Piece {
  Nanos length = 0;
  Nanos begin = 0;
  uint32_t span = kNoSpan;
  Nanos usual = 0;  ///< what is normal there
  SlotKey slot;
  bool in_gap = false;
};

/// Makes it the claim's worst piece if it is longer than the one so far.
inline void NoteWorst(Hypothesis& h, const Piece& piece) {
  if (piece.length <= h.worst) return;
  h.worst = piece.length;
  h.worst_begin = piece.begin;
  h.span = piece.span;
  h.usual = piece.usual;
  h.slot = piece.slot;
  h.in_gap = piece.in_gap;
}

/// True where the claim's operator only moves memory, on the host, and costs less than a tenth of its steps more:
/// caches and memory are shared with other programs and ranks, and such an operator varies that much in a healthy run.
inline bool IsNotFelt(const Scene& scene, const Hypothesis& claim) {
  if (claim.span == kNoSpan || tree::ClassOfName(scene.store.name(claim.span)) != tree::KernelClass::kCopy)
    return false;
  constexpr Nanos kOnePartOf = 10;
  Nanos time = 0;
  for (const uint32_t s : claim.steps) {
    if (scene.profiles[s].uses_device) return false;
    time += std::max<Nanos>(0, scene.trees.steps[s].duration()) / kOnePartOf;
  }
  return claim.lost < time;
}

}  // namespace teller::locate
