#include "tree/collectives.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>

namespace teller::tree {

namespace {

using trace::Collective;
using trace::CollectiveMember;
using trace::Nanos;
using trace::SpanKind;

constexpr int kLargestShift = 64;        // profilers of one job start within a few steps of each other
constexpr size_t kShiftSamples = 4000;   // enough to find the best shift, bounded on long traces

/// One rank's spans of one collective name, in time order.
struct RankSpans {
  int rank = -1;
  trace::ProcessRow process;
  std::vector<uint32_t> spans;
};

Nanos Median(std::vector<Nanos> values) {
  if (values.empty()) return 0;
  const size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + middle, values.end());
  return values[middle];
}

bool IsNcclKernelName(std::string_view name) { return name.starts_with("ncclDevKernel") || name.starts_with("ncclKernel"); }

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

/// The how-manieth process of its rank each process is: replicas of a service have equal ranks and are no peers.
std::vector<int> Replicas(const trace::Store& store) {
  std::map<int, int> seen;
  std::vector<int> replicas;
  for (const auto& process : store.processes) replicas.push_back(process.rank.has_value() ? seen[*process.rank]++ : 0);
  return replicas;
}

/// Spread of the end differences when rank `other` is shifted by `shift` against `base`.
Nanos Disagreement(const trace::Store& store, const RankSpans& base, const RankSpans& other, int shift, Nanos& offset) {
  std::vector<Nanos> differences;
  const size_t stride = base.spans.size() / kShiftSamples + 1;  // spread over the whole trace
  for (size_t i = 0; i < base.spans.size(); i += stride) {
    const auto j = static_cast<int64_t>(i) + shift;
    if (j < 0 || j >= static_cast<int64_t>(other.spans.size())) continue;
    differences.push_back(store.spans.end(other.spans[static_cast<size_t>(j)]) - store.spans.end(base.spans[i]));
  }
  if (differences.size() * 2 < std::min(base.spans.size(), other.spans.size()) / stride) return INT64_MAX;
  offset = Median(differences);
  for (Nanos& d : differences) d = std::abs(d - offset);
  return Median(std::move(differences));
}

struct Shift {
  int by = 0;
  Nanos offset = 0;
  Nanos spread = 0;
};

Shift BestShift(const trace::Store& store, const RankSpans& base, const RankSpans& other) {
  Shift best{0, 0, INT64_MAX};
  for (int step = 0; step <= 2 * kLargestShift; ++step) {
    const int by = (step % 2 == 0 ? 1 : -1) * ((step + 1) / 2);  // 0, -1, 1, -2, 2: the smallest shift wins ties
    Nanos offset = 0;
    const Nanos spread = Disagreement(store, base, other, by, offset);
    // A larger shift must be clearly better: neighbours of a short loop agree almost as well.
    if (spread != INT64_MAX && (best.spread == INT64_MAX || spread < best.spread / 2)) best = {by, offset, spread};
  }
  return best;
}

void Split(Collective& collective) {
  Nanos last = trace::kNoTime;
  std::vector<Nanos> arrivals;
  std::vector<Nanos> ends;
  for (const auto& m : collective.members) {
    arrivals.push_back(m.arrival);
    ends.push_back(m.end);
    if (m.arrival > last) {
      last = m.arrival;
      collective.late_rank = m.rank;
    }
  }
  std::vector<Nanos> others = arrivals;
  others.erase(std::max_element(others.begin(), others.end()));
  collective.late_by = others.empty() ? 0 : last - Median(others);
  for (auto& m : collective.members) m.wait = std::clamp<Nanos>(last - m.arrival, 0, std::max<Nanos>(0, m.end - m.arrival));
  collective.transfer = std::max<Nanos>(0, Median(ends) - last);
}

/// Ranks of one group, and how far each is shifted against the first.
struct Matched {
  std::string key;
  std::vector<RankSpans> ranks;
  std::vector<Shift> shifts;
};

/// Clock offsets of ranks against the first one, from the ends of all matched collectives.
struct Clocks {
  std::map<int, std::vector<Nanos>> offsets;
  std::vector<Nanos> spreads;
};

void MatchByOrdinal(const trace::Store& store, const Matched& group, const std::map<int, Nanos>& clock, trace::Trees& trees) {
  const std::string& key = group.key;
  const std::vector<RankSpans>& ranks = group.ranks;
  const RankSpans& base = ranks.front();
  for (size_t i = 0; i < base.spans.size(); ++i) {
    Collective collective;
    collective.group = key;
    collective.sequence = static_cast<int64_t>(i);
    collective.name = store.spans.name[base.spans[i]];
    collective.confidence = 0.8;
    for (size_t r = 0; r < ranks.size(); ++r) {
      const auto j = static_cast<int64_t>(i) + group.shifts[r].by;
      if (j < 0 || j >= static_cast<int64_t>(ranks[r].spans.size())) continue;
      const uint32_t span = ranks[r].spans[static_cast<size_t>(j)];
      const auto offset = clock.find(ranks[r].rank);
      const Nanos shift_ns = offset == clock.end() ? 0 : offset->second;
      CollectiveMember member;
      member.rank = ranks[r].rank;
      member.process = ranks[r].process;
      member.span = trace::SpanRow(span);
      member.arrival = store.spans.begin[span] - shift_ns;
      member.end = store.spans.end(span) - shift_ns;
      collective.members.push_back(member);
    }
    if (collective.members.size() < 2) continue;
    std::sort(collective.members.begin(), collective.members.end(),
              [](const auto& a, const auto& b) { return a.rank < b.rank; });
    Split(collective);
    trees.collectives.push_back(std::move(collective));
  }
}

}  // namespace

bool IsCollectiveSpan(const trace::Store& store, uint32_t span) {
  const std::string_view name = store.name(span);
  switch (store.kind(span)) {
    case SpanKind::kKernel: return IsNcclKernelName(name);
    case SpanKind::kAnnotation: return name.starts_with("gloo:");
    case SpanKind::kOp: {
      // c10d operators only enqueue; what blocks is named by its library. Of nested ones the outermost counts.
      if (name.starts_with("c10d::") || name == "record_param_comms" || !IsCommunicationName(name)) return false;
      const trace::SpanRow parent = store.spans.parent.empty() ? trace::SpanRow() : store.spans.parent[span];
      return !parent.valid() || store.kind(parent.value()) != SpanKind::kOp || !IsCommunicationName(store.name(parent.value()));
    }
    default: return false;
  }
}

bool IsCommunicationName(std::string_view name) {
  if (name.starts_with("c10d::") || name.starts_with("gloo:") || name.starts_with("nccl")) return true;
  for (const std::string_view word : {"allreduce", "all_reduce", "allgather", "all_gather", "reduce_scatter", "all_to_all", "alltoall"}) {
    if (name.find(word) != std::string_view::npos) return true;
  }
  return false;
}

void MatchCollectives(const trace::Store& store, trace::Trees& trees) {
  std::map<std::string, std::map<int, RankSpans>> groups;
  std::set<int> ranks_seen;
  const std::vector<int> replicas = Replicas(store);
  for (uint32_t row = 0; row < store.spans.size(); ++row) {
    const SpanKind kind = store.kind(row);
    if (kind != SpanKind::kKernel && kind != SpanKind::kAnnotation && kind != SpanKind::kOp) continue;
    const auto& process = store.process_of(row);
    if (!process.rank.has_value() || !IsCollectiveSpan(store, row)) continue;
    RankSpans& spans = groups[GroupKey(store, row, replicas[store.track_of(row).process.value()])][*process.rank];
    spans.rank = *process.rank;
    spans.process = store.track_of(row).process;
    spans.spans.push_back(row);
    ranks_seen.insert(*process.rank);
  }
  Clocks clocks;
  std::vector<Matched> matched;
  for (auto& [key, by_rank] : groups) {
    if (by_rank.size() < 2) continue;
    Matched group{key, {}, {{}}};
    std::vector<RankSpans>& ranks = group.ranks;
    for (auto& [rank, spans] : by_rank) {
      std::sort(spans.spans.begin(), spans.spans.end(), [&](uint32_t a, uint32_t b) {
        return std::pair(store.spans.begin[a], a) < std::pair(store.spans.begin[b], b);
      });
      ranks.push_back(std::move(spans));
    }
    for (size_t r = 1; r < ranks.size(); ++r) {
      const Shift shift = BestShift(store, ranks.front(), ranks[r]);
      group.shifts.push_back(shift);
      if (shift.spread == INT64_MAX) continue;
      clocks.offsets[ranks[r].rank].push_back(shift.offset);
      clocks.spreads.push_back(shift.spread);
    }
    matched.push_back(std::move(group));
  }
  std::map<int, Nanos> clock;
  for (auto& [rank, offsets] : clocks.offsets) {
    // An offset inside its own spread proves nothing; one host's clock is then taken as it is.
    const Nanos offset = Median(offsets);
    if (std::abs(offset) > 3 * Median(clocks.spreads)) clock[rank] = offset;
  }
  if (ranks_seen.size() < 2 || clocks.spreads.empty()) {
    trees.clock_method = ranks_seen.size() < 2 ? "single clock" : "none";
  } else {
    trees.clock_method = clock.empty() ? "shared clock, checked by collectives" : "collectives";
    trees.clock_error = Median(clocks.spreads);
  }
  for (const Matched& group : matched) MatchByOrdinal(store, group, clock, trees);
  for (Collective& collective : trees.collectives) {
    if (collective.late_by < trees.clock_error) collective.late_rank = -1;  // closer than the clocks can tell
  }
  std::sort(trees.collectives.begin(), trees.collectives.end(), [](const Collective& a, const Collective& b) {
    return std::tuple(a.members.front().arrival, a.group, a.sequence) < std::tuple(b.members.front().arrival, b.group, b.sequence);
  });
}

}  // namespace teller::tree
