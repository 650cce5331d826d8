#include "locate/quota.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "locate/deviation.hpp"
#include "locate/maybe.hpp"
#include "locate/naming.hpp"
#include "locate/pause_kind.hpp"
#include "locate/resources.hpp"
#include "ml/robust.hpp"
#include "tree/collectives.hpp"

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
constexpr size_t kFewestInside = 3;  // more than end at other moments
constexpr double kAlike = 2;         // times as long as the shortest

/// A piece of a step far above its normal length: in a slot, or in a collective after all had arrived.
struct Still {
  uint32_t step = 0;
  uint32_t slot = 0;
  Nanos lost = 0;
  Nanos end = 0;
  std::optional<uint32_t> collective;  ///< it stood still inside of this one; no slot shows it
};

bool IsFelt(const Scene& scene, const Still& still) {
  const auto usual = static_cast<double>(scene.normals[still.step].expected_own);
  return still.lost >= kLeastPiece && still.lost < kPeriod && static_cast<double>(still.lost) >= kLeastShare * usual;
}

/// Looks for pieces that are a process's own: what it spends in waiting for others tells nothing of who is stopped.
class OwnPieces {
 public:
  explicit OwnPieces(const Scene& scene) : scene_(scene) {
    for (const trace::Collective& collective : scene.trees.collectives) {
      if (collective.point_to_point) continue;
      for (const trace::CollectiveMember& member : collective.members)
        arrivals_[member.process.value()].push_back(member.arrival);
    }
    // What a device does for the process is not in its calls.
    std::erase_if(arrivals_, [&](const auto& entry) { return UsesDevice(scene, trace::ProcessRow(entry.first)); });
    for (auto& [process, times] : arrivals_) std::sort(times.begin(), times.end());
  }

  /// The longest one of a step.
  std::optional<Still> LongestIn(uint32_t s) const {
    const StepProfile& profile = scene_.profiles[s];
    const StepNormal& normal = scene_.normals[s];
    if (scene_.trees.steps[s].observer || profile.opaque || normal.expected.size() != profile.slots.size())
      return std::nullopt;
    Still longest{.step = s};
    for (uint32_t k = 0; k < profile.slots.size(); ++k) {
      const Slot& slot = profile.slots[k];
      if (slot.key.kind == SlotKey::Kind::kGpu || slot.waits || Waits(scene_.trees.steps[s].process, slot)) continue;
      const Nanos lost = slot.largest - normal.expected[k];
      if (lost <= longest.lost) continue;
      longest.slot = k;
      longest.lost = lost;
      // Of a call that waits as well its own time is not one piece; who is stopped in it leaves it when it goes on.
      longest.end = IsWaitingCall(Name(slot)) ? scene_.store.spans.end(slot.span) : slot.begin + slot.largest;
    }
    return IsFelt(scene_, longest) ? std::optional(longest) : std::nullopt;
  }

 private:
  /// A call that begins a collective of which all ranks' parts are known does not: what it waits for there is known and
  /// not in its own time.
  bool Waits(trace::ProcessRow process, const Slot& slot) const {
    if (!IsWaitingCall(Name(slot))) return false;
    if (!tree::IsCommunicationName(Name(slot))) return true;
    const auto of_process = arrivals_.find(process.value());
    if (slot.span == kNoSpan || of_process == arrivals_.end()) return true;
    const Nanos begin = scene_.store.spans.begin[slot.span];
    const Nanos end = begin + scene_.store.spans.duration[slot.span];
    const auto next = std::lower_bound(of_process->second.begin(), of_process->second.end(), begin);
    return next == of_process->second.end() || *next > end + kNear;
  }

  std::string_view Name(const Slot& slot) const { return scene_.store.text(trace::StringId(slot.key.name)); }

  const Scene& scene_;
  std::map<uint32_t, std::vector<Nanos>> arrivals_;  ///< in collectives; of a process, in order
};

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

/// What processes' transfers take beyond what is usual for a collective of that name. A device moves data without the
/// process.
class InsideCollectives {
 public:
  explicit InsideCollectives(const Scene& scene) : scene_(scene) {
    for (uint32_t c = 0; c < scene.trees.collectives.size(); ++c) {
      for (const trace::CollectiveMember& member : scene.trees.collectives[c].members) {
        if (member.arrival == trace::kNoTime || member.end == trace::kNoTime) continue;
        stays_[member.process.value()][scene.trees.collectives[c].name].push_back(
            {c, member.arrival + member.wait, member.end});
      }
    }
  }

  std::vector<Still> Of(trace::ProcessRow process) const {
    std::vector<Still> out;
    const auto mine = stays_.find(process.value());
    if (mine == stays_.end() || UsesDevice(scene_, process)) return out;
    for (const auto& [name, stays] : mine->second) {
      std::vector<double> lengths;
      for (const Stay& stay : stays) lengths.push_back(static_cast<double>(stay.end - stay.begin));
      const auto usual = static_cast<Nanos>(ml::Quantile(lengths, 0.5));
      for (const Stay& stay : stays) {
        const auto s = StepAt(process, stay.begin);
        if (!s || scene_.trees.steps[*s].observer) continue;
        const Still still{*s, 0, stay.end - stay.begin - usual, stay.end, stay.collective};
        if (IsFelt(scene_, still)) out.push_back(still);
      }
    }
    return out;
  }

 private:
  struct Stay {
    uint32_t collective;
    Nanos begin;  ///< all had arrived
    Nanos end;
  };

  /// The process's last step that has begun then; none before the first.
  std::optional<uint32_t> StepAt(trace::ProcessRow process, Nanos time) const {
    const auto& steps = scene_.trees.steps;
    const auto after = std::upper_bound(steps.begin(), steps.end(), std::pair(process, time),
                                        [](const std::pair<trace::ProcessRow, Nanos>& at, const trace::Step& step) {
                                          return std::pair(at.first, at.second) < std::pair(step.process, step.begin);
                                        });
    if (after == steps.begin() || std::prev(after)->process != process) return std::nullopt;
    return static_cast<uint32_t>(std::prev(after) - steps.begin());
  }

  const Scene& scene_;
  std::map<uint32_t, std::map<trace::StringId, std::vector<Stay>>> stays_;  ///< by process
};

/// All that a process lost to a quota.
struct Quota {
  std::vector<Still> stops;  ///< by step, then by end
  size_t inside = 0;         ///< of these: inside of collectives
  size_t against = 0;        ///< interruptions in between that end at other moments
};

/// With what else of the process ends at the moment of the period at which `run` does, before, between and after, as
/// long as one follows the other: it may stand still inside of collectives, too, which alone would not tell who is
/// stopped. `all`: what it lost there. `pieces`: its own, in order.
Quota WithAllThatEndsThen(std::vector<Still> all, const std::vector<Still>& run, const std::vector<Still>& pieces) {
  all.insert(all.end(), pieces.begin(), pieces.end());
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
    // A stop of a collective on a thread of its own and of the call beside it is one, and the call says more.
    if (!quota.stops.empty() && still.end - quota.stops.back().end <= kNear) {
      if (quota.stops.back().collective && !still.collective) quota.stops.back() = still;
      continue;
    }
    quota.stops.push_back(still);
  }
  for (const Still& still : quota.stops) quota.inside += still.collective.has_value();
  // One inside of a collective may end after its step has.
  std::stable_sort(quota.stops.begin(), quota.stops.end(),
                   [](const Still& a, const Still& b) { return a.step < b.step; });
  return quota;
}

/// True when no place, an operator or the code after it, has most of the pieces.
bool AtChangingPlaces(const Scene& scene, const std::vector<Still>& run) {
  std::map<std::pair<SlotKey::Kind, uint32_t>, size_t> places;
  size_t most = 0;
  for (const Still& still : run) {
    const SlotKey& key = scene.profiles[still.step].slots[still.slot].key;
    most = std::max(most, ++places[{key.kind, key.name}]);
  }
  return 2 * most <= run.size();
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

Hypothesis Claim(const Scene& scene, const InsideCollectives& inside, const std::vector<Still>& run,
                 const std::vector<Still>& pieces) {
  Hypothesis h;
  h.trouble = Trouble::kPause;
  h.throttled = true;
  h.process = scene.trees.steps[run.front().step].process;
  h.rank = scene.store.processes[h.process.value()].rank;
  const Quota quota = WithAllThatEndsThen(inside.Of(h.process), run, pieces);
  for (const Still& still : quota.stops) {
    if (!h.steps.empty() && h.steps.back() == still.step) {
      h.lost += still.lost;
      h.lost_in.back() += still.lost;
      h.end = std::max(h.end, still.end);
    } else {
      AddLoss(h, still.step, static_cast<double>(still.lost), still.end - still.lost, still.end);
    }
    if (still.collective) h.inside.push_back({*still.collective, still.step, still.lost});
  }
  for (const Still& still : run) {
    const Slot& slot = scene.profiles[still.step].slots[still.slot];
    NoteWorst(h, {.length = slot.largest,
                  .begin = slot.begin,
                  .span = slot.span,
                  .usual = slot.largest - still.lost,
                  .slot = slot.key});
  }
  const Rhythm rhythm(pieces, run);
  h.at_changing_places = AtChangingPlaces(scene, run);
  // Whoever else takes part in a collective leaves it when who is stopped goes on: only that it is the run's moment is
  // news.
  const bool agrees = quota.inside >= quota.against + kFewestInside;
  const auto agree = static_cast<double>(run.size() - 1 + (agrees ? 1 : 0));
  h.false_alarm = std::min(1.0, static_cast<double>(pieces.size()) * std::pow(rhythm.Chance(), agree));
  // A loop that goes round ten times a second looks the same, but uses next to nothing or, where it spins, all.
  if (!rhythm.IsKnown() && !UsedAPart(scene, h, ProcessName(scene.store, h.process)))
    h.false_alarm = std::max(h.false_alarm, kMaybe);
  return h;
}

}  // namespace

std::vector<Hypothesis> SearchQuotas(const Scene& scene) {
  const OwnPieces own(scene);
  std::map<uint32_t, std::vector<Still>> of_process;
  for (uint32_t s = 0; s < scene.trees.steps.size(); ++s) {
    if (const auto still = own.LongestIn(s)) of_process[scene.trees.steps[s].process.value()].push_back(*still);
  }
  std::vector<Hypothesis> out;
  std::optional<InsideCollectives> inside;  // seldom needed
  for (auto& [process, pieces] : of_process) {
    std::stable_sort(pieces.begin(), pieces.end(), [](const Still& a, const Still& b) { return a.end < b.end; });
    const std::vector<Still> run = InStep(pieces);
    if (run.size() < kFewest) continue;
    if (!inside) inside.emplace(scene);
    out.push_back(Claim(scene, *inside, run, pieces));
  }
  return out;
}

}  // namespace teller::locate
