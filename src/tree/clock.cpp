#include "tree/clock.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <queue>

#include "tree/line_fit.hpp"

namespace teller::tree {

namespace {

using base::Minus;
using trace::Nanos;
using trace::ProcessClock;

constexpr double kMiss = 0.005;       // of runs in which an error bound is passed somewhere; half of what is promised
constexpr size_t kMostPoints = 4096;  // of a pair: more change nothing, they are spread over the window
constexpr size_t kLargeGroup = 128;   // members of a collective from which on only pairs with the first are looked at
constexpr uint32_t kFewest = 3;       // collectives that two clocks must share
constexpr Nanos kSharedClock = base::kMicro;  // GPU times reach the host's clock by a conversion of their own
constexpr Nanos kClearly = 2;                 // standard deviations of a single difference
constexpr uint32_t kNone = UINT32_MAX;

Nanos Ceil(double value) {
  return static_cast<Nanos>(std::ceil(std::clamp(value, 0.0, 4e18)));
}

/// Clocks (processes, or domains of several) tied to a reference by the collectives between them.
class Stitcher {
 public:
  /// `collectives` name clocks, not processes.
  Stitcher(size_t clocks, const std::vector<CollectiveEnds>& collectives)
      : collectives_(collectives), of_(clocks), ties_(clocks) {
    for (uint32_t c = 0; c < collectives.size(); ++c) {
      if (collectives[c].members.size() < 2) continue;
      for (const auto& member : collectives[c].members) of_[member.process].push_back(c);
    }
  }

  /// Empty when no clock shares a collective with another.
  std::vector<ProcessClock> Run() {
    uint32_t reference = kNone;
    size_t active = 0;
    for (uint32_t v = 0; v < of_.size(); ++v) {
      active += !of_[v].empty();
      if (!of_[v].empty() && (reference == kNone || of_[v].size() > of_[reference].size())) reference = v;
    }
    if (reference == kNone) return {};
    // At both ends of each window the bound may be passed.
    miss_ = kMiss / (2 * static_cast<double>(std::max<size_t>(active - 1, 1)));
    clocks_.assign(of_.size(), {});
    for (uint32_t v = 0; v < of_.size(); ++v) SetWindow(v);
    Link(reference);
    return std::move(clocks_);
  }

 private:
  /// How a clock hangs on the one that it was tied to.
  struct Tie {
    uint32_t parent = kNone;
    Nanos base = 0;  // ns ahead of the parent, to which the line adds
    LineFit line;
  };

  /// An untried tie: the path to `to` over `from` would have this variance if all differences were equally good.
  struct Way {
    double variance;
    uint32_t from;
    uint32_t to;
    bool operator>(const Way& o) const { return std::tuple(variance, to, from) > std::tuple(o.variance, o.to, o.from); }
  };

  void SetWindow(uint32_t v) {
    Nanos first = INT64_MAX;
    Nanos last = INT64_MIN;
    for (const uint32_t c : of_[v]) {
      const Nanos end = *EndOf(c, v);
      first = std::min(first, end);
      last = std::max(last, end);
    }
    if (of_[v].empty()) return;
    clocks_[v].half_window = Minus(last, first) / 2;
    clocks_[v].middle = first + clocks_[v].half_window;
  }

  const Nanos* EndOf(uint32_t collective, uint32_t v) const {
    const auto& members = collectives_[collective].members;
    const auto it =
        std::lower_bound(members.begin(), members.end(), v, [](const auto& m, uint32_t p) { return m.process < p; });
    return it == members.end() || it->process != v ? nullptr : &it->end;
  }

  /// Best-proven ties first (Dijkstra over the variance of the path); a tie that proves nothing leaves the others a
  /// chance.
  void Link(uint32_t reference) {
    std::priority_queue<Way, std::vector<Way>, std::greater<>> ways;
    clocks_[reference].linked = true;
    clocks_[reference].collectives = static_cast<uint32_t>(of_[reference].size());
    AddWays(reference, 0, ways);
    while (!ways.empty()) {
      const Way way = ways.top();
      ways.pop();
      if (clocks_[way.to].linked || !TieTo(way.to, way.from)) continue;
      AddWays(way.to, way.variance, ways);
    }
  }

  void AddWays(uint32_t from, double variance, std::priority_queue<Way, std::vector<Way>, std::greater<>>& ways) const {
    std::map<uint32_t, uint32_t> shared;
    for (const uint32_t c : of_[from]) {
      const auto& members = collectives_[c].members;
      const bool large = members.size() > kLargeGroup;
      if (large && members.front().process != from) {
        ++shared[members.front().process];
        continue;
      }
      for (const auto& member : members) ++shared[member.process];
    }
    for (const auto& [to, n] : shared) {
      if (to != from && n >= kFewest && !clocks_[to].linked) ways.push({variance + 1.0 / n, from, to});
    }
  }

  bool TieTo(uint32_t v, uint32_t u) {
    std::vector<uint32_t> shared;
    for (const uint32_t c : of_[v]) {
      if (EndOf(c, u) != nullptr) shared.push_back(c);
    }
    Tie tie{u, Minus(*EndOf(shared[0], v), *EndOf(shared[0], u)), {}};
    std::vector<ClockPoint> points;
    const size_t n = std::min(shared.size(), kMostPoints);
    for (size_t k = 0; k < n; ++k) {
      const uint32_t c = shared[k * shared.size() / n];
      const Nanos end = *EndOf(c, v);
      points.push_back({static_cast<double>(Minus(end, clocks_[v].middle)),
                        static_cast<double>(Minus(Minus(end, *EndOf(c, u)), tie.base)), collectives_[c].kind});
    }
    tie.line = FitLine(std::move(points), miss_);
    if (!tie.line.ok) return false;
    ties_[v] = tie;
    ProcessClock& clock = clocks_[v];
    // Composed with how the parent lies against the reference.
    const ProcessClock& parent = clocks_[u];
    clock.offset = tie.base + Near(tie.line.level);
    clock.offset += parent.ShiftAt(Minus(clock.middle, clock.offset));
    clock.drift = tie.line.slope + parent.drift * (1 - tie.line.slope);
    clock.collectives = static_cast<uint32_t>(shared.size());
    clock.spread = Ceil(tie.line.spread);
    const double error =
        std::max(ErrorAt(v, clock.middle - clock.half_window), ErrorAt(v, clock.middle + clock.half_window));
    if (!(error < static_cast<double>(clock.half_window))) {  // orders nothing that was recorded
      ties_[v] = {};
      return false;
    }
    clock.error = Ceil(error);
    clock.linked = true;
    return true;
  }

  static Nanos Near(double value) { return std::llround(std::clamp(value, -1e18, 1e18)); }

  /// Along the ties to the reference; each adds its own error.
  double ErrorAt(uint32_t v, Nanos at) const {
    double squares = 0;
    while (ties_[v].parent != kNone) {
      const Tie& tie = ties_[v];
      const double x = static_cast<double>(Minus(at, clocks_[v].middle));
      const double error = tie.line.ErrorAt(x);
      squares += error * error;
      at = Minus(at, tie.base + Near(tie.line.level + tie.line.slope * x));
      v = tie.parent;
    }
    return std::sqrt(squares);
  }

  const std::vector<CollectiveEnds>& collectives_;
  std::vector<std::vector<uint32_t>> of_;  // clock -> its collectives
  std::vector<Tie> ties_;
  std::vector<ProcessClock> clocks_;
  double miss_ = kMiss;
};

/// Largest |shift| over the window, which a line takes at one of its ends.
Nanos LargestShift(const ProcessClock& clock) {
  const double away = std::abs(clock.drift) * static_cast<double>(clock.half_window);
  return Ceil(std::abs(static_cast<double>(clock.offset)) + away);
}

/// Largest difference of two clocks of one host over their windows, both as fitted.
double Difference(const ProcessClock& a, const ProcessClock& b) {
  double most = 0;
  for (const Nanos at : {a.middle - a.half_window, a.middle + a.half_window}) {
    most = std::max(most, std::abs(static_cast<double>(Minus(a.ShiftAt(at), b.ShiftAt(at)))));
  }
  return most;
}

/// Processes of one host share a clock where their fits agree. Returns the domain of each process.
std::vector<uint32_t> ShareHosts(const std::vector<std::string>& hosts, const std::vector<ProcessClock>& clocks,
                                 ClockFit& fit) {
  std::vector<uint32_t> domains(clocks.size());
  std::map<std::string, uint32_t> first;
  for (uint32_t p = 0; p < clocks.size(); ++p) {
    domains[p] = p;
    if (p >= hosts.size() || hosts[p].empty() || !clocks[p].linked) continue;
    const auto [it, fresh] = first.try_emplace(hosts[p], p);
    if (fresh) continue;
    const ProcessClock& other = clocks[it->second];
    const double error = std::hypot(static_cast<double>(clocks[p].error), static_cast<double>(other.error));
    // Here too: what is inside the spread of single leavings may be a way of leaving and no clock.
    const auto spread = static_cast<double>(kClearly * std::max(clocks[p].spread, other.spread));
    if (Difference(clocks[p], other) <= std::max(error, spread) + static_cast<double>(kSharedClock)) {
      domains[p] = it->second;
    } else {
      fit.host_disagrees.emplace_back(it->second, p);
    }
  }
  return domains;
}

/// The same collectives with one member a domain: the median of its processes' ends.
std::vector<CollectiveEnds> OverDomains(const std::vector<CollectiveEnds>& collectives,
                                        const std::vector<uint32_t>& domains) {
  std::vector<CollectiveEnds> out;
  for (const CollectiveEnds& collective : collectives) {
    std::map<uint32_t, std::vector<Nanos>> ends;
    for (const auto& member : collective.members) ends[domains[member.process]].push_back(member.end);
    CollectiveEnds merged{collective.kind, {}};
    for (auto& [domain, list] : ends) {
      std::nth_element(list.begin(), list.begin() + static_cast<int64_t>((list.size() - 1) / 2), list.end());
      merged.members.push_back({domain, list[(list.size() - 1) / 2]});
    }
    out.push_back(std::move(merged));
  }
  return out;
}

/// Fits each domain and gives its processes their domain's line.
std::vector<ProcessClock> FitDomains(const std::vector<CollectiveEnds>& collectives,
                                     const std::vector<uint32_t>& domains, const std::vector<ProcessClock>& alone) {
  const std::vector<ProcessClock> fitted = Stitcher(domains.size(), OverDomains(collectives, domains)).Run();
  std::vector<ProcessClock> clocks = alone;
  std::map<uint32_t, size_t> size;
  for (const uint32_t domain : domains) ++size[domain];
  for (uint32_t p = 0; p < clocks.size(); ++p) {
    const uint32_t domain = domains[p];
    clocks[p].domain = domain;
    if (!alone[p].linked) continue;
    if (!fitted.empty() && fitted[domain].linked) {
      const Nanos apart = Ceil(Difference(alone[p], alone[domain]));
      clocks[p] = fitted[domain];
      if (size[domain] > 1) clocks[p].error = std::max({clocks[p].error, kSharedClock, domain == p ? 0 : apart});
    } else {
      // All processes are of one host: there is nothing to tie to but itself.
      const Nanos apart = domain == p ? 0 : Ceil(Difference(alone[p], alone[domain]));
      clocks[p].offset = 0;
      clocks[p].drift = 0;
      clocks[p].error = std::max(kSharedClock, apart);
    }
    clocks[p].collectives = alone[p].collectives;
    clocks[p].domain = domain;
  }
  return clocks;
}

}  // namespace

ClockFit FitClocks(size_t processes, const std::vector<std::string>& hosts,
                   const std::vector<CollectiveEnds>& collectives) {
  ClockFit fit;
  fit.clocks = Stitcher(processes, collectives).Run();
  fit.clocks.resize(processes);
  if (std::count_if(fit.clocks.begin(), fit.clocks.end(), [](const auto& c) { return c.linked; }) < 2) {
    for (ProcessClock& clock : fit.clocks) clock = {};  // a reference that nothing refers to
  }
  const std::vector<uint32_t> domains = ShareHosts(hosts, fit.clocks, fit);
  bool shared = false;
  for (uint32_t p = 0; p < domains.size(); ++p) {
    shared = shared || domains[p] != p;
    fit.clocks[p].domain = domains[p];
  }
  if (shared) fit.clocks = FitDomains(collectives, domains, fit.clocks);
  Nanos largest = 0;
  Nanos second = 0;
  for (ProcessClock& clock : fit.clocks) {
    if (!clock.linked) continue;
    ++fit.linked;
    const Nanos shift = LargestShift(clock);
    // Inside the spread of single leavings it may as well be a rank's way of leaving: one that is starved is always
    // late.
    clock.corrected = shift > std::max(clock.error, kClearly * clock.spread);
    fit.corrected += clock.corrected;
    if (!clock.corrected) {
      clock.error += shift;
      clock.offset = 0;
      clock.drift = 0;
    }
    second = std::max(second, std::min(largest, clock.error));
    largest = std::max(largest, clock.error);
  }
  fit.error = Ceil(std::hypot(static_cast<double>(largest), static_cast<double>(second)));
  return fit;
}

}  // namespace teller::tree
