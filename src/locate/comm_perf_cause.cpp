// What NCCL Inspector's measurements prove. On a rank a collective's time begins with its own arrival: the rank that
// comes last has the shortest time, the others' surplus is their wait for it. And the last one's time is the transfer
// alone, by which communicators of one kind, and pairs of ranks, can be compared.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "locate/log_cause.hpp"
#include "locate/log_facts.hpp"
#include "locate/proof.hpp"
#include "tree/comm_perf.hpp"

namespace teller::locate {

namespace {

using trace::CommPerf;
using trace::FaultClass;
using trace::Finding;
using trace::Nanos;
using tree::MeasuredCall;
using tree::MeasuredComm;
using tree::MeasuredOp;

constexpr size_t kLeastCalls = 20;
constexpr double kLateRatio = 2;               // the others take at least twice as long
constexpr Nanos kLateBy = 100 * base::kMicro;  // and this much longer; less is jitter of launches
constexpr double kSameRank = 0.8;              // share of the late calls that one rank must have
constexpr double kLateCalls = 0.2;             // share of all calls that must be late
constexpr double kLostShare = 0.05;            // of the time between the first and the last dump
constexpr int64_t kLeastBytes = 1 << 20;       // below it latency counts, not bandwidth
constexpr size_t kLeastSamples = 10;
constexpr size_t kLeastSiblings = 3;
constexpr double kAlike = 0.15;
constexpr double kSlow = 0.6;
constexpr double kAlarm = 1e-3;
constexpr size_t kVictims = 8;
constexpr size_t kFindings = 64;

/// Times of one kind only: what the CPU measured around a launch says nothing about waiting.
bool OnDevice(const trace::Store& store, const CommPerf& perf) {
  return store.text(perf.timing) != "collective_cpu";
}

std::string Size(int64_t bytes) {
  if (bytes < 0) return "unknown size";
  if (bytes >= 1 << 20) return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
  return fmt::format("{} bytes", bytes);
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

class Causes {
 public:
  explicit Causes(const trace::Store& store) : store_(store), world_(store), comms_(tree::MatchMeasurements(store)) {}

  LogCauses Run() {
    for (const auto& comm : comms_) {
      JudgeLate(comm);
      JudgePairs(comm);
    }
    JudgeSiblings();
    return std::move(out_);
  }

 private:
  const CommPerf& Row(uint32_t row) const { return store_.comm_perf[row]; }
  std::string NameOf(const MeasuredComm& comm) const {
    const std::string_view id = store_.text(comm.comm);
    return "communicator " + (id.empty() ? "without a name" : std::string(id));
  }
  std::string RankText(int32_t rank, const CommPerf& perf) const {
    std::string text = "rank " + std::to_string(rank);
    if (const auto host = store_.text(perf.host); !host.empty()) text += fmt::format(" ({}, pid {})", host, perf.pid);
    return text;
  }

  Finding Start(FaultClass fault, const CommPerf& perf, std::string_view layer) const {
    Finding finding;
    finding.fault = fault;
    finding.view = "horizontal";
    finding.culprit.layer = std::string(layer);
    finding.culprit.op = std::string(store_.text(perf.op));
    finding.false_alarm_probability = kAlarm;
    finding.score = ScoreOf(kAlarm);
    finding.onset = perf.at;
    finding.end = perf.at;
    return finding;
  }

  std::string Cite(Finding& finding, uint32_t row) const {
    const CommPerf& perf = Row(row);
    trace::Evidence evidence;
    evidence.kind = trace::Evidence::Kind::kCollective;
    evidence.file = perf.file;
    evidence.ref = "line:" + std::to_string(perf.line);
    evidence.at = perf.at;
    evidence.text =
        fmt::format("rank {}: {} number {}, {}: {:.0f} us, bus {:.1f} GB/s", perf.rank, store_.text(perf.op),
                    perf.sequence, Size(perf.bytes), static_cast<double>(perf.duration) / 1000, perf.bus_gbs);
    return " " + locate::Cite(finding, std::move(evidence));
  }

  struct Late {
    size_t calls = 0;
    Nanos lost = 0;
    const MeasuredCall* worst = nullptr;
    Nanos worst_by = 0;
    Nanos first = trace::kNoTime;
    Nanos last = trace::kNoTime;
  };

  /// One rank that the others wait for again and again.
  void JudgeLate(const MeasuredComm& comm) {
    std::map<int32_t, Late> late;
    size_t judged = 0;
    size_t late_calls = 0;
    Nanos begin = trace::kNoTime;
    Nanos end = trace::kNoTime;
    for (const auto& op : comm.ops) {
      for (const auto& call : op.calls) {
        // Whoever is not measured may be the one that came last.
        if (comm.nranks < 2 || static_cast<int32_t>(call.rows.size()) != comm.nranks) continue;
        if (!std::all_of(call.rows.begin(), call.rows.end(), [&](uint32_t r) { return OnDevice(store_, Row(r)); }))
          continue;
        ++judged;
        const CommPerf& shortest = Row(call.rows[0]);
        if (shortest.at != trace::kNoTime) {
          begin = begin == trace::kNoTime ? shortest.at : std::min(begin, shortest.at);
          end = end == trace::kNoTime ? shortest.at : std::max(end, shortest.at);
        }
        const Nanos by = Row(call.rows[1]).duration - shortest.duration;
        const bool clear = by >= kLateBy && static_cast<double>(Row(call.rows[1]).duration) >=
                                                kLateRatio * static_cast<double>(shortest.duration);
        if (!clear) continue;
        ++late_calls;
        Late& one = late[shortest.rank];
        ++one.calls;
        one.lost += by;
        if (one.first == trace::kNoTime) one.first = shortest.at;
        one.last = shortest.at;
        if (by > one.worst_by) {
          one.worst_by = by;
          one.worst = &call;
        }
      }
    }
    if (judged < kLeastCalls || late_calls < kLeastSamples) return;
    if (static_cast<double>(late_calls) < kLateCalls * static_cast<double>(judged)) return;
    const auto most = std::max_element(late.begin(), late.end(),
                                       [](const auto& a, const auto& b) { return a.second.calls < b.second.calls; });
    const Late& culprit = most->second;
    if (static_cast<double>(culprit.calls) < kSameRank * static_cast<double>(late_calls)) return;
    if (end > begin && static_cast<double>(culprit.lost) < kLostShare * static_cast<double>(end - begin)) return;
    const uint32_t own = culprit.worst->rows.front();
    const int world = world_.Of(Row(own));
    if (!accused_.insert(world).second || out_.findings.size() >= kFindings) return;
    Finding finding = Start(FaultClass::kStragglerRank, Row(own), "collective");
    finding.alternatives = {{FaultClass::kHostCpuBound, 0.2}, {FaultClass::kGpuClockLimit, 0.15}};
    finding.culprit.rank = world;
    finding.culprit.process = "rank" + std::to_string(world);
    finding.onset = culprit.first;
    finding.end = culprit.last;
    finding.cost = culprit.lost;
    for (const auto& [rank, row] : comm.ranks) {
      const int other = world_.Of(Row(row));
      if (rank != most->first && other != world && finding.victims.size() < kVictims)
        finding.victims.push_back({other, "waits in its collectives"});
    }
    const std::string late_mark = Cite(finding, own);
    const std::string wait_mark = Cite(finding, culprit.worst->rows[1]);
    finding.explanation = fmt::format(
        "In {} of {} collectives of {} the {} came last{}: the others spent {:.0f} us more inside at the worst{}, "
        "{:.1f} "
        "ms in all, waiting for it.",
        culprit.calls, judged, NameOf(comm), RankText(most->first, Row(own)), late_mark,
        static_cast<double>(culprit.worst_by) / 1000, wait_mark, static_cast<double>(culprit.lost) / 1e6);
    out_.findings.push_back(std::move(finding));
  }

  /// Pairs of one communicator that exchange messages of one size: what each reaches at its best is its link's doing.
  void JudgePairs(const MeasuredComm& comm) {
    struct Pair {
      std::vector<double> gbs;
      uint32_t best = 0;
    };
    std::map<std::tuple<int64_t, bool>, std::map<std::pair<int32_t, int32_t>, Pair>> kinds;  // by size, same host
    for (const auto& [rank, rows] : comm.sends) {
      for (const uint32_t row : rows) {
        const CommPerf& perf = Row(row);
        const auto peer = comm.ranks.find(perf.peer);
        if (perf.bytes < kLeastBytes || perf.bus_gbs <= 0 || peer == comm.ranks.end() || perf.peer == rank) continue;
        if (!OnDevice(store_, perf)) continue;
        Pair& pair = kinds[{perf.bytes, Row(peer->second).host == perf.host}][std::minmax(rank, perf.peer)];
        if (pair.gbs.empty() || perf.bus_gbs > Row(pair.best).bus_gbs) pair.best = row;
        pair.gbs.push_back(perf.bus_gbs);
      }
    }
    for (auto& [kind, pairs] : kinds) {
      std::map<std::pair<int32_t, int32_t>, double> reached;
      for (auto& [ends, pair] : pairs) {
        if (pair.gbs.size() < kLeastSamples) continue;
        const auto high = pair.gbs.begin() + static_cast<long>(pair.gbs.size() * 9 / 10);
        std::nth_element(pair.gbs.begin(), high, pair.gbs.end());
        reached[ends] = *high;
      }
      const auto odd = OddOne(reached);
      if (odd == reached.end() || out_.findings.size() >= kFindings) continue;
      const bool local = std::get<1>(kind);
      const Pair& pair = pairs[odd->first];
      Finding finding = Start(local ? FaultClass::kIntraLinkDegraded : FaultClass::kNetLinkFault, Row(pair.best),
                              local ? "hardware" : "network");
      const auto sibling =
          std::find_if(reached.begin(), reached.end(), [&](const auto& p) { return p.first != odd->first; });
      const CommPerf& a = Row(comm.ranks.at(odd->first.first));
      const CommPerf& b = Row(comm.ranks.at(odd->first.second));
      finding.culprit.process = std::string(store_.text(a.host));
      finding.culprit.op = fmt::format("link rank {} - rank {}", a.rank, b.rank);
      const std::string mark = Cite(finding, pair.best);
      const std::string other = Cite(finding, pairs[sibling->first].best);
      finding.explanation = fmt::format(
          "Between {} and {} of {} messages of {} reach {:.1f} GB/s at best{}, between the {} other pairs {:.1f} "
          "GB/s{}: the "
          "link between these two is slow.",
          RankText(a.rank, a), RankText(b.rank, b), NameOf(comm), Size(std::get<0>(kind)), odd->second, mark,
          reached.size() - 1, sibling->second, other);
      out_.findings.push_back(std::move(finding));
      return;  // one finding a communicator: sizes tell of the same link
    }
  }

  /// The one entry far below all others, which are alike; end() when there is none.
  template <class Map>
  static typename Map::const_iterator OddOne(const Map& values) {
    if (values.size() < kLeastSiblings + 1) return values.end();
    const auto low = std::min_element(values.begin(), values.end(),
                                      [](const auto& a, const auto& b) { return a.second < b.second; });
    std::vector<double> others;
    for (auto it = values.begin(); it != values.end(); ++it) {
      if (it != low) others.push_back(it->second);
    }
    const double normal = Median(others);
    for (const double value : others) {
      if (value < (1 - kAlike) * normal || value > (1 + kAlike) * normal) return values.end();
    }
    return low->second > 0 && low->second <= kSlow * normal ? low : values.end();
  }

  /// A communicator that is slow where those of its kind, with the same work, are not.
  void JudgeSiblings() {
    std::map<std::tuple<int32_t, int32_t, std::string, int64_t>, std::map<size_t, double>> kinds;
    for (size_t i = 0; i < comms_.size(); ++i) {
      for (const auto& op : comms_[i].ops) {
        const bool judged = op.bytes >= kLeastBytes && op.calls.size() >= kLeastSamples && comms_[i].nranks > 1 &&
                            static_cast<int32_t>(comms_[i].ranks.size()) == comms_[i].nranks;
        if (judged)
          kinds[{comms_[i].nranks, comms_[i].nodes, std::string(store_.text(op.op)), op.bytes}][i] = op.bus_gbs;
      }
    }
    std::map<size_t, size_t> slow;
    std::map<size_t, size_t> compared;
    std::map<size_t, const std::map<size_t, double>*> seen;
    std::map<size_t, std::pair<std::string, int64_t>> what;
    for (const auto& [kind, values] : kinds) {
      if (values.size() < kLeastSiblings + 1) continue;
      for (const auto& [comm, gbs] : values) ++compared[comm];
      const auto odd = OddOne(values);
      if (odd == values.end()) continue;
      ++slow[odd->first];
      seen.emplace(odd->first, &values);
      what.emplace(odd->first, std::pair(std::get<2>(kind), std::get<3>(kind)));
    }
    for (const auto& [comm, times] : slow) {
      if (static_cast<double>(times) < kSameRank * static_cast<double>(compared[comm])) continue;
      if (out_.findings.size() < kFindings) BlameComm(comm, *seen[comm], what[comm].first, what[comm].second);
    }
  }

  void BlameComm(size_t index, const std::map<size_t, double>& values, const std::string& op, int64_t bytes) {
    const MeasuredComm& comm = comms_[index];
    const auto example = [&](const MeasuredComm& of) {
      for (const auto& one : of.ops) {
        if (store_.text(one.op) == op && one.bytes == bytes) return one.calls[one.calls.size() / 2].rows.front();
      }
      return of.ranks.begin()->second;
    };
    const uint32_t own = example(comm);
    Finding finding = Start(comm.nodes > 1 ? FaultClass::kNetLinkFault : FaultClass::kIntraLinkDegraded, Row(own),
                            comm.nodes > 1 ? "network" : "hardware");
    finding.alternatives = {{FaultClass::kNetPathWrong, 0.2}};
    std::set<std::string> hosts;
    std::string ranks;
    for (const auto& [rank, row] : comm.ranks) {
      hosts.insert(std::string(store_.text(Row(row).host)));
      if (ranks.size() < 80) ranks += (ranks.empty() ? "" : ", ") + std::to_string(world_.Of(Row(row)));
    }
    finding.culprit.process = *hosts.begin();
    const auto sibling =
        std::find_if(values.begin(), values.end(), [&](const auto& value) { return value.first != index; });
    const std::string mark = Cite(finding, own);
    const std::string other = Cite(finding, example(comms_[sibling->first]));
    finding.explanation = fmt::format(
        "{} (ranks {}, {}) reaches {:.1f} GB/s in {} of {}{}, the {} other communicators of {} ranks reach {:.1f} "
        "GB/s{}. Each "
        "figure is that of the last rank to come, so waiting is not part of it: a link inside this one is slow.",
        NameOf(comm), ranks, fmt::join(hosts, ", "), values.at(index), op, Size(bytes), mark, values.size() - 1,
        comm.nranks, sibling->second, other);
    if (finding.explanation.front() == 'c') finding.explanation.front() = 'C';
    out_.findings.push_back(std::move(finding));
  }

  const trace::Store& store_;
  const tree::WorldRanks world_;
  const std::vector<MeasuredComm> comms_;
  LogCauses out_;
  std::set<int> accused_;
};

}  // namespace

LogCauses FindCommPerfCauses(const trace::Store& store) {
  if (store.comm_perf.empty()) return {};
  return Causes(store).Run();
}

}  // namespace teller::locate
