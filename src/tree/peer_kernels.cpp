#include "tree/peer_kernels.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <unordered_map>

#include "tree/collectives.hpp"
#include "tree/line_fit.hpp"

namespace teller::tree {

namespace {

using trace::Nanos;
using trace::SpanKind;

constexpr size_t kMostHinted = 64;     // names; more are not looked at
constexpr size_t kMostUnhinted = 24;   // by total time
constexpr double kVaries = 1.5;        // ninth tenth of the length over the first: waiting makes lengths vary
constexpr size_t kMostJudged = 1024;   // pairs of members
constexpr size_t kGiveUp = 8;          // ranks without any two that leave together
constexpr size_t kMostSets = 8;        // that a rank is tried with
constexpr size_t kMostSearched = 2;    // of these, where its numbers may be shifted
constexpr double kLeastApart = 2'000;  // ns; arrivals must differ by more than time stamps do
constexpr size_t kMostRanks = 256;     // sets of ranks are searched for among these

/// How clear it must be that members leave together.
struct Demand {
  size_t fewest;      // members on both ranks
  double most_ratio;  // of how ends disagree to how arrivals do, where arrivals disagree most
};

Demand DemandOf(bool hint) {
  return hint ? Demand{16, 0.3} : Demand{40, 0.15};
}

double Quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  const auto at = values.begin() + static_cast<int64_t>(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

double Minus(Nanos a, Nanos b) {
  Nanos out = 0;
  return __builtin_sub_overflow(a, b, &out) ? 0 : static_cast<double>(out);
}

struct PairOfSpans {
  uint32_t a = 0;
  uint32_t b = 0;
};

std::vector<PairOfSpans> CommonLabels(const RankSpans& one, const RankSpans& other) {
  std::vector<PairOfSpans> pairs;
  size_t j = 0;
  for (size_t i = 0; i < one.labels.size(); ++i) {  // labels rise with time
    while (j < other.labels.size() && other.labels[j] < one.labels[i]) ++j;
    if (j < other.labels.size() && other.labels[j] == one.labels[i]) pairs.push_back({one.spans[i], other.spans[j]});
  }
  return pairs;
}

bool PairLeavesTogether(const trace::Store& store, const RankSpans& one, const RankSpans& other, bool hint) {
  const Demand demand = DemandOf(hint);
  std::vector<PairOfSpans> pairs = CommonLabels(one, other);
  if (pairs.size() < demand.fewest) return false;
  const size_t stride = (pairs.size() - 1) / kMostJudged + 1;
  std::vector<ClockPoint> points;
  std::vector<double> begins;
  const Nanos start = store.spans.end(pairs[0].a);
  const auto ahead = static_cast<Nanos>(Minus(store.spans.end(pairs[0].b), start));
  for (size_t i = 0; i < pairs.size(); i += stride) {
    const auto [a, b] = pairs[i];
    points.push_back({Minus(store.spans.end(a), start),
                      Minus(store.spans.end(b), store.spans.end(a)) - static_cast<double>(ahead), 0});
    begins.push_back(Minus(store.spans.begin[b], store.spans.begin[a]) - static_cast<double>(ahead));
  }
  const LineFit line = FitLine(points, 0.01);
  if (!line.ok) return false;
  // Both without the clocks' drift and without what is always the same.
  std::vector<double> arrivals;
  std::vector<double> ends;
  for (size_t i = 0; i < points.size(); ++i) {
    arrivals.push_back(begins[i] - line.slope * points[i].x);
    ends.push_back(points[i].y - line.slope * points[i].x);
  }
  const double usual_arrival = Quantile(arrivals, 0.5);
  const double usual_end = Quantile(ends, 0.5);
  for (double& a : arrivals) a = std::abs(a - usual_arrival);
  const double apart = Quantile(arrivals, 0.75);
  if (apart < kLeastApart) return false;  // always in step: nobody waits, and nothing can be told
  std::vector<double> far;
  std::vector<double> left;
  for (size_t i = 0; i < arrivals.size(); ++i) {
    if (arrivals[i] < apart) continue;
    far.push_back(arrivals[i]);
    left.push_back(std::abs(ends[i] - usual_end));
  }
  return Quantile(left, 0.5) <= demand.most_ratio * Quantile(far, 0.5) &&
         Quantile(left, 0.8) <= 2 * demand.most_ratio * Quantile(far, 0.8);
}

/// Kernels of one name on several ranks.
struct Candidate {
  MatchedGroup group;
  bool hint = false;
  Nanos total = 0;
};

bool LengthVaries(const trace::Store& store, const RankSpans& rank) {
  std::vector<double> lengths;
  const size_t stride = rank.spans.size() / kMostJudged + 1;
  for (size_t i = 0; i < rank.spans.size(); i += stride)
    lengths.push_back(static_cast<double>(store.spans.duration[rank.spans[i]]));
  return Quantile(lengths, 0.9) >= kVaries * Quantile(lengths, 0.1);
}

std::vector<Candidate> FindCandidates(const trace::Store& store) {
  std::map<std::pair<uint32_t, int>, std::map<int, RankSpans>> by_name;  // (name, replica) -> rank
  std::unordered_map<uint32_t, bool> library;
  const std::vector<int> replicas = Replicas(store);
  for (uint32_t row = 0; row < store.spans.size(); ++row) {
    if (store.kind(row) != SpanKind::kKernel) continue;
    const trace::ProcessRow process = store.track_of(row).process;
    const auto& rank = store.processes[process.value()].rank;
    if (!rank.has_value()) continue;
    const uint32_t name = store.spans.name[row].value();
    const auto [known, fresh] = library.try_emplace(name, false);
    if (fresh) known->second = IsCollectiveSpan(store, row);
    if (known->second) continue;
    RankSpans& spans = by_name[{name, replicas[process.value()]}][*rank];
    spans.rank = *rank;
    spans.process = process;
    spans.spans.push_back(row);
  }
  std::vector<Candidate> out;
  for (auto& [key, ranks] : by_name) {
    if (ranks.size() < 2 || ranks.size() > kMostRanks) continue;
    Candidate candidate;
    candidate.group.key = std::string(store.text(trace::StringId(key.first)));
    if (key.second > 0) candidate.group.key += " of replica " + std::to_string(key.second);
    candidate.hint = HintsAtCommunication(candidate.group.key);
    bool varies = false;
    for (auto& [rank, spans] : ranks) {
      if (spans.spans.size() < DemandOf(candidate.hint).fewest) continue;
      std::sort(spans.spans.begin(), spans.spans.end(), [&](uint32_t a, uint32_t b) {
        return std::pair(store.spans.begin[a], a) < std::pair(store.spans.begin[b], b);
      });
      varies = varies || LengthVaries(store, spans);
      for (const uint32_t span : spans.spans) candidate.total += std::min(store.spans.duration[span], base::kSecond);
      candidate.group.ranks.push_back(std::move(spans));
    }
    if (candidate.group.ranks.size() >= 2 && (candidate.hint || varies)) out.push_back(std::move(candidate));
  }
  std::stable_sort(out.begin(), out.end(), [](const Candidate& a, const Candidate& b) {
    return std::pair(!a.hint, -a.total) < std::pair(!b.hint, -b.total);
  });
  return out;
}

/// Spans of collectives by track, to see what starts inside one.
class Occupied {
 public:
  explicit Occupied(const trace::Store& store) : store_(store) {}

  void Add(const MatchedGroup& group) {
    for (const RankSpans& rank : group.ranks) {
      for (const uint32_t span : rank.spans) spans_[store_.spans.track[span].value()].push_back(span);
    }
    for (auto& [track, spans] : spans_) std::sort(spans.begin(), spans.end());  // rows of a track are in time order
  }

  /// True when most of these spans start while another collective runs on their stream.
  bool Inside(const RankSpans& rank) const {
    size_t inside = 0;
    for (const uint32_t span : rank.spans) {
      const auto found = spans_.find(store_.spans.track[span].value());
      if (found == spans_.end()) continue;
      auto it = std::lower_bound(found->second.begin(), found->second.end(), span);
      inside += it != found->second.begin() && store_.spans.end(*(it - 1)) > store_.spans.begin[span];
    }
    return 2 * inside > rank.spans.size();
  }

 private:
  const trace::Store& store_;
  std::map<uint32_t, std::vector<uint32_t>> spans_;
};

/// Labels `other` against the first of `set` and tells whether they leave together. The search for a shift is the dear
/// part: `search` says whether to spend it where equal numbers make it likely that there is none.
bool Joins(const trace::Store& store, const MatchedGroup& set, const RankSpans& other, bool hint, bool search,
           MatchedGroup& pair) {
  pair.ranks = {set.ranks.front(), other};
  pair.certain = true;
  if (pair.ranks[0].spans.size() == pair.ranks[1].spans.size()) {
    for (RankSpans& rank : pair.ranks) {
      rank.labels.resize(rank.spans.size());
      std::iota(rank.labels.begin(), rank.labels.end(), 0);
    }
    if (PairLeavesTogether(store, pair.ranks[0], pair.ranks[1], hint)) return true;
  }
  if (!search) return false;
  LabelMembers(store, pair);
  return pair.certain && PairLeavesTogether(store, pair.ranks[0], pair.ranks[1], hint);
}

/// The sets of ranks that leave together: tensor-parallel groups of a larger job do so among themselves only.
std::vector<MatchedGroup> SplitByRanks(const trace::Store& store, const Candidate& candidate) {
  std::vector<MatchedGroup> sets;
  size_t placed = 0;
  for (size_t r = 0; r < candidate.group.ranks.size(); ++r) {
    if (r >= kGiveUp && placed == 0) break;  // compute on all ranks: no need to try every two of them
    const RankSpans& rank = candidate.group.ranks[r];
    MatchedGroup pair;
    auto joined = sets.end();
    for (size_t back = 0; back < std::min(sets.size(), kMostSets) && joined == sets.end(); ++back) {
      const auto set = sets.end() - 1 - static_cast<int64_t>(back);  // neighbours in rank are the likelier peers
      if (Joins(store, *set, rank, candidate.hint, back < kMostSearched, pair)) joined = set;
    }
    if (joined != sets.end()) {
      joined->ranks.front().labels = pair.ranks[0].labels;
      joined->ranks.push_back(std::move(pair.ranks[1]));
      ++placed;
      continue;
    }
    MatchedGroup& set = sets.emplace_back();
    set.ranks.push_back(rank);
    set.inferred = true;
  }
  std::erase_if(sets, [](const MatchedGroup& set) { return set.ranks.size() < 2; });
  for (MatchedGroup& set : sets) {
    set.key = candidate.group.key;
    if (sets.size() > 1) set.key += " of rank " + std::to_string(set.ranks.front().rank) + " and others";
  }
  return sets;
}

std::string Lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace

bool HintsAtCommunication(std::string_view name) {
  constexpr std::array kWords = {
      "allreduce", "all_reduce",  "allgather",    "all_gather",   "reducescatter", "reduce_scatter",
      "alltoall",  "all_to_all",  "all2all",      "cross_device", "oneshot",       "one_shot",
      "twoshot",   "two_shot",    "multimem",     "lamport",      "deep_ep",       "deepep",
      "internode", "intranode",   "low_latency",  "nvshmem",      "mscclpp",       "symm_mem",
      "moe_a2a",   "moealltoall", "quick_reduce", "quickreduce",  "userbuffers",   "nvls",
      "combine",   "dispatch",    "sendrecv",     "send_recv",    "rccl",          "broadcast_peer"};
  const std::string lower = Lower(name);
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](const char* word) { return lower.find(word) != std::string::npos; });
}

bool LeaveTogether(const trace::Store& store, const MatchedGroup& group, bool hint) {
  for (size_t r = 1; r < group.ranks.size(); ++r) {
    if (!PairLeavesTogether(store, group.ranks.front(), group.ranks[r], hint)) return false;
  }
  return group.ranks.size() >= 2;
}

std::vector<MatchedGroup> FindPeerKernels(const trace::Store& store, const std::vector<MatchedGroup>& known) {
  std::vector<MatchedGroup> found;
  Occupied occupied(store);
  for (const MatchedGroup& group : known) occupied.Add(group);
  size_t hinted = 0;
  size_t unhinted = 0;
  for (const Candidate& candidate : FindCandidates(store)) {
    size_t& seen = candidate.hint ? hinted : unhinted;
    if (++seen > (candidate.hint ? kMostHinted : kMostUnhinted)) continue;
    if (occupied.Inside(candidate.group.ranks.front())) continue;
    for (MatchedGroup& group : SplitByRanks(store, candidate)) {
      occupied.Add(group);
      found.push_back(std::move(group));
    }
  }
  return found;
}

}  // namespace teller::tree
