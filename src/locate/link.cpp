#include "locate/link.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "ml/robust.hpp"

namespace teller::locate {

namespace {

constexpr size_t kFewestSlow = 5;
constexpr size_t kManyUsual = 40;   // other collectives that tell how far leaving times vary when all is well
constexpr double kAgree = 0.75;     // of the slow collectives must show the same rank first, and the same last
constexpr double kClearly = 0.05;   // of a slow collective's length that leaving times must lie apart
constexpr double kTogether = 0.35;  // of the mean distance between neighbours in the order of leaving

/// How much later than the middle of its collective each rank leaves.
std::map<int, double> Lateness(const trace::Collective& collective) {
  std::vector<double> ends;
  for (const auto& m : collective.members) ends.push_back(static_cast<double>(m.end - collective.members.front().end));
  const double middle = ml::Quantile(ends, 0.5);
  std::map<int, double> late;
  for (size_t i = 0; i < ends.size(); ++i) late[collective.members[i].rank] = ends[i] - middle;
  return late;
}

Nanos Length(const trace::Collective& collective) {
  Nanos longest = 0;
  for (const auto& m : collective.members) longest = std::max(longest, m.end - m.arrival);
  return longest;
}

/// Median of each rank's lateness over some collectives of all `ranks`.
std::map<int, double> UsualLateness(const std::vector<std::map<int, double>>& each) {
  std::map<int, std::vector<double>> values;
  for (const auto& late : each) {
    for (const auto& [rank, value] : late) values[rank].push_back(value);
  }
  std::map<int, double> out;
  for (auto& [rank, list] : values) out[rank] = ml::Quantile(list, 0.5);
  return out;
}

/// How much each rank's lateness varies over most of some collectives, at most. What is usual is taken off, so an
/// offset between two clocks that nobody knows says nothing here: only what changes does.
double SpreadOfLateness(const std::vector<std::map<int, double>>& each) {
  std::map<int, std::vector<double>> values;
  for (const auto& late : each) {
    for (const auto& [rank, value] : late) values[rank].push_back(value);
  }
  double most = 0;
  for (const auto& [rank, list] : values) most = std::max(most, 3 * ml::RobustScale(list));
  return most;
}

Nanos LargestPairError(const Scene& scene, const trace::Collective& collective) {
  Nanos most = 0;
  for (const auto& m : collective.members) {
    most = std::max(most, trace::PairError(scene.trees.clocks, collective.members.front().process, m.process));
  }
  return most;
}

/// The next rank up in a ring over these ranks, in their order.
int Next(const std::vector<int>& ring, int rank) {
  const auto at = std::find(ring.begin(), ring.end(), rank);
  return at + 1 == ring.end() ? ring.front() : *(at + 1);
}

}  // namespace

CarriedWaits::CarriedWaits(const Scene& scene) : by_process_(scene.store.processes.size()) {
  std::map<uint32_t, Nanos> left;                           // process -> when it left its collective before
  for (const auto& collective : scene.trees.collectives) {  // by first arrival
    if (collective.point_to_point) continue;
    const auto last = std::max_element(collective.members.begin(), collective.members.end(),
                                       [](const auto& a, const auto& b) { return a.arrival < b.arrival; });
    const auto last_left = left.find(last->process.value());
    for (const auto& m : collective.members) {
      const auto mine = left.find(m.process.value());
      if (&m == &*last || mine == left.end() || last_left == left.end()) continue;
      const Nanos carried = std::min(m.wait, last_left->second - mine->second);
      if (carried <= 0) continue;
      auto& list = by_process_[m.process.value()];
      list.push_back({m.arrival, (list.empty() ? 0 : list.back().until_here) + carried});
    }
    for (const auto& m : collective.members) {
      const auto [it, fresh] = left.try_emplace(m.process.value(), m.end);
      if (!fresh) it->second = std::max(it->second, m.end);
    }
  }
}

Nanos CarriedWaits::In(uint32_t process, Nanos begin, Nanos end) const {
  const auto& list = by_process_[process];
  const auto before = [&](Nanos at) {
    const auto it = std::lower_bound(list.begin(), list.end(), at, [](const Wait& w, Nanos t) { return w.at < t; });
    return it == list.begin() ? Nanos{0} : (it - 1)->until_here;
  };
  return before(end) - before(begin);
}

SlowLink FindSlowLink(const Scene& scene, const std::vector<uint32_t>& slow) {
  SlowLink link;
  const auto& all = scene.trees.collectives;
  size_t members = 0;
  for (const uint32_t c : slow) members = std::max(members, all[c].members.size());
  // Only collectives of all of these ranks: others cross other links.
  std::vector<std::map<int, double>> then;
  std::vector<double> lengths;
  Nanos error = 0;
  const std::set<uint32_t> among(slow.begin(), slow.end());
  std::set<int> ranks;
  for (const uint32_t c : slow) {
    if (all[c].members.size() != members) continue;
    then.push_back(Lateness(all[c]));
    lengths.push_back(static_cast<double>(Length(all[c])));
    error = std::max(error, LargestPairError(scene, all[c]));
    for (const auto& m : all[c].members) ranks.insert(m.rank);
  }
  if (then.size() < kFewestSlow || ranks.size() != members || members < 2 || error == trace::kUnknownClock) return link;
  std::vector<std::map<int, double>> usual;
  for (uint32_t c = 0; c < all.size(); ++c) {
    if (among.count(c) == 0 && all[c].members.size() == members) usual.push_back(Lateness(all[c]));
  }
  const std::map<int, double> before = UsualLateness(usual);
  if (usual.size() >= kManyUsual) error = std::min(error, static_cast<Nanos>(SpreadOfLateness(usual)));
  for (auto& late : then) {
    for (auto& [rank, value] : late) {
      const auto found = before.find(rank);
      if (found != before.end()) value -= found->second;
    }
  }
  const std::map<int, double> now = UsualLateness(then);
  std::vector<std::pair<double, int>> order;
  for (const auto& [rank, value] : now) order.emplace_back(value, rank);
  std::sort(order.begin(), order.end());
  const auto [first_late, first] = order.front();
  const auto [last_late, last] = order.back();
  const double apart = last_late - first_late;
  if (apart <= 2 * static_cast<double>(error) || apart < kClearly * ml::Quantile(lengths, 0.5)) return link;
  size_t agree = 0;
  for (const auto& late : then)
    agree += late.count(first) > 0 && late.count(last) > 0 && late.at(last) - late.at(first) > apart / 2;
  link.share = static_cast<double>(agree) / static_cast<double>(then.size());
  if (link.share < kAgree) return link;
  link.apart = static_cast<Nanos>(apart);
  const std::vector<int> ring(ranks.begin(), ranks.end());
  const int next = Next(ring, first);
  const int after = Next(ring, next);
  const double step = apart / static_cast<double>(order.size() - 1);
  const int second = order[order.size() - 2].second;
  const bool together = order.size() > 2 && last_late - order[order.size() - 2].first < kTogether * step;
  if (order.size() > 2 && (last == after || (together && last == next && second == after))) {
    link.sender = next;
    link.receiver = after;
    link.both_ways = true;
  } else if (last == next) {
    link.sender = first;
    link.receiver = last;
  }
  return link;
}

}  // namespace teller::locate
