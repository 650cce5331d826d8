#include "tree/collectives.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "tree/clock.hpp"
#include "tree/collective_match.hpp"
#include "tree/peer_kernels.hpp"
#include "tree/peer_pairs.hpp"

namespace teller::tree {

namespace {

using trace::Collective;
using trace::CollectiveMember;
using trace::Nanos;
using trace::SpanKind;

constexpr base::DiagnosticKind kUncalibrated{"tree.clock_uncalibrated", base::Severity::kNotice,
                                             "nothing ties these ranks' clocks to the others: no order of events "
                                             "across them is claimed; trace three or more collectives "
                                             "that all ranks take part in"};
constexpr base::DiagnosticKind kHostDisagrees{
    "tree.clock_host", base::Severity::kNotice,
    "two processes name one host, but their clocks differ by more than their collectives "
    "leave open; they are corrected one by one"};

Nanos Median(std::vector<Nanos> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

bool IsNcclKernelName(std::string_view name) {
  return name.starts_with("ncclDevKernel") || name.starts_with("ncclKernel");
}

/// "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)" -> "ncclDevKernel_AllReduce": algorithms may differ by size.
std::string KernelFamily(std::string_view name) {
  const size_t first = name.find('_');
  if (first == std::string_view::npos) return std::string(name);
  const size_t second = name.find_first_of("_(", first + 1);
  return std::string(name.substr(0, second));
}

/// What must be equal for two ranks' spans to be the same collective.
std::string GroupKey(const trace::Store& store, uint32_t span, int replica) {
  const std::string_view name = store.name(span);
  std::string key = store.kind(span) == SpanKind::kKernel ? KernelFamily(name) : std::string(name);
  if (const auto* args = store.comm_args.Find(span); args != nullptr) {
    for (const trace::StringId part : {args->group, args->group_ranks}) {
      if (part.valid()) key += " " + std::string(store.text(part));
    }
  }
  if (replica > 0) key += " of replica " + std::to_string(replica);
  return key;
}

/// What libraries name, by what it is.
struct NamedSpans {
  std::vector<MatchedGroup> groups;               ///< collectives
  std::vector<std::vector<RankSpans>> transfers;  ///< sends and receives, one entry a library and replica
};

/// True when a SendRecv kernel is part of a collective: its group says so.
bool IsOfLargerGroup(const trace::Store& store, uint32_t span) {
  const auto* args = store.comm_args.Find(span);
  return args != nullptr && (args->group_size > 2 || args->group.valid() || args->group_ranks.valid());
}

/// True when every rank has as many: a SendRecv kernel is then taken for an all-to-all, as exchanges between some ranks
/// give the ranks unequal numbers.
bool EqualCounts(const std::vector<RankSpans>& ranks) {
  return std::all_of(ranks.begin(), ranks.end(),
                     [&](const auto& r) { return r.spans.size() == ranks.front().spans.size(); });
}

/// Spans that may be one collective, and single transfers, over at least two ranks.
NamedSpans FindNamed(const trace::Store& store) {
  std::map<std::string, std::map<int, RankSpans>> groups;
  std::map<std::string, std::map<int, RankSpans>> transfers;
  const std::vector<int> replicas = Replicas(store);
  for (uint32_t row = 0; row < store.spans.size(); ++row) {
    const SpanKind kind = store.kind(row);
    if (kind != SpanKind::kKernel && kind != SpanKind::kAnnotation && kind != SpanKind::kOp) continue;
    const auto& process = store.process_of(row);
    if (!process.rank.has_value()) continue;
    const PeerEnd end = PeerEndOf(store, row);
    const int replica = replicas[store.track_of(row).process.value()];
    const bool transfer = end == PeerEnd::kSend || end == PeerEnd::kReceive;
    if (!transfer && !IsCollectiveSpan(store, row)) continue;
    const std::string family(store.name(row).substr(0, store.name(row).find(':')));
    RankSpans& spans = transfer ? transfers[family + std::to_string(replica)][*process.rank]
                                : groups[GroupKey(store, row, replica)][*process.rank];
    spans.rank = *process.rank;
    spans.process = store.track_of(row).process;
    spans.spans.push_back(row);
  }
  const auto in_order = [&](std::map<int, RankSpans>& by_rank) {
    std::vector<RankSpans> ranks;
    for (auto& [rank, spans] : by_rank) {
      std::sort(spans.spans.begin(), spans.spans.end(), [&](uint32_t a, uint32_t b) {
        return std::pair(store.spans.begin[a], a) < std::pair(store.spans.begin[b], b);
      });
      ranks.push_back(std::move(spans));
    }
    return ranks;
  };
  NamedSpans named;
  for (auto& [key, by_rank] : groups) {
    if (by_rank.size() < 2) continue;
    MatchedGroup group;
    group.key = key;
    group.ranks = in_order(by_rank);
    const uint32_t first = group.ranks.front().spans.front();
    if (PeerEndOf(store, first) == PeerEnd::kEither && !IsOfLargerGroup(store, first)) {
      if (!EqualCounts(group.ranks)) {
        named.transfers.push_back(std::move(group.ranks));
        continue;
      }
      group.point_to_point = group.ranks.size() == 2;
    }
    LabelMembers(store, group);
    named.groups.push_back(std::move(group));
  }
  for (auto& [family, by_rank] : transfers) {
    // Where the library's own spans are there, the calls that only start them say nothing more.
    if (by_rank.size() < 2 || (family.starts_with("c10d") && transfers.size() > 1)) continue;
    named.transfers.push_back(in_order(by_rank));
  }
  return named;
}

/// The collectives of a group: members by rank, times not filled in yet.
std::vector<Collective> Join(const trace::Store& store, const MatchedGroup& group) {
  std::map<int64_t, Collective> by_label;
  for (const RankSpans& rank : group.ranks) {
    for (size_t i = 0; i < rank.spans.size(); ++i) {
      Collective& collective = by_label[rank.labels[i]];
      CollectiveMember member;
      member.rank = rank.rank;
      member.process = rank.process;
      member.span = trace::SpanRow(rank.spans[i]);
      if (collective.members.empty()) collective.name = store.spans.name[rank.spans[i]];
      collective.members.push_back(member);
    }
  }
  std::vector<Collective> out;
  for (auto& [label, collective] : by_label) {
    if (collective.members.size() < 2) continue;
    collective.group = group.key;
    collective.sequence = label;
    collective.matched_by_sequence = group.by_sequence;
    collective.point_to_point = group.point_to_point;
    collective.inferred = group.inferred;
    collective.confidence = group.by_sequence ? 1.0 : group.inferred ? 0.7 : group.certain ? 0.8 : 0.5;
    out.push_back(std::move(collective));
  }
  return out;
}

/// Processes in no collective share the clock of their file's recorder, or of their host, where all ranks of it agree.
void LendClocks(const trace::Store& store, std::vector<trace::ProcessClock>& clocks) {
  constexpr uint32_t kSeveral = UINT32_MAX;
  std::map<std::string, uint32_t> lenders;  // file or host -> a process with a clock
  const auto keys = [&](const trace::Process& process) {
    std::vector<std::string> out;
    if (process.file.valid()) out.push_back("file " + std::to_string(process.file.value()));
    if (!process.host.empty()) out.push_back("host " + process.host);
    return out;
  };
  for (uint32_t p = 0; p < clocks.size(); ++p) {
    if (!clocks[p].linked) continue;
    for (const std::string& key : keys(store.processes[p])) {
      const auto [it, fresh] = lenders.try_emplace(key, p);
      if (fresh || it->second == kSeveral) continue;
      const trace::ProcessClock& other = clocks[it->second];
      const bool same = other.domain == clocks[p].domain || (!other.corrected && !clocks[p].corrected);
      if (!same) it->second = kSeveral;
    }
  }
  for (uint32_t p = 0; p < clocks.size(); ++p) {
    if (clocks[p].linked || store.processes[p].rank.has_value()) continue;
    for (const std::string& key : keys(store.processes[p])) {
      const auto found = lenders.find(key);
      if (found == lenders.end() || found->second == kSeveral) continue;
      clocks[p] = clocks[found->second];
      break;
    }
  }
}

/// Those that took not much longer than they can: in a slow one members leave apart (the receiver's end of a slow link
/// leaves last), as in network time protocols the quickest exchange tells most about clocks.
std::vector<Collective> QuickOnes(const trace::Store& store, std::vector<Collective> all) {
  constexpr size_t kFewestQuick = 8;
  constexpr Nanos kQuick = 4;  // times the lower quarter
  const auto stay = [&](const Collective& collective) {
    Nanos shortest = INT64_MAX;
    for (const auto& m : collective.members) shortest = std::min(shortest, store.spans.duration[m.span.value()]);
    return shortest;
  };
  std::vector<Nanos> stays;
  for (const Collective& collective : all) stays.push_back(stay(collective));
  if (stays.empty()) return all;
  std::vector<Nanos> sorted = stays;
  const auto quarter = sorted.begin() + static_cast<int64_t>(sorted.size() / 4);
  std::nth_element(sorted.begin(), quarter, sorted.end());
  const Nanos limit = std::min(*quarter, INT64_MAX / kQuick) * kQuick;
  if (std::count_if(stays.begin(), stays.end(), [&](Nanos s) { return s <= limit; }) <
      static_cast<int64_t>(kFewestQuick))
    return all;
  std::vector<Collective> quick;
  for (size_t i = 0; i < all.size(); ++i) {
    if (stays[i] <= limit) quick.push_back(std::move(all[i]));
  }
  return quick;
}

/// Puts the store on one clock by what the groups prove, and says how well that went.
void StitchClocks(trace::Store& store, const std::vector<MatchedGroup>& groups, trace::Trees& trees) {
  const bool named = std::any_of(groups.begin(), groups.end(),
                                 [](const auto& g) { return g.certain && !g.inferred && !g.point_to_point; });
  std::vector<CollectiveEnds> ends;
  for (uint32_t g = 0; g < groups.size(); ++g) {
    // A library's own collectives are the better proof; kernels that leave together are used where there are none.
    if (!groups[g].certain || groups[g].inferred == named || groups[g].point_to_point) continue;
    for (const Collective& collective : QuickOnes(store, Join(store, groups[g]))) {
      CollectiveEnds& one = ends.emplace_back();
      one.kind = g;
      for (const auto& member : collective.members) {
        one.members.push_back({member.process.value(), store.spans.end(member.span.value())});
      }
      std::sort(one.members.begin(), one.members.end(),
                [](const auto& a, const auto& b) { return a.process < b.process; });
    }
  }
  std::vector<std::string> hosts;
  std::set<int> ranks;
  for (const auto& process : store.processes) {
    hosts.push_back(process.host);
    if (process.rank.has_value()) ranks.insert(*process.rank);
  }
  ClockFit fit = FitClocks(store.processes.size(), hosts, ends);
  LendClocks(store, fit.clocks);
  trees.clocks = std::move(fit.clocks);
  for (const auto& [a, b] : fit.host_disagrees) {
    store.diagnostics.Report(
        kHostDisagrees, store.processes[b].file,
        "rank " + std::to_string(store.processes[b].rank.value_or(-1)) + " on " + store.processes[b].host);
  }
  if (ranks.size() < 2) {
    trees.clock_method = "single clock";
    return;
  }
  for (uint32_t p = 0; p < store.processes.size(); ++p) {
    const auto& process = store.processes[p];
    if (!process.rank.has_value() || trees.clocks[p].linked) continue;
    store.diagnostics.Report(kUncalibrated, process.file, "rank " + std::to_string(*process.rank));
  }
  if (fit.linked < 2) {
    trees.clock_method = "uncalibrated";
    return;
  }
  trees.clock_method = fit.corrected > 0 ? "collectives" : "shared clock, checked by collectives";
  trees.clock_error = fit.error;
  ShiftToReference(store, trees.clocks);
}

/// True when every member's clock is tied to the others'.
bool OnOneClock(const trace::Trees& trees, const Collective& collective) {
  return std::all_of(collective.members.begin(), collective.members.end(), [&](const auto& member) {
    return trace::PairError(trees.clocks, collective.members.front().process, member.process) != trace::kUnknownClock;
  });
}

/// Wait and transfer from the durations alone: all leave together, so that the shortest stay is the last arrival's. Who
/// that was is not said: one late leaver would be taken for an early arrival.
void SplitByDuration(Collective& collective) {
  Nanos shortest = INT64_MAX;
  for (const auto& m : collective.members) shortest = std::min(shortest, m.end - m.arrival);
  collective.transfer = shortest;
  for (auto& m : collective.members) m.wait = m.end - m.arrival - shortest;
}

void Split(const trace::Trees& trees, Collective& collective) {
  if (!OnOneClock(trees, collective)) return SplitByDuration(collective);
  const CollectiveMember* last = &collective.members.front();
  const CollectiveMember* before = nullptr;
  std::vector<Nanos> ends;
  for (const auto& m : collective.members) {
    ends.push_back(m.end);
    if (&m == last) continue;
    if (m.arrival > last->arrival) {
      before = last;
      last = &m;
    } else if (before == nullptr || m.arrival > before->arrival) {
      before = &m;
    }
  }
  std::vector<Nanos> others;
  for (const auto& m : collective.members) {
    if (&m != last) others.push_back(m.arrival);
  }
  collective.late_by = last->arrival - Median(others);
  const bool ordered = last->arrival - before->arrival > trace::PairError(trees.clocks, last->process, before->process);
  if (ordered) collective.late_rank = last->rank;
  for (auto& m : collective.members) {
    m.wait = std::clamp<Nanos>(last->arrival - m.arrival, 0, std::max<Nanos>(0, m.end - m.arrival));
  }
  collective.transfer = std::max<Nanos>(0, Median(ends) - last->arrival);
}

/// Joins the groups' members and splits their time.
void AddCollectives(const trace::Store& store, const std::vector<MatchedGroup>& groups, trace::Trees& trees) {
  for (const MatchedGroup& group : groups) {
    for (Collective& collective : Join(store, group)) {
      for (auto& member : collective.members) {
        member.arrival = store.spans.begin[member.span.value()];
        member.end = store.spans.end(member.span.value());
      }
      Split(trees, collective);
      trees.collectives.push_back(std::move(collective));
    }
  }
}

/// How far members typically leave apart from the middle one of their collective.
Nanos Spread(const trace::Trees& trees) {
  std::vector<Nanos> away;
  for (const Collective& collective : trees.collectives) {
    std::vector<Nanos> ends;
    for (const auto& m : collective.members) ends.push_back(m.end);
    std::sort(ends.begin(), ends.end());
    const size_t middle = (ends.size() - 1) / 2;
    for (size_t i = 0; i < ends.size(); ++i) {
      if (i != middle) away.push_back(std::abs(ends[i] - ends[middle]));
    }
  }
  return Median(std::move(away));
}

}  // namespace

std::vector<int> Replicas(const trace::Store& store) {
  std::map<int, int> seen;
  std::vector<int> replicas;
  for (const auto& process : store.processes) replicas.push_back(process.rank.has_value() ? seen[*process.rank]++ : 0);
  return replicas;
}

bool IsCollectiveSpan(const trace::Store& store, uint32_t span) {
  const std::string_view name = store.name(span);
  switch (store.kind(span)) {
    case SpanKind::kKernel: return IsNcclKernelName(name);
    case SpanKind::kAnnotation: return name.starts_with("gloo:");
    case SpanKind::kOp: {
      // c10d operators only enqueue; what blocks is named by its library. Of nested ones the outermost counts.
      if (name.starts_with("c10d::") || name == "record_param_comms" || !IsCommunicationName(name)) return false;
      const trace::SpanRow parent = store.spans.parent.empty() ? trace::SpanRow() : store.spans.parent[span];
      return !parent.valid() || store.kind(parent.value()) != SpanKind::kOp ||
             !IsCommunicationName(store.name(parent.value()));
    }
    default: return false;
  }
}

bool IsCommunicationName(std::string_view name) {
  if (name.starts_with("c10d::") || name.starts_with("gloo:") || name.starts_with("nccl")) return true;
  for (const std::string_view word :
       {"allreduce", "all_reduce", "allgather", "all_gather", "reduce_scatter", "all_to_all", "alltoall"}) {
    if (name.find(word) != std::string_view::npos) return true;
  }
  return false;
}

void MatchCollectives(trace::Store& store, trace::Trees& trees) {
  NamedSpans named = FindNamed(store);
  std::vector<MatchedGroup>& groups = named.groups;
  for (MatchedGroup& group : FindPeerKernels(store, groups)) groups.push_back(std::move(group));
  StitchClocks(store, groups, trees);
  AddCollectives(store, groups, trees);
  trees.clock_spread = Spread(trees);
  for (const auto& ranks : named.transfers) AddCollectives(store, FindPairs(store, trees, ranks), trees);
  std::sort(trees.collectives.begin(), trees.collectives.end(), [](const Collective& a, const Collective& b) {
    return std::tuple(a.members.front().arrival, a.group, a.sequence) <
           std::tuple(b.members.front().arrival, b.group, b.sequence);
  });
}

}  // namespace teller::tree
