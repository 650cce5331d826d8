#include "locate/quota.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "locate/deviation.hpp"

namespace teller::locate {

namespace {

constexpr Nanos kPeriod = 100 * base::kMilli;
constexpr Nanos kNear = 5 * base::kMilli;         // either way: of the moment of the period
constexpr double kByChance = 0.1;                 // that an interruption ends there
constexpr size_t kUnknown = 4;                    // where nothing else is known: one in so many
constexpr Nanos kLeastPiece = 15 * base::kMilli;  // stood still
constexpr double kLeastShare = 0.5;               // of the step's usual time
constexpr Nanos kApart = 450 * base::kMilli;      // from one to the next, at most: it may be idle for some periods
constexpr size_t kFewest = 5;
constexpr double kAlike = 2;  // times as long as the shortest

/// The piece of a step that is most above its normal length.
struct Still {
  uint32_t step = 0;
  uint32_t slot = 0;
  Nanos lost = 0;
  Nanos end = 0;
};

std::optional<Still> LongestIn(const Scene& scene, uint32_t s) {
  const StepProfile& profile = scene.profiles[s];
  const StepNormal& normal = scene.normals[s];
  if (scene.trees.steps[s].observer || profile.opaque || normal.expected.size() != profile.slots.size())
    return std::nullopt;
  Still longest{.step = s};
  for (uint32_t k = 0; k < profile.slots.size(); ++k) {
    const Slot& slot = profile.slots[k];
    if (slot.key.kind == SlotKey::Kind::kGpu || slot.waits) continue;
    const Nanos lost = slot.largest - normal.expected[k];
    if (lost <= longest.lost) continue;
    longest.slot = k;
    longest.lost = lost;
    longest.end = slot.begin + slot.largest;
  }
  const bool felt = static_cast<double>(longest.lost) >= kLeastShare * static_cast<double>(normal.expected_own);
  return felt && longest.lost >= kLeastPiece && longest.lost < kPeriod ? std::optional(longest) : std::nullopt;
}

bool SameMoment(Nanos a, Nanos b) {
  const Nanos off = std::abs(a - b) % kPeriod;
  return std::min(off, kPeriod - off) <= kNear;
}

/// The most pieces in a row that end at the moment of the period at which the first of them does.
std::vector<Still> InStep(const std::vector<Still>& pieces) {
  std::vector<Still> best;
  for (size_t first = 0; first < pieces.size(); ++first) {
    std::vector<Still> run = {pieces[first]};
    for (size_t i = first + 1; i < pieces.size(); ++i) {
      const Still& next = pieces[i];
      const auto [least, most] = std::minmax(run.front().lost, next.lost);
      if (next.end - run.back().end > kApart || !SameMoment(next.end, run.front().end) ||
          static_cast<double>(most) > kAlike * static_cast<double>(least))
        break;
      run.push_back(next);
    }
    if (run.size() > best.size()) best = std::move(run);
  }
  return best;
}

/// Chance that an interruption ends at the moment of the period at which the one before it did: a tenth, or more where
/// the process's own rhythm is close to the period, as those outside of the run tell; a quarter where none do.
double Chance(const std::vector<Still>& pieces, const std::vector<Still>& run) {
  size_t others = 0;
  size_t same = 0;
  for (size_t i = 1; i < pieces.size(); ++i) {
    const bool inside = pieces[i - 1].end >= run.front().end && pieces[i].end <= run.back().end;
    if (inside || pieces[i].end - pieces[i - 1].end > kApart) continue;
    ++others;
    same += SameMoment(pieces[i].end, pieces[i - 1].end);
  }
  return std::max(kByChance, (static_cast<double>(same) + std::sqrt(static_cast<double>(same)) + 1) /
                                 static_cast<double>(others + kUnknown));
}

Hypothesis Claim(const Scene& scene, const std::vector<Still>& run, const std::vector<Still>& pieces) {
  Hypothesis h;
  h.trouble = Trouble::kPause;
  h.throttled = true;
  h.process = scene.trees.steps[run.front().step].process;
  h.rank = scene.store.processes[h.process.value()].rank;
  for (const Still& still : run) {
    const Slot& slot = scene.profiles[still.step].slots[still.slot];
    AddLoss(h, still.step, static_cast<double>(still.lost), slot.begin, still.end);
    NoteWorst(h, {.length = slot.largest,
                  .begin = slot.begin,
                  .span = slot.span,
                  .usual = slot.largest - still.lost,
                  .slot = slot.key});
  }
  h.false_alarm = std::min(
      1.0, static_cast<double>(pieces.size()) * std::pow(Chance(pieces, run), static_cast<double>(run.size() - 1)));
  return h;
}

}  // namespace

std::vector<Hypothesis> SearchQuotas(const Scene& scene) {
  std::map<uint32_t, std::vector<Still>> of_process;
  for (uint32_t s = 0; s < scene.trees.steps.size(); ++s) {
    if (const auto still = LongestIn(scene, s)) of_process[scene.trees.steps[s].process.value()].push_back(*still);
  }
  std::vector<Hypothesis> out;
  for (auto& [process, pieces] : of_process) {
    std::stable_sort(pieces.begin(), pieces.end(), [](const Still& a, const Still& b) { return a.end < b.end; });
    const std::vector<Still> run = InStep(pieces);
    if (run.size() >= kFewest) out.push_back(Claim(scene, run, pieces));
  }
  return out;
}

}  // namespace teller::locate
