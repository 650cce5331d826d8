#include "tree/collective_match.hpp"

#include <algorithm>
#include <cmath>

#include "tree/line_fit.hpp"

namespace teller::tree {

namespace {

using trace::Nanos;

constexpr int kLargestShift = 64;        // profilers of one job start within a few steps of each other
constexpr size_t kShiftSamples = 512;    // tell shifts apart, bounded on long traces
constexpr size_t kFewestShifted = 4;     // differences; fewer agree under some shift by chance
constexpr size_t kEnoughForAThird = 24;  // differences; a third of fewer agrees by chance
constexpr Nanos kNoSpread = INT64_MAX;

/// How one rank's spans lie against another's if the n-th meets the (n + by)-th.
struct Shift {
  int by = 0;
  Nanos offset = 0;
  Nanos spread = kNoSpread;  ///< width of the densest part of the end differences
};

Nanos Difference(Nanos a, Nanos b) {
  Nanos out = 0;
  return __builtin_sub_overflow(a, b, &out) ? 0 : out;
}

/// The slope that two clocks of quartz can have, from pairs of differences far apart.
double Drift(const std::vector<std::pair<Nanos, Nanos>>& differences) {
  const size_t half = differences.size() / 2;
  std::vector<double> slopes;
  for (size_t i = 0; i + half < differences.size(); ++i) {
    const auto away = static_cast<double>(Difference(differences[i + half].first, differences[i].first));
    if (away > 0)
      slopes.push_back(static_cast<double>(Difference(differences[i + half].second, differences[i].second)) / away);
  }
  if (slopes.size() < 4) return 0;
  const auto middle = slopes.begin() + static_cast<int64_t>(slopes.size() / 2);
  std::nth_element(slopes.begin(), middle, slopes.end());
  return std::clamp(*middle, -kMostDrift, kMostDrift);
}

/// Where the differences, less a drift, lie densest; kept when that is denser than what `shift` has. Only the densest
/// third counts: on a slow link members leave apart for as long as it is slow, which may be most of the trace.
void Densest(const std::vector<std::pair<Nanos, Nanos>>& differences, double drift, Shift& shift) {
  const Nanos begin = differences.front().first;
  std::vector<Nanos> rest;
  for (const auto& [end, difference] : differences) {
    rest.push_back(Difference(difference, std::llround(drift * static_cast<double>(Difference(end, begin)))));
  }
  std::sort(rest.begin(), rest.end());
  const size_t n = rest.size();
  const size_t part = n < kEnoughForAThird ? n / 2 + 1 : n / 3;
  for (size_t i = 0; i + part <= n; ++i) {
    Nanos width = 0;
    if (__builtin_sub_overflow(rest[i + part - 1], rest[i], &width) || width >= shift.spread) continue;
    shift.spread = width;
    shift.offset = rest[i] + width / 2;
  }
}

Shift TryShift(const trace::Store& store, const RankSpans& base, const RankSpans& other, int by) {
  Shift shift{by, 0, kNoSpread};
  std::vector<std::pair<Nanos, Nanos>> differences;             // (end on the base, end difference)
  const size_t stride = base.spans.size() / kShiftSamples + 1;  // spread over the whole trace
  for (size_t i = 0; i < base.spans.size(); i += stride) {
    const auto j = static_cast<int64_t>(i) + by;
    if (j < 0 || j >= static_cast<int64_t>(other.spans.size())) continue;
    const Nanos end = store.spans.end(base.spans[i]);
    differences.emplace_back(end, Difference(store.spans.end(other.spans[static_cast<size_t>(j)]), end));
  }
  if (differences.empty() || (by != 0 && differences.size() < kFewestShifted) ||
      differences.size() * 2 < std::min(base.spans.size(), other.spans.size()) / stride)
    return shift;
  Densest(differences, 0, shift);
  if (const double drift = Drift(differences); drift != 0) Densest(differences, drift, shift);
  return shift;
}

/// The smallest shift that agrees about as well as any. Where several do, one that needs no other clock is the
/// likelier.
Shift BestShift(const trace::Store& store, const RankSpans& base, const RankSpans& other, bool& certain) {
  std::vector<Shift> shifts;
  Shift best;
  for (int step = 0; step <= 2 * kLargestShift; ++step) {
    const int by = (step % 2 == 0 ? 1 : -1) * ((step + 1) / 2);  // 0, -1, 1, -2, 2
    shifts.push_back(TryShift(store, base, other, by));
    if (shifts.back().spread < best.spread) best = shifts.back();
  }
  if (best.spread == kNoSpread) {
    certain = false;
    return best;
  }
  // A larger shift must be clearly better: neighbours of a short loop agree almost as well.
  const Shift* chosen = nullptr;
  const Shift* same_clock = nullptr;
  size_t candidates = 0;
  for (const Shift& shift : shifts) {
    if (shift.spread == kNoSpread || shift.spread / 2 > best.spread) continue;
    ++candidates;
    if (chosen == nullptr) chosen = &shift;
    if (same_clock == nullptr && std::abs(shift.offset) <= 3 * shift.spread + base::kMicro) same_clock = &shift;
  }
  if (same_clock != nullptr) return *same_clock;
  certain = certain && candidates == 1;
  return *chosen;
}

bool LabelBySequence(const trace::Store& store, MatchedGroup& group) {
  for (RankSpans& rank : group.ranks) {
    rank.labels.clear();
    for (const uint32_t span : rank.spans) {
      const auto* args = store.comm_args.Find(span);
      if (args == nullptr || args->sequence < 0) return false;
      if (!rank.labels.empty() && args->sequence <= rank.labels.back()) return false;  // no numbering: it repeats
      rank.labels.push_back(args->sequence);
    }
  }
  return true;
}

}  // namespace

void LabelMembers(const trace::Store& store, MatchedGroup& group) {
  if (LabelBySequence(store, group)) {
    group.by_sequence = true;
    return;
  }
  const RankSpans& base = group.ranks.front();
  for (RankSpans& rank : group.ranks) {
    const Shift shift = &rank == &base ? Shift{} : BestShift(store, base, rank, group.certain);
    rank.labels.clear();
    for (size_t i = 0; i < rank.spans.size(); ++i) rank.labels.push_back(static_cast<int64_t>(i) - shift.by);
  }
}

}  // namespace teller::tree
