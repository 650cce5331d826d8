#include "locate/quota.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "locate/deviation.hpp"
#include "locate/naming.hpp"
#include "locate/pause_kind.hpp"

namespace teller::locate {

namespace {

constexpr Nanos kPeriod = 100 * base::kMilli;
constexpr Nanos kNear = 5 * base::kMilli;  // either way: of the moment of the period
constexpr double kByChance = 0.1;          // that an interruption ends there
constexpr double kMaybe = 0.05;
constexpr size_t kUnknown = 4;                    // where nothing else is known: one in so many
constexpr Nanos kLeastPiece = 15 * base::kMilli;  // stood still
constexpr double kLeastShare = 0.5;               // of the step's usual time
constexpr Nanos kApart = 450 * base::kMilli;      // from one to the next, at most: it may be idle for some periods
constexpr size_t kFewest = 5;
constexpr size_t kFree = 2;   // in what waits: one on either side of a run may be found by looking for it
constexpr double kAlike = 2;  // times as long as the shortest

/// The piece of a step that is most above its normal length.
struct Still {
  uint32_t step = 0;
  uint32_t slot = 0;
  Nanos lost = 0;
  Nanos end = 0;
  std::optional<uint32_t> collective;  ///< it stood still inside of this one; no slot shows it
};

/// Calls that wait may last because of others, so they tell nothing of who is stopped.
enum class Calls : uint8_t { kThatDoNotWait, kAll };

std::optional<Still> LongestIn(const Scene& scene, uint32_t s, Calls calls) {
  const StepProfile& profile = scene.profiles[s];
  const StepNormal& normal = scene.normals[s];
  if (scene.trees.steps[s].observer || profile.opaque || normal.expected.size() != profile.slots.size())
    return std::nullopt;
  Still longest{.step = s};
  for (uint32_t k = 0; k < profile.slots.size(); ++k) {
    const Slot& slot = profile.slots[k];
    if (slot.key.kind == SlotKey::Kind::kGpu || slot.waits ||
        (calls == Calls::kThatDoNotWait && IsWaitingCall(scene.store.text(trace::StringId(slot.key.name)))))
      continue;
    const Nanos lost = slot.largest - normal.expected[k];
    if (lost <= longest.lost) continue;
    longest.slot = k;
    longest.lost = lost;
    longest.end = slot.begin + slot.largest;
  }
  const bool felt = static_cast<double>(longest.lost) >= kLeastShare * static_cast<double>(normal.expected_own);
  return felt && longest.lost >= kLeastPiece && longest.lost < kPeriod ? std::optional(longest) : std::nullopt;
}

std::string_view NameOf(const Scene& scene, const Still& still) {
  return scene.store.text(trace::StringId(scene.profiles[still.step].slots[still.slot].key.name));
}

bool SameMoment(Nanos a, Nanos b) {
  const Nanos off = std::abs(a - b) % kPeriod;
  return std::min(off, kPeriod - off) <= kNear;
}

/// The most pieces in a row that end at the moment of the period at which the first of them does. The next run is
/// looked for from the middle of the one before on: that may miss a part of a run and keeps the cost linear.
std::vector<Still> InStep(const std::vector<Still>& pieces) {
  size_t best = 0;
  size_t most_pieces = 0;
  for (size_t first = 0; pieces.size() - first > most_pieces;) {
    size_t last = first;
    for (size_t i = first + 1; i < pieces.size(); ++i) {
      const auto [least, most] = std::minmax(pieces[first].lost, pieces[i].lost);
      if (pieces[i].end - pieces[i - 1].end > kApart || !SameMoment(pieces[i].end, pieces[first].end) ||
          static_cast<double>(most) > kAlike * static_cast<double>(least))
        break;
      last = i;
    }
    if (last - first + 1 > most_pieces) {
      best = first;
      most_pieces = last - first + 1;
    }
    first += std::max<size_t>(1, (last - first) / 2);
  }
  const auto begin = pieces.begin() + static_cast<std::ptrdiff_t>(best);
  return {begin, begin + static_cast<std::ptrdiff_t>(most_pieces)};
}

/// A process's longest stays in collectives after all had arrived, by step.
std::map<uint32_t, Still> InsideCollectives(const Scene& scene, trace::ProcessRow process) {
  std::map<uint32_t, Still> longest;
  std::vector<std::pair<Nanos, uint32_t>> begins;
  for (uint32_t s = 0; s < scene.trees.steps.size(); ++s) {
    if (scene.trees.steps[s].process == process) begins.emplace_back(scene.trees.steps[s].begin, s);
  }
  for (uint32_t c = 0; c < scene.trees.collectives.size(); ++c) {
    Nanos all_there = trace::kNoTime;
    const trace::CollectiveMember* own = nullptr;
    for (const trace::CollectiveMember& member : scene.trees.collectives[c].members) {
      if (all_there == trace::kNoTime || member.arrival > all_there) all_there = member.arrival;
      if (member.process == process) own = &member;
    }
    if (own == nullptr || own->end == trace::kNoTime || all_there == trace::kNoTime) continue;
    const Nanos lost = own->end - all_there;
    const auto after = std::upper_bound(begins.begin(), begins.end(), std::pair(all_there, UINT32_MAX));
    if (lost < kLeastPiece || lost >= kPeriod || after == begins.begin()) continue;
    const uint32_t s = std::prev(after)->second;
    if (Still& still = longest[s]; lost > still.lost) still = {s, 0, lost, own->end, c};
  }
  return longest;
}

/// All that a process lost to a quota.
struct Quota {
  std::vector<Still> stops;  ///< in order
  size_t in_waits = 0;       ///< of these: in what waits for others
  size_t against = 0;        ///< interruptions in between that end at other moments
};

/// With what else of the process ends at the moment of the period at which `run` does, before, between and after, as
/// long as one follows the other: it may stand still in what waits for others, too, which alone would not tell who is
/// stopped.
Quota WithAllThatEndsThen(const Scene& scene, const std::vector<Still>& run) {
  const trace::ProcessRow process = scene.trees.steps[run.front().step].process;
  std::map<uint32_t, Still> of_step = InsideCollectives(scene, process);
  for (uint32_t s = 0; s < scene.trees.steps.size(); ++s) {
    if (scene.trees.steps[s].process != process) continue;
    const auto own = LongestIn(scene, s, Calls::kAll);
    if (own && own->lost > of_step[s].lost) of_step[s] = *own;
  }
  for (const Still& still : run) of_step[still.step] = still;
  std::vector<Still> all;
  for (const auto& [s, still] : of_step) {
    if (still.lost > 0) all.push_back(still);
  }
  std::stable_sort(all.begin(), all.end(), [](const Still& a, const Still& b) { return a.end < b.end; });
  Quota quota;
  Nanos from = run.front().end;
  Nanos to = run.back().end;
  const auto ends_then = [&](const Still& still) { return SameMoment(still.end, run.front().end); };
  for (auto it = all.rbegin(); it != all.rend(); ++it) {
    if (it->end < from && from - it->end <= kApart && ends_then(*it)) from = it->end;
  }
  for (const Still& still : all) {
    if (still.end > to && still.end - to <= kApart && ends_then(still)) to = still.end;
    if (still.end < from || still.end > to) continue;
    if (!ends_then(still)) {
      ++quota.against;
      continue;
    }
    quota.stops.push_back(still);
    quota.in_waits += still.collective || IsWaitingCall(NameOf(scene, still));
  }
  return quota;
}

/// How often an interruption ends at the moment of the period at which the one before it did, outside of the run: where
/// the process's own rhythm is close to the period, often.
struct Rhythm {
  size_t others = 0;
  size_t same = 0;

  Rhythm(const std::vector<Still>& pieces, const std::vector<Still>& run) {
    for (size_t i = 1; i < pieces.size(); ++i) {
      const bool inside = pieces[i - 1].end >= run.front().end && pieces[i].end <= run.back().end;
      if (inside || pieces[i].end - pieces[i - 1].end > kApart) continue;
      ++others;
      same += SameMoment(pieces[i].end, pieces[i - 1].end);
    }
  }
  double Chance() const {
    const auto hits = static_cast<double>(same);
    return std::max(kByChance, (hits + std::sqrt(hits) + 1) / static_cast<double>(others + kUnknown));
  }
  bool IsKnown() const { return others >= 2 * kUnknown; }
};

Hypothesis Claim(const Scene& scene, const std::vector<Still>& run, const std::vector<Still>& pieces) {
  Hypothesis h;
  h.trouble = Trouble::kPause;
  h.throttled = true;
  h.process = scene.trees.steps[run.front().step].process;
  h.rank = scene.store.processes[h.process.value()].rank;
  const Quota quota = WithAllThatEndsThen(scene, run);
  const auto says_who = [&](const Still& still) {
    return std::any_of(run.begin(), run.end(), [&](const Still& other) { return other.step == still.step; });
  };
  for (const Still& still : quota.stops) {
    if (still.collective) {
      AddLoss(h, still.step, static_cast<double>(still.lost), still.end - still.lost, still.end);
      h.inside.push_back({*still.collective, still.step, still.lost});
      continue;
    }
    const Slot& slot = scene.profiles[still.step].slots[still.slot];
    AddLoss(h, still.step, static_cast<double>(still.lost), slot.begin, still.end);
    if (!says_who(still)) continue;
    h.at_changing_places |= slot.key != scene.profiles[run.front().step].slots[run.front().slot].key;
    NoteWorst(h, {.length = slot.largest,
                  .begin = slot.begin,
                  .span = slot.span,
                  .usual = slot.largest - still.lost,
                  .slot = slot.key});
  }
  const Rhythm rhythm(pieces, run);
  // The run says who; what was not looked at to find it says, too, how likely it is chance.
  const size_t more = quota.in_waits - std::min(quota.in_waits, quota.against + kFree);
  const auto agree = static_cast<double>(run.size() - 1 + more);
  h.false_alarm = std::min(1.0, static_cast<double>(pieces.size()) * std::pow(rhythm.Chance(), agree));
  // A loop that goes round ten times a second looks the same, but uses next to nothing or, where it spins, all.
  if (!rhythm.IsKnown() && !UsedAPart(scene, h, ProcessName(scene.store, h.process)))
    h.false_alarm = std::max(h.false_alarm, kMaybe);
  return h;
}

}  // namespace

std::vector<Hypothesis> SearchQuotas(const Scene& scene) {
  std::map<uint32_t, std::vector<Still>> of_process;
  for (uint32_t s = 0; s < scene.trees.steps.size(); ++s) {
    if (const auto still = LongestIn(scene, s, Calls::kThatDoNotWait))
      of_process[scene.trees.steps[s].process.value()].push_back(*still);
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
