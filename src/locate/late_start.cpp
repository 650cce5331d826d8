#include "locate/late_start.hpp"

#include <algorithm>
#include <map>

namespace teller::locate {

namespace {

constexpr Nanos kLeastLate = 5 * base::kMilli;
constexpr Nanos kRare = 10;  // times less than the rest

/// When a member of a collective had all others waiting for it.
struct Lateness {
  const trace::CollectiveMember* last = nullptr;
  Nanos since = 0;  ///< when the last of the others arrived
};

Lateness LateIn(const trace::Collective& collective) {
  Lateness late;
  for (const auto& member : collective.members) {
    if (late.last == nullptr || member.arrival > late.last->arrival) late.last = &member;
  }
  late.since = INT64_MIN;
  for (const auto& member : collective.members) {
    if (&member != late.last) late.since = std::max(late.since, member.arrival);
  }
  return late;
}

/// A process's steps in Trees::steps: [first, last).
using Ranges = std::map<uint32_t, std::pair<uint32_t, uint32_t>>;

/// Until when each process was in a collective that it had entered before. Who leaves one late waited for others or for
/// its data.
class Left {
 public:
  explicit Left(const trace::Trees& trees) {
    for (const auto& collective : trees.collectives) {
      for (const auto& member : collective.members)
        of_[member.process.value()].emplace_back(member.arrival, member.end);
    }
    for (auto& [process, list] : of_) {
      std::sort(list.begin(), list.end());
      for (size_t i = 1; i < list.size(); ++i) list[i].second = std::max(list[i].second, list[i - 1].second);
    }
  }

  Nanos Before(const trace::CollectiveMember& member) const {
    const auto& list = of_.at(member.process.value());
    const auto it = std::lower_bound(list.begin(), list.end(), std::pair(member.arrival, trace::kNoTime));
    return it == list.begin() ? INT64_MIN : (it - 1)->second;
  }

 private:
  std::map<uint32_t, std::vector<std::pair<Nanos, Nanos>>> of_;  ///< process -> its arrivals and ends, in order
};

}  // namespace

std::vector<Nanos> LateStarts(const trace::Trees& trees) {
  std::vector<Nanos> late(trees.steps.size(), 0);
  Ranges ranges;
  for (uint32_t s = 0; s < trees.steps.size(); ++s)
    ranges.try_emplace(trees.steps[s].process.value(), s, s).first->second.second = s + 1;
  const Left left(trees);
  for (const auto& collective : trees.collectives) {
    // Without an order of arrival nobody is late; who receives has to wait for who sends.
    if (collective.late_rank < 0 || collective.point_to_point || collective.inferred) continue;
    const auto [last, since] = LateIn(collective);
    const auto found = ranges.find(last->process.value());
    if (found == ranges.end()) continue;
    const auto [first, end] = found->second;
    const auto begin = trees.steps.begin();
    const auto after = std::upper_bound(begin + first, begin + end, since,
                                        [](Nanos t, const trace::Step& step) { return t < step.begin; });
    const auto s = static_cast<uint32_t>(after - begin);
    if (s == first || s == end) continue;
    const Nanos from = std::max({trees.steps[s - 1].end, since, left.Before(*last)});
    const Nanos gap = std::min(trees.steps[s].begin, last->arrival) - from;
    if (gap >= kLeastLate) late[s] += gap;
  }
  return late;
}

bool IsHardlyEverIdle(const trace::Trees& trees, const std::vector<StepProfile>& profiles, trace::ProcessRow process) {
  Nanos idle = 0;
  Nanos first = trace::kNoTime;
  Nanos last = trace::kNoTime;
  for (uint32_t s = 0; s < trees.steps.size(); ++s) {
    const trace::Step& step = trees.steps[s];
    if (step.process != process) continue;
    if (first == trace::kNoTime) first = step.begin;
    last = step.end;
    if (!GapIsStall(trees.steps, s))
      idle += std::max<Nanos>(0, step.gap_before - (profiles[s].late_start ? profiles[s].gap : 0));
  }
  return kRare * idle < last - first;
}

}  // namespace teller::locate
