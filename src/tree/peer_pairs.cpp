#include "tree/peer_pairs.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

namespace teller::tree {

namespace {

using trace::Nanos;

constexpr Nanos kLeastTolerance = 20 * base::kMicro;  // a transfer's last bytes take some time to be noticed
constexpr size_t kFewestPairs = 4;
constexpr double kOverChance = 4.0;
constexpr size_t kMostRanks = 256;  // peers are searched for among these

/// A send and a receive that may be one transfer.
struct Pair {
  Nanos apart = 0;  // of their ends
  uint32_t a = 0;
  uint32_t b = 0;
};

bool Opposite(PeerEnd a, PeerEnd b) {
  return a == PeerEnd::kEither || b == PeerEnd::kEither || a != b;
}

MatchedGroup MakeGroup(const trace::Store& store, const RankSpans& one, const RankSpans& other,
                       const std::vector<Pair>& pairs) {
  MatchedGroup group;
  group.point_to_point = true;
  group.key = std::string(store.name(pairs.front().a)) + " between ranks " + std::to_string(one.rank) + " and " +
              std::to_string(other.rank);
  group.ranks = {{one.rank, one.process, {}, {}}, {other.rank, other.process, {}, {}}};
  for (size_t i = 0; i < pairs.size(); ++i) {
    group.ranks[0].spans.push_back(pairs[i].a);
    group.ranks[1].spans.push_back(pairs[i].b);
    for (auto& rank : group.ranks) rank.labels.push_back(static_cast<int64_t>(i));
  }
  return group;
}

/// Transfers of one direction keep their order.
void AddDirected(const trace::Store& store, RankSpans from, RankSpans to, std::vector<MatchedGroup>& out) {
  if (from.spans.empty() || to.spans.empty()) return;
  MatchedGroup group;
  group.key = std::string(store.name(from.spans.front())) + " from rank " + std::to_string(from.rank) + " to rank " +
              std::to_string(to.rank);
  group.ranks = {std::move(from), std::move(to)};
  group.point_to_point = true;
  LabelMembers(store, group);
  out.push_back(std::move(group));
}

RankSpans OfEnd(const trace::Store& store, const RankSpans& rank, PeerEnd end) {
  RankSpans out{rank.rank, rank.process, {}, {}};
  for (const uint32_t span : rank.spans) {
    if (PeerEndOf(store, span) == end) out.spans.push_back(span);
  }
  return out;
}

int PeerOf(const trace::Store& store, uint32_t span) {
  const auto* args = store.comm_args.Find(span);
  return args == nullptr ? -1 : args->peer;
}

/// True when it is recorded of every one whether it sends, and to whom, or receives, and from whom.
bool NamePeers(const trace::Store& store, const std::vector<RankSpans>& ranks) {
  return std::all_of(ranks.begin(), ranks.end(), [&](const RankSpans& rank) {
    return std::all_of(rank.spans.begin(), rank.spans.end(), [&](uint32_t span) {
      const PeerEnd end = PeerEndOf(store, span);
      return PeerOf(store, span) >= 0 && (end == PeerEnd::kSend || end == PeerEnd::kReceive);
    });
  });
}

void PairByPeers(const trace::Store& store, const std::vector<RankSpans>& ranks, std::vector<MatchedGroup>& out) {
  std::map<std::pair<int, int>, std::pair<RankSpans, RankSpans>> ways;  // (from, to) -> sends and receives
  for (const RankSpans& rank : ranks) {
    for (const uint32_t span : rank.spans) {
      const bool sends = PeerEndOf(store, span) == PeerEnd::kSend;
      const int peer = PeerOf(store, span);
      auto& way = ways[sends ? std::pair(rank.rank, peer) : std::pair(peer, rank.rank)];
      RankSpans& end = sends ? way.first : way.second;
      end.rank = rank.rank;
      end.process = rank.process;
      end.spans.push_back(span);
    }
  }
  for (auto& [who, way] : ways) AddDirected(store, std::move(way.first), std::move(way.second), out);
}

/// All sends and receives of two ranks that could be one transfer, closest first.
std::vector<Pair> Possible(const trace::Store& store, const RankSpans& one, const RankSpans& other, Nanos tolerance) {
  std::vector<Pair> pairs;
  std::vector<std::pair<Nanos, uint32_t>> ends;
  for (const uint32_t span : other.spans) ends.emplace_back(store.spans.end(span), span);
  std::sort(ends.begin(), ends.end());
  for (const uint32_t a : one.spans) {
    const Nanos end = store.spans.end(a);
    const PeerEnd mine = PeerEndOf(store, a);
    auto it = std::lower_bound(ends.begin(), ends.end(), std::pair(end - tolerance, uint32_t{0}));
    for (size_t seen = 0; it != ends.end() && it->first <= end + tolerance && seen < 8; ++it, ++seen) {
      if (Opposite(mine, PeerEndOf(store, it->second))) pairs.push_back({std::abs(it->first - end), a, it->second});
    }
  }
  return pairs;
}

/// Pairs that ends of this density would make by chance.
double ByChance(const trace::Store& store, const RankSpans& one, const RankSpans& other, Nanos tolerance) {
  Nanos first = INT64_MAX;
  Nanos last = INT64_MIN;
  for (const RankSpans* rank : {&one, &other}) {
    for (const uint32_t span : rank->spans) {
      first = std::min(first, store.spans.end(span));
      last = std::max(last, store.spans.end(span));
    }
  }
  const double window = std::max(1.0, static_cast<double>(last) - static_cast<double>(first));
  return static_cast<double>(one.spans.size()) * static_cast<double>(other.spans.size()) * 2 *
         static_cast<double>(tolerance) / window;
}

void PairByEnds(const trace::Store& store, const trace::Trees& trees, const std::vector<RankSpans>& ranks,
                std::vector<MatchedGroup>& out) {
  struct Way {
    Pair pair;
    size_t i;
    size_t j;
  };
  std::vector<Way> ways;
  for (size_t i = 0; i < ranks.size(); ++i) {
    for (size_t j = i + 1; j < ranks.size(); ++j) {
      const Nanos error = trace::PairError(trees.clocks, ranks[i].process, ranks[j].process);
      if (error == trace::kUnknownClock || error > base::kSecond) continue;
      const Nanos tolerance = std::max({2 * error, 2 * trees.clock_spread, kLeastTolerance});
      const std::vector<Pair> pairs = Possible(store, ranks[i], ranks[j], tolerance);
      if (pairs.size() < kFewestPairs ||
          static_cast<double>(pairs.size()) < kOverChance * ByChance(store, ranks[i], ranks[j], tolerance))
        continue;
      for (const Pair& pair : pairs) ways.push_back({pair, i, j});
    }
  }
  std::sort(ways.begin(), ways.end(), [](const Way& x, const Way& y) {
    return std::tuple(x.pair.apart, x.pair.a, x.pair.b) < std::tuple(y.pair.apart, y.pair.a, y.pair.b);
  });
  std::set<uint32_t> taken;
  std::map<std::pair<size_t, size_t>, std::vector<Pair>> kept;
  for (const Way& way : ways) {
    if (taken.count(way.pair.a) > 0 || taken.count(way.pair.b) > 0) continue;
    taken.insert(way.pair.a);
    taken.insert(way.pair.b);
    kept[{way.i, way.j}].push_back(way.pair);
  }
  for (auto& [who, pairs] : kept) {
    if (pairs.size() < kFewestPairs) continue;
    std::sort(pairs.begin(), pairs.end(),
              [&](const Pair& x, const Pair& y) { return store.spans.begin[x.a] < store.spans.begin[y.a]; });
    out.push_back(MakeGroup(store, ranks[who.first], ranks[who.second], pairs));
  }
}

}  // namespace

PeerEnd PeerEndOf(std::string_view name) {
  if (name.starts_with("nccl") && name.find("SendRecv") != std::string_view::npos) return PeerEnd::kEither;
  for (const std::string_view prefix : {"gloo:", "c10d::"}) {
    if (!name.starts_with(prefix)) continue;
    const std::string_view what = name.substr(prefix.size());
    if (what == "send" || what == "send_") return PeerEnd::kSend;
    if (what.starts_with("recv")) return PeerEnd::kReceive;
  }
  return PeerEnd::kNone;
}

PeerEnd PeerEndOf(const trace::Store& store, uint32_t span) {
  const PeerEnd end = PeerEndOf(store.name(span));
  const auto* args = store.comm_args.Find(span);
  if (end != PeerEnd::kEither || args == nullptr || !args->collective.valid()) return end;
  const std::string_view what = store.text(args->collective);
  return what == "send" ? PeerEnd::kSend : what == "recv" ? PeerEnd::kReceive : end;
}

std::vector<MatchedGroup> FindPairs(const trace::Store& store, const trace::Trees& trees,
                                    const std::vector<RankSpans>& ranks) {
  std::vector<MatchedGroup> out;
  if (ranks.size() < 2) return out;
  if (NamePeers(store, ranks)) {
    PairByPeers(store, ranks, out);
    return out;
  }
  if (ranks.size() > kMostRanks) return out;
  const bool directed = PeerEndOf(store, ranks[0].spans.front()) != PeerEnd::kEither;
  if (ranks.size() == 2 && directed) {
    for (const auto& [from, to] : {std::pair(0, 1), std::pair(1, 0)}) {
      AddDirected(store, OfEnd(store, ranks[static_cast<size_t>(from)], PeerEnd::kSend),
                  OfEnd(store, ranks[static_cast<size_t>(to)], PeerEnd::kReceive), out);
    }
  } else {
    PairByEnds(store, trees, ranks, out);
  }
  return out;
}

}  // namespace teller::tree
