#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "locate/hypothesis.hpp"
#include "locate/link.hpp"
#include "locate/transfer_shift.hpp"
#include "ml/robust.hpp"

namespace teller::locate {

namespace {

constexpr double kMatters = 0.8;        // share of a step that transfers must have gained
constexpr double kFeltShare = 0.15;     // of one that a link known to lose frames made longer
constexpr double kFeltRatio = 1.3;      // and how much longer its transfers took
constexpr uint32_t kNearSteps = 20;     // from one of its long waits to the next
constexpr double kTransferRatio = 4.0;  // against the low mode of equal steps; threads of a busy host alone reach 3
constexpr double kLong = 0.5;           // of the upper quarter's length: the slow collectives of a window
constexpr size_t kFewestSteps = 3;
constexpr size_t kFewestCollectives = 3;
constexpr Nanos kLeaveFloor =
    60 * base::kMilli;               // as for pauses: a busy host's scheduler alone stops threads that long
constexpr double kMostlyLate = 0.7;  // a late rank is last in most of the collectives that cost something

/// A process's steps in Trees::steps: [first, last).
using Ranges = std::map<uint32_t, std::pair<uint32_t, uint32_t>>;

Ranges StepRanges(const Scene& scene) {
  Ranges ranges;
  for (uint32_t s = 0; s < scene.trees.steps.size(); ++s) {
    const auto [it, fresh] = ranges.try_emplace(scene.trees.steps[s].process.value(), s, s);
    it->second.second = s + 1;
  }
  return ranges;
}

/// The profiler starts at unequal times over ranks: what happens in a process's first step is its doing.
bool InFirstStep(const Scene& scene, const Ranges& ranges, const trace::CollectiveMember& member) {
  const auto found = ranges.find(member.process.value());
  return found != ranges.end() && member.arrival < scene.trees.steps[found->second.first].end;
}

/// Books a loss on the process's step that runs at `at`.
void AddStepAt(const Scene& scene, const Ranges& ranges, trace::ProcessRow process, Nanos at, Nanos lost,
               Hypothesis& h) {
  const auto found = ranges.find(process.value());
  if (found == ranges.end()) return;
  const auto first = scene.trees.steps.begin() + found->second.first;
  const auto last = scene.trees.steps.begin() + found->second.second;
  const auto it = std::lower_bound(first, last, at, [](const trace::Step& step, Nanos t) { return step.end < t; });
  if (it == last || it->begin > at) return;
  const auto s = static_cast<uint32_t>(it - scene.trees.steps.begin());
  if (!h.steps.empty() && h.steps.back() == s) {
    h.lost_in.back() += lost;
  } else {
    h.steps.push_back(s);
    h.lost_in.push_back(lost);
  }
}

/// True when a trace of every rank of the job is there. Without one rank nobody knows when all had arrived.
bool AllRanksTraced(const Scene& scene) {
  std::set<int> ranks;
  int world = 0;
  for (const auto& process : scene.store.processes) {
    if (process.rank.has_value()) ranks.insert(*process.rank);
    world = std::max(world, process.world_size.value_or(0));
  }
  return static_cast<int>(ranks.size()) >= world;
}

/// Waiting in each step that only passes on how late a rank left its collective before: the receiver's end of a slow
/// link leaves last and the others wait for it at the next one, which is transfer too.
struct PassedOn {
  std::vector<Nanos> in_step;
  std::map<uint32_t, Nanos> usual;  // by process

  explicit PassedOn(const Scene& scene) : in_step(scene.profiles.size(), 0) {
    const CarriedWaits carried(scene);
    std::map<uint32_t, std::vector<double>> all;
    for (uint32_t s = 0; s < scene.profiles.size(); ++s) {
      const trace::Step& step = scene.trees.steps[s];
      in_step[s] = carried.In(step.process.value(), step.begin, step.end);
      if (scene.normals[s].judged) all[step.process.value()].push_back(static_cast<double>(in_step[s]));
    }
    for (const auto& [process, values] : all) usual[process] = static_cast<Nanos>(ml::Quantile(values, 0.25));
  }
};

/// Transfers of collectives that run as kernels: the host does not wait in them, so a step's own time does not hold
/// them.
struct StreamTransfers {
  std::vector<Nanos> took;   ///< by step, of the collectives that it launched
  std::vector<Nanos> usual;  ///< what collectives of the same group, kind and size take

  explicit StreamTransfers(const Scene& scene, const Ranges& ranges)
      : took(scene.trees.steps.size(), 0), usual(scene.trees.steps.size(), 0) {
    std::map<std::tuple<std::string, uint32_t, int64_t>, std::vector<uint32_t>> kinds;
    for (uint32_t c = 0; c < scene.trees.collectives.size(); ++c) {
      const auto& collective = scene.trees.collectives[c];
      const uint32_t span = collective.members.front().span.value();
      if (collective.point_to_point || scene.store.kind(span) != trace::SpanKind::kKernel) continue;
      const trace::CommArgs* args = scene.store.comm_args.Find(span);
      const int64_t elements = args == nullptr ? -1 : args->in_elements;
      kinds[{collective.group, collective.name.value(), elements}].push_back(c);
    }
    for (const auto& [kind, list] : kinds) {
      std::vector<double> all;
      for (const uint32_t c : list) all.push_back(static_cast<double>(scene.trees.collectives[c].transfer));
      const auto normal = static_cast<Nanos>(ml::Quantile(all, 0.25));
      for (const uint32_t c : list) Book(scene, ranges, scene.trees.collectives[c], normal);
    }
  }

 private:
  void Book(const Scene& scene, const Ranges& ranges, const trace::Collective& collective, Nanos normal) {
    for (const auto& member : collective.members) {
      const auto found = ranges.find(member.process.value());
      if (found == ranges.end()) continue;
      const auto first = scene.trees.steps.begin() + found->second.first;
      const auto last = scene.trees.steps.begin() + found->second.second;
      const Nanos at = LaunchedAt(scene, member);
      const auto it = std::lower_bound(first, last, at, [](const trace::Step& step, Nanos t) { return step.end < t; });
      if (it == last || it->begin > at) continue;
      const auto s = static_cast<size_t>(it - scene.trees.steps.begin());
      took[s] += collective.transfer;
      usual[s] += normal;
    }
  }
};

/// Whether transfers on the streams made the step as long as it is.
Nanos LostOnStreams(const Scene& scene, const StreamTransfers& streams, uint32_t s) {
  const Nanos lost = streams.took[s] - streams.usual[s];
  const bool several_times =
      static_cast<double>(streams.took[s]) >= kTransferRatio * static_cast<double>(streams.usual[s]);
  const auto rest = static_cast<double>(scene.trees.steps[s].duration() - lost);
  return several_times && static_cast<double>(lost) >= kMatters * rest ? lost : 0;
}

/// Collectives that take several times as long on their slowest member as most take to transfer.
class SlowCollectives {
 public:
  explicit SlowCollectives(const trace::Trees& trees) {
    std::vector<double> usual;
    for (const auto& collective : trees.collectives) usual.push_back(static_cast<double>(collective.transfer));
    const double slow = kTransferRatio * std::max(ml::Quantile(usual, 0.5), 1.0);
    for (const auto& collective : trees.collectives) {
      if (collective.point_to_point) continue;
      Nanos length = 0;
      for (const auto& member : collective.members) length = std::max(length, member.end - member.arrival);
      if (static_cast<double>(length) < slow) continue;
      for (const auto& member : collective.members) of_[member.process.value()].emplace_back(member.arrival, length);
    }
    for (auto& [process, list] : of_) std::sort(list.begin(), list.end());
  }

  /// True when these steps of a process hold many of its own, none of which is most of their time: no single stop does
  /// that.
  bool AreMany(const trace::Trees& trees, uint32_t process, const std::vector<TransferHit>& hits) const {
    constexpr size_t kFewestSlow = 6;
    constexpr double kOne = 0.5;                    // of their time
    constexpr Nanos kFewestLost = 2 * kLeaveFloor;  // a busy host's threads cost less
    const std::vector<Nanos> lengths = LengthsIn(trees, process, hits);
    double longest = 0;
    double sum = 0;
    for (const Nanos length : lengths) {
      longest = std::max(longest, static_cast<double>(length));
      sum += static_cast<double>(length);
    }
    Nanos lost = 0;
    for (const TransferHit& hit : hits) lost += hit.lost;
    return hits.size() > 1 && lost >= kFewestLost && lengths.size() >= kFewestSlow && longest <= kOne * sum;
  }

  /// True when most of the process's own that held up these steps took as long as Linux waits, at least, before it
  /// sends again what nobody acknowledged: 200 ms (RFC 6298 without its second). No busy host makes equal stops like
  /// that.
  bool WaitedToSendAgain(const trace::Trees& trees, uint32_t process, const std::vector<TransferHit>& hits) const {
    constexpr Nanos kTimeout = 200 * base::kMilli;
    constexpr Nanos kLate = 25 * base::kMilli;
    constexpr size_t kFewest = 3;
    size_t held = 0;
    size_t equal = 0;
    for (const Nanos length : LengthsIn(trees, process, hits)) {
      held += length >= kTimeout / 2;
      equal += length >= kTimeout && length <= kTimeout + kLate;
    }
    return equal >= kFewest && 2 * equal > held;
  }

 private:
  /// Of the slow collectives that the process begins in these steps.
  std::vector<Nanos> LengthsIn(const trace::Trees& trees, uint32_t process,
                               const std::vector<TransferHit>& hits) const {
    std::vector<Nanos> lengths;
    const auto found = of_.find(process);
    if (found == of_.end()) return lengths;
    const auto& list = found->second;
    for (const TransferHit& hit : hits) {
      const trace::Step& step = trees.steps[hit.step];
      auto it = std::lower_bound(list.begin(), list.end(), std::pair(step.begin, Nanos{0}));
      for (; it != list.end() && it->first < step.end; ++it) lengths.push_back(it->second);
    }
    return lengths;
  }

  std::map<uint32_t, std::vector<std::pair<Nanos, Nanos>>> of_;  ///< process -> its arrival, length; in order
};

/// What steps lost to transfers.
class TransferLosses {
 public:
  explicit TransferLosses(const Scene& scene) : scene_(scene), passed_on_(scene), streams_(scene, StepRanges(scene)) {}

  /// 0 where the step did not lose `share` of what it should take, or where its transfers took less than `times` of
  /// what they should.
  Nanos In(uint32_t s, double share, double times) const {
    const StepProfile& p = scene_.profiles[s];
    const StepNormal& n = scene_.normals[s];
    if (!n.judged) return 0;
    if (const Nanos lost = LostOnStreams(scene_, streams_, s); lost > 0) return lost;
    const Nanos expected = n.expected_transfer + passed_on_.usual.at(scene_.trees.steps[s].process.value());
    const Nanos transfer = p.comm_transfer + passed_on_.in_step[s];
    const Nanos lost = transfer - expected;
    const auto step_cost = static_cast<double>(n.expected_own + expected);
    if (lost <= 0 || static_cast<double>(lost) < share * step_cost) return 0;
    if (static_cast<double>(transfer) < times * static_cast<double>(expected)) return 0;
    // A starved process also moves its data slowly: its own loss must be small beside the transfers'.
    return 3 * (p.own() - n.expected_own) > lost ? 0 : lost;
  }

 private:
  const Scene& scene_;
  PassedOn passed_on_;
  StreamTransfers streams_;
};

/// Where frames are lost some are sent again soon: the steps between the first and the last of a process's hits that
/// such transfers made longer.
std::vector<TransferHit> WithAllInBetween(const TransferLosses& losses, const std::vector<TransferHit>& hits) {
  std::vector<TransferHit> all;
  for (size_t i = 0; i < hits.size(); ++i) {
    all.push_back(hits[i]);
    if (i + 1 == hits.size() || hits[i + 1].step - hits[i].step > kNearSteps) continue;
    for (uint32_t s = hits[i].step + 1; s < hits[i + 1].step; ++s) {
      if (const Nanos lost = losses.In(s, kFeltShare, kFeltRatio); lost > 0) all.push_back({lost, s});
    }
  }
  return all;
}

TransferHits FindTransferHits(const Scene& scene) {
  const TransferLosses losses(scene);
  TransferHits hits;
  for (uint32_t s = 0; s < scene.profiles.size(); ++s) {
    if (const Nanos lost = losses.In(s, kMatters, kTransferRatio); lost > 0)
      hits[scene.trees.steps[s].process.value()].push_back({lost, s});
  }
  // A slow link stays slow for a while; single slow transfers are what a busy host's threads do.
  const SlowCollectives slow(scene.trees);
  for (auto it = hits.begin(); it != hits.end();) {
    std::vector<TransferHit>& list = it->second;
    size_t window = 0;
    for (uint32_t s = list.front().step; s <= list.back().step; ++s) window += scene.normals[s].judged;
    const bool loses_frames = slow.WaitedToSendAgain(scene.trees, it->first, list);
    const bool few = list.size() < kFewestSteps && !slow.AreMany(scene.trees, it->first, list);
    if (loses_frames) list = WithAllInBetween(losses, list);
    it = loses_frames || (!few && 2 * list.size() >= window) ? std::next(it) : hits.erase(it);
  }
  return hits;
}

Nanos Sum(const std::vector<TransferHit>& hits) {
  Nanos lost = 0;
  for (const TransferHit& hit : hits) lost += hit.lost;
  return lost;
}

/// The long ones among the collectives that began in [begin, end].
std::vector<uint32_t> LongCollectives(const Scene& scene, Nanos begin, Nanos end) {
  std::vector<uint32_t> inside;
  std::vector<double> lengths;
  for (uint32_t c = 0; c < scene.trees.collectives.size(); ++c) {
    const auto& collective = scene.trees.collectives[c];
    const Nanos at = collective.members.front().arrival;
    if (collective.point_to_point || at < begin || at > end) continue;
    Nanos length = 0;
    for (const auto& member : collective.members) length = std::max(length, member.end - member.arrival);
    inside.push_back(c);
    lengths.push_back(static_cast<double>(length));
  }
  const double most = ml::Quantile(lengths, 0.75);
  std::vector<uint32_t> out;
  for (size_t i = 0; i < inside.size(); ++i) {
    if (lengths[i] >= kLong * most) out.push_back(inside[i]);
  }
  return out;
}

/// Puts the claim on the end whose sends are slow, where the order of leaving shows it; else on the rank that lost
/// most.
void ChooseEnd(const Scene& scene, const TransferHits& hits, Hypothesis& h) {
  Nanos most = -1;
  Nanos begin = INT64_MAX;
  Nanos end = INT64_MIN;
  for (const auto& [process, list] : hits) {
    begin = std::min(begin, scene.trees.steps[list.front().step].begin);
    end = std::max(end, scene.trees.steps[list.back().step].end);
    if (Sum(list) <= most) continue;
    most = Sum(list);
    h.process = trace::ProcessRow(process);
  }
  h.rank = scene.store.processes[h.process.value()].rank;
  const std::vector<uint32_t> slow = LongCollectives(scene, begin, end);
  const SlowLink link = FindSlowLink(scene, slow);
  if (!link.sender.has_value()) return;
  h.rank = link.sender;
  h.peer = link.receiver;
  h.both_ways = link.both_ways;
  h.link_share = link.share;
  for (const uint32_t c : slow) {
    for (const auto& member : scene.trees.collectives[c].members) {
      if (member.rank == *link.sender && hits.count(member.process.value()) > 0) h.process = member.process;
    }
  }
}

/// Of what one rank sends another the ends are known; which of them is at fault is not.
void SetRoute(const Scene& scene, const Route& route, Hypothesis& h) {
  h.process = route.from;
  h.rank = scene.store.processes[route.from.value()].rank;
  h.peer = scene.store.processes[route.to.value()].rank;
  h.sent = true;
}

/// Collectives that took long after everyone had arrived, on the ranks of a step.
void SearchTransfers(const Scene& scene, std::vector<Hypothesis>& out) {
  if (!AllRanksTraced(scene)) return;
  TransferHits hits = FindTransferHits(scene);
  TransferShift shift;
  if (hits.size() < 2) {
    shift = FindTransferShift(scene);
    hits = std::move(shift.hits);
  }
  if (hits.size() < 2) return;  // a link has two ends
  Hypothesis h;
  h.trouble = Trouble::kSlowTransfer;
  if (shift.route) {
    SetRoute(scene, *shift.route, h);
  } else {
    ChooseEnd(scene, hits, h);
  }
  for (const TransferHit& hit : hits.at(h.process.value())) {
    const trace::Step& step = scene.trees.steps[hit.step];
    h.steps.push_back(hit.step);
    h.lost_in.push_back(hit.lost);
    h.lost += hit.lost;
    if (h.onset == trace::kNoTime) h.onset = step.begin;
    h.end = step.end;
  }
  Nanos longest = 0;
  for (uint32_t c = 0; c < scene.trees.collectives.size(); ++c) {
    const auto& collective = scene.trees.collectives[c];
    const Nanos at = collective.members.front().arrival;
    if (at < h.onset || at > h.end || RouteOf(scene.store, collective) != shift.route) continue;
    h.collectives.push_back(c);
    if (const Nanos transfer = TransferOf(collective); transfer > longest) {
      longest = transfer;
      h.worst = transfer;
      h.worst_begin = at;
      for (const auto& member : collective.members) {
        if (member.process == h.process) h.span = member.span.value();
      }
    }
  }
  const StepNormal& n = scene.normals[h.steps.front()];
  h.usual = shift.usual > 0 ? shift.usual : n.expected_transfer;
  // Fewer steps were let through for their many slow collectives.
  const auto steps = static_cast<double>(std::max(h.steps.size(), kFewestSteps));
  h.false_alarm = std::clamp(std::pow(0.05, steps - 0.5), 1e-9, 1.0);
  if (shift.usual > 0) h.false_alarm = shift.false_alarm;
  out.push_back(std::move(h));
}

/// P(X >= k) for X binomial (n, p).
double BinomialTail(size_t n, size_t k, double p) {
  double tail = 0;
  for (size_t i = k; i <= n; ++i) {
    const double log_choose = std::lgamma(static_cast<double>(n) + 1) - std::lgamma(static_cast<double>(i) + 1) -
                              std::lgamma(static_cast<double>(n - i) + 1);
    tail += std::exp(log_choose + static_cast<double>(i) * std::log(p) + static_cast<double>(n - i) * std::log1p(-p));
  }
  return tail;
}

/// One rank last in the collectives that cost the others most; only where too few steps were traced to compare them.
void SearchLateRank(const Scene& scene, std::vector<Hypothesis>& out) {
  size_t judged = 0;
  for (const auto& normal : scene.normals) judged += normal.judged;
  if (judged > 0 || !AllRanksTraced(scene))
    return;  // a late rank's own steps say why; who is last by a little says nothing
  std::map<int, std::vector<uint32_t>> late;
  std::map<int, Nanos> cost;
  size_t waiting = 0;
  Nanos begin = trace::kNoTime;
  Nanos end = trace::kNoTime;
  Nanos waited = 0;
  size_t ranks = 0;
  for (uint32_t c = 0; c < scene.trees.collectives.size(); ++c) {
    const auto& collective = scene.trees.collectives[c];
    for (const auto& member : collective.members) {
      if (begin == trace::kNoTime || member.arrival < begin) begin = member.arrival;
      if (end == trace::kNoTime || member.end > end) end = member.end;
    }
    if (collective.members.size() < 3) continue;  // of two, one is always last
    // Ends that disagree by more than the lateness say that the clocks do, not the ranks; and it must cost more than
    // the transfer itself.
    const Nanos apart = std::max(scene.trees.clock_error, scene.trees.clock_spread);
    if (collective.late_rank < 0 || collective.late_by < 2 * apart || collective.late_by < collective.transfer)
      continue;
    ++waiting;
    ranks = std::max(ranks, collective.members.size());
    late[collective.late_rank].push_back(c);
    cost[collective.late_rank] += collective.late_by;
    waited += collective.late_by;
  }
  if (end == trace::kNoTime || static_cast<double>(waited) * 20 < static_cast<double>(end - begin))
    return;  // under 5 % of the time: nobody's fault
  for (const auto& [rank, list] : late) {
    if (list.size() < kFewestCollectives || static_cast<double>(cost[rank]) < kMostlyLate * static_cast<double>(waited))
      continue;
    Hypothesis h;
    h.trouble = Trouble::kLateRank;
    h.rank = rank;
    h.collectives = list;
    h.lost = cost[rank];
    for (const uint32_t c : list) {
      const auto& collective = scene.trees.collectives[c];
      for (const auto& member : collective.members) {
        if (member.rank != rank) continue;
        h.process = member.process;
        if (h.onset == trace::kNoTime || member.arrival < h.onset) h.onset = member.arrival;
        h.end = std::max(h.end == trace::kNoTime ? member.end : h.end, member.end);
        if (collective.late_by <= h.worst) continue;
        h.worst = collective.late_by;
        h.worst_begin = member.arrival;
        h.span = member.span.value();
      }
    }
    // By chance each rank is last equally often.
    const auto r = static_cast<double>(ranks);
    h.false_alarm = std::clamp(r * BinomialTail(waiting, list.size(), 1 / r), 1e-9, 1.0);
    out.push_back(std::move(h));
  }
}

std::set<uint32_t> ProcessesWithDevices(const Scene& scene) {
  std::set<uint32_t> processes;
  for (const StepProfile& profile : scene.profiles) {
    if (profile.uses_device) processes.insert(scene.trees.steps[profile.step].process.value());
  }
  return processes;
}

/// One rank that leaves a collective long after the others: it stood still inside, where its own steps show only
/// transfer.
void SearchLateLeavers(const Scene& scene, std::vector<Hypothesis>& out) {
  struct Leave {
    Nanos late = 0;
    uint32_t collective = 0;
    const trace::CollectiveMember* member = nullptr;
  };
  const Ranges ranges = StepRanges(scene);
  const std::set<uint32_t> with_device = ProcessesWithDevices(scene);
  std::vector<Leave> leaves;
  std::vector<double> usual;
  std::vector<double> steps;
  for (const auto& profile : scene.profiles) steps.push_back(static_cast<double>(profile.own()));
  for (uint32_t c = 0; c < scene.trees.collectives.size(); ++c) {
    const auto& members = scene.trees.collectives[c].members;
    if (scene.trees.collectives[c].point_to_point) continue;  // a send may end long before its receive
    // The call that launches a collective on a device returns at once: ranks do not meet in it.
    const bool op = scene.store.kind(members.front().span.value()) == trace::SpanKind::kOp;
    if (op && with_device.count(members.front().process.value()) > 0) continue;
    const auto last =
        std::max_element(members.begin(), members.end(), [](const auto& a, const auto& b) { return a.end < b.end; });
    std::vector<double> others;
    for (const auto& m : members) {
      if (&m != &*last) others.push_back(static_cast<double>(m.end));
    }
    const Nanos late = last->end - static_cast<Nanos>(ml::Quantile(others, 0.5));
    usual.push_back(static_cast<double>(late));
    leaves.push_back({late, c, &*last});
  }
  const double floor =
      std::max({static_cast<double>(kLeaveFloor), ml::Quantile(steps, 0.5), 20 * ml::Quantile(usual, 0.9)});
  std::map<int, std::vector<Leave>> by_rank;
  for (const Leave& leave : leaves) {
    if (static_cast<double>(leave.late) < floor || InFirstStep(scene, ranges, *leave.member)) continue;
    by_rank[leave.member->rank].push_back(leave);
  }
  for (const auto& [rank, list] : by_rank) {
    if (list.size() * 10 > leaves.size()) continue;  // so often it is the link or the clock
    Hypothesis h;
    h.trouble = Trouble::kPause;
    h.rank = rank;
    h.process = list.front().member->process;
    for (const Leave& leave : list) {
      const Nanos begin = leave.member->end - leave.late;
      h.lost += leave.late;
      if (h.onset == trace::kNoTime || begin < h.onset) h.onset = begin;
      h.end = std::max(h.end == trace::kNoTime ? leave.member->end : h.end, leave.member->end);
      h.collectives.push_back(leave.collective);
      AddStepAt(scene, ranges, leave.member->process, leave.member->end, leave.late, h);
      if (leave.late > h.worst) {
        h.worst = leave.late;
        h.worst_begin = begin;
        h.span = leave.member->span.value();
      }
    }
    h.usual = static_cast<Nanos>(ml::Quantile(usual, 0.5));
    const double over = static_cast<double>(h.worst) / std::max(1.0, ml::Quantile(usual, 0.95));
    h.false_alarm = std::min(1.0, static_cast<double>(leaves.size()) * std::pow(over, -3.0));
    out.push_back(std::move(h));
  }
}

}  // namespace

std::vector<Hypothesis> SearchHorizontal(const Scene& scene) {
  std::vector<Hypothesis> out;
  SearchTransfers(scene, out);
  SearchLateRank(scene, out);
  SearchLateLeavers(scene, out);
  return out;
}

}  // namespace teller::locate
