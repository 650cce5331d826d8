// Degraded links in logs that look healthy: NCCL says at its start which way it takes between which ranks and how fast
// it believes the links are. Only contrast accuses: a link that is worse than all that should be like it. What is slow
// everywhere is a note.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "locate/log_cause.hpp"
#include "locate/log_facts.hpp"
#include "locate/topology_odd.hpp"

namespace teller::locate {

namespace {

using trace::CommPeer;
using trace::CommRank;
using trace::Communicator;
using trace::FaultClass;
using trace::Finding;
using trace::Transport;

constexpr size_t kLeastGood = 2;      // pairs on the good way, beside the one that is not
constexpr size_t kLeastGdrRanks = 3;  // ranks with GPU Direct beside the one without
constexpr double kLinkAlarm = 1e-3;   // the figure is NCCL's own, and all its siblings agree
constexpr double kTransportAlarm = 2e-3;
constexpr double kSlotAlarm = 5e-3;  // a slot may be wired narrower by design
constexpr size_t kFindings = 64;     // more odd links are no odd links

class Causes {
 public:
  explicit Causes(const trace::Store& store) : store_(store) {
    for (const auto& comm : store.communicators) {
      for (const auto& rank : comm.ranks) {
        auto& known = widest_[{rank.host, NodeOf(rank)}];
        if (comm.nranks > known.first) known = {comm.nranks, rank.rank};
      }
    }
  }

  LogCauses Run() {
    std::map<std::string, HostLinks> fullest;  // over all communicators
    for (const auto& comm : store_.communicators) {
      const auto hosts = LinksByHost(comm);
      for (const auto& host : hosts) {
        for (const auto& odd : FindOddLinks(host)) Blame(odd, "on its host");
        auto& best = fullest[host.host];
        if (host.links.size() > best.links.size()) best = host;
      }
      JudgeTransports(comm, hosts);
      JudgeNetwork(comm);
    }
    std::vector<HostLinks> all;
    for (auto& [name, host] : fullest) all.push_back(std::move(host));
    for (const auto& odd : FindOddHosts(all)) Blame(odd, "on the other hosts");
    return std::move(out_);
  }

 private:
  static std::string NodeOf(const CommRank& rank) {
    return rank.bus_id.empty() ? "device " + std::to_string(rank.device) : "GPU/" + rank.bus_id;
  }
  /// The rank that a GPU has in the largest communicator that it is in.
  std::optional<int> RankOfGpu(const std::string& host, const std::string& node) const {
    const auto it = widest_.find({host, node});
    return it == widest_.end() ? std::nullopt : std::optional(it->second.second);
  }
  std::string GpuText(const std::string& host, const std::string& node) const {
    std::string text = node;
    if (text.rfind("GPU/", 0) == 0) text[3] = ' ';
    if (text.rfind("NVS/", 0) == 0) text = "the NVLink switch";
    if (const auto rank = RankOfGpu(host, node)) text += " (rank " + std::to_string(*rank) + ")";
    return text;
  }
  std::string RankText(const CommRank& rank) const { return GpuText(rank.host, NodeOf(rank)) + " on " + rank.host; }

  /// True once for each thing; several communicators tell of the same link.
  bool First(const std::string& key) { return seen_.insert(key).second && out_.findings.size() < kFindings; }

  Finding Start(FaultClass fault, double alarm, std::optional<trace::LogRow> line) const {
    Finding finding;
    finding.fault = fault;
    finding.view = "horizontal";
    finding.culprit.layer = "hardware";
    finding.false_alarm_probability = alarm;
    finding.score = ScoreOf(alarm);
    if (line && line->valid()) {
      const trace::LogRecord& record = store_.logs[line->value()];
      finding.onset = record.at;
      finding.end = record.at;
      finding.culprit.log_record = record.message.substr(0, std::min<size_t>(record.message.find('\n'), 240));
    }
    return finding;
  }
  std::string Cite(Finding& finding, trace::LogRow line) const {
    const std::string mark = line.valid() ? AddEvidence(finding, store_, line.value()) : std::string();
    return mark.empty() ? "" : " " + mark;
  }

  void Blame(const OddLink& odd, std::string_view where) {
    const std::string low = std::min(odd.a, odd.b);
    if (!First(odd.host + " " + odd.kind + " " + low + " " + std::max(odd.a, odd.b))) return;
    Finding finding = Start(FaultClass::kIntraLinkDegraded, odd.kind == "PCI" ? kSlotAlarm : kLinkAlarm,
                            odd.line.valid() ? odd.line : odd.sibling);
    const bool one = odd.kind == "PCI" || odd.b.rfind("NVS/", 0) == 0 || odd.a.rfind("GPU/", 0) != 0;
    const std::string& gpu = odd.a.rfind("GPU/", 0) == 0 ? odd.a : odd.b;
    if (one) finding.culprit.rank = RankOfGpu(odd.host, gpu);
    finding.culprit.process = finding.culprit.rank ? "rank" + std::to_string(*finding.culprit.rank) : odd.host;
    finding.culprit.op = odd.kind + " link " + odd.a + " - " + odd.b;
    if (odd.kind == "PCI") finding.alternatives = {{FaultClass::kNotAFault, 0.2}};
    std::string text = fmt::format("The {} link between {} and {} on {} ", odd.kind, GpuText(odd.host, odd.a),
                                   GpuText(odd.host, odd.b), odd.host);
    text += odd.gbs > 0 ? fmt::format("has {:.1f} GB/s", odd.gbs) + Cite(finding, odd.line) : "is not there";
    text += fmt::format(", the {} links {} that should be like it have {:.1f} GB/s{}.", odd.siblings, where, odd.normal,
                        Cite(finding, odd.sibling));
    text += odd.kind == "PCI" ? " The slot runs with fewer lanes or at a lower rate, unless it is wired so."
                              : " Some of its lanes are down or were not trained.";
    finding.explanation = std::move(text);
    out_.findings.push_back(std::move(finding));
  }

  /// A pair on one host that goes through host memory or a network although a chain of GPU-to-GPU connections joins its
  /// ends. Where GPUs can reach each other in groups only (per socket, per switch), ends of different groups are not
  /// joined so, however the groups are made.
  void JudgeTransports(const Communicator& comm, const std::vector<HostLinks>& hosts) {
    struct Pairs {
      std::map<std::pair<int, int>, const CommPeer*> good;
      std::map<std::pair<int, int>, const CommPeer*> bad;
    };
    std::map<std::string, Pairs> by_host;
    std::map<int, const CommRank*> ranks;
    for (const auto& rank : comm.ranks) ranks[rank.rank] = &rank;
    for (const auto& peer : comm.peers) {
      const auto a = ranks.find(peer.from);
      const auto b = ranks.find(peer.to);
      if (a == ranks.end() || b == ranks.end() || a->second->host != b->second->host || peer.from == peer.to) continue;
      if (peer.transport == Transport::kOther) continue;
      auto& pairs = by_host[a->second->host];
      auto& side = peer.transport == Transport::kP2p ? pairs.good : pairs.bad;
      side.emplace(std::minmax(peer.from, peer.to), &peer);
    }
    for (auto& [host, pairs] : by_host) {
      if (pairs.bad.empty()) continue;
      if (pairs.good.empty()) {
        NoteAllStaged(comm, host, *pairs.bad.begin()->second);
        continue;
      }
      JudgeHost(comm, host, pairs.good, pairs.bad, ranks, hosts);
    }
  }

  using PairMap = std::map<std::pair<int, int>, const CommPeer*>;

  void JudgeHost(const Communicator& comm, const std::string& host, const PairMap& good, const PairMap& bad,
                 const std::map<int, const CommRank*>& ranks, const std::vector<HostLinks>& hosts) {
    std::map<int, int> group;  // union-find by P2P
    const auto root = [&](int rank) {
      group.emplace(rank, rank);
      while (group[rank] != rank) rank = group[rank] = group[group[rank]];
      return rank;
    };
    for (const auto& [ends, peer] : good) group[root(ends.first)] = root(ends.second);
    std::vector<const CommPeer*> odd;
    for (const auto& [ends, peer] : bad) {
      if (root(ends.first) == root(ends.second)) odd.push_back(peer);
    }
    if (odd.size() != 1) return;
    const CommPeer& peer = *odd.front();
    const int own = root(peer.from);
    const CommPeer* sibling = nullptr;
    size_t siblings = 0;
    for (const auto& [ends, one] : good) {
      if (root(ends.first) != own) continue;
      ++siblings;
      if (sibling == nullptr) sibling = one;
    }
    const CommRank& a = *ranks.at(std::min(peer.from, peer.to));
    const CommRank& b = *ranks.at(std::max(peer.from, peer.to));
    if (siblings < kLeastGood) return;
    for (const auto& links : hosts) {
      const bool by_design =
          links.host == host && HasPartialFabric(links) && !HasFabricLink(links, NodeOf(a), NodeOf(b));
      if (by_design) return;
    }
    if (!First(host + " way " + NodeOf(a) + " " + NodeOf(b))) return;
    Finding finding = Start(FaultClass::kIntraLinkDegraded, kTransportAlarm, peer.line);
    finding.culprit.process = host;
    finding.culprit.op = "link " + NodeOf(a) + " - " + NodeOf(b);
    finding.alternatives = {{FaultClass::kNetPathWrong, 0.2}};
    const std::string odd_mark = Cite(finding, peer.line);  // in the order of the text
    const std::string good_mark = Cite(finding, sibling->line);
    finding.explanation = fmt::format(
        "{} and {} exchange data through {}{}, while {} other pairs of GPUs of communicator {} on {} do so directly{}: "
        "the direct way between these two does not work.",
        RankText(a), RankText(b), peer.via, odd_mark, siblings, comm.id, host, good_mark);
    out_.findings.push_back(std::move(finding));
  }

  void NoteAllStaged(const Communicator& comm, const std::string& host, const CommPeer& peer) {
    if (!seen_.insert(host + " staged").second) return;
    const auto at = store_.logs[peer.line.value()].at;
    out_.notes.push_back({"All GPUs of communicator " + comm.id + " on " + host + " exchange data through " +
                              (peer.transport == Transport::kShm ? "host memory" : peer.via) +
                              ", none directly: slow, but alike everywhere.",
                          at, at});
  }

  /// Ways between hosts: what one rank or one host does otherwise than all the others.
  void JudgeNetwork(const Communicator& comm) {
    std::map<int, const CommRank*> ranks;
    std::map<std::string, std::set<std::string>> networks;  // host -> names
    for (const auto& rank : comm.ranks) {
      ranks[rank.rank] = &rank;
      if (!rank.network.empty()) networks[rank.host].insert(rank.network);
    }
    JudgeSocket(comm, networks, ranks);
    for (const char side : {'s', 'r'}) JudgeGdr(comm, side, ranks);
  }

  /// One host fell back to TCP.
  void JudgeSocket(const Communicator& comm, const std::map<std::string, std::set<std::string>>& networks,
                   const std::map<int, const CommRank*>& ranks) {
    std::vector<std::string> tcp;
    std::vector<std::string> others;
    for (const auto& [host, names] : networks)
      (names.size() == 1 && *names.begin() == "Socket" ? tcp : others).push_back(host);
    if (tcp.size() == 1 && !others.empty()) {
      if (!First(tcp.front() + " socket")) return;
      const auto rank =
          std::find_if(ranks.begin(), ranks.end(), [&](const auto& r) { return r.second->host == tcp.front(); });
      const auto other =
          std::find_if(ranks.begin(), ranks.end(), [&](const auto& r) { return r.second->host == others.front(); });
      Finding finding =
          Start(FaultClass::kNetPathWrong, kTransportAlarm, LineOf(comm, *rank->second, Transport::kSocket));
      finding.culprit.layer = "network";
      finding.culprit.process = tcp.front();
      if (CountRanks(comm, tcp.front()) == 1) finding.culprit.rank = RankOfGpu(tcp.front(), NodeOf(*rank->second));
      const std::string odd_mark = Cite(finding, LineOf(comm, *rank->second, Transport::kSocket));
      const std::string good_mark = Cite(finding, LineOf(comm, *other->second, Transport::kNet));
      std::string text = fmt::format("{} of communicator {} uses TCP sockets{}, the {} other hosts use {}{}.",
                                     tcp.front(), comm.id, odd_mark, others.size(), other->second->network, good_mark);
      for (const auto& notice : comm.notices) {
        if (notice.host == tcp.front()) text += " It says: " + notice.text + Cite(finding, notice.line) + ".";
      }
      finding.explanation = std::move(text);
      out_.findings.push_back(std::move(finding));
    } else if (others.empty() && tcp.size() > 1 && seen_.insert("all socket").second) {
      const auto at = store_.logs[comm.ranks.front().line.value()].at;
      out_.notes.push_back(
          {"All hosts of communicator " + comm.id + " talk over TCP sockets: slow, but alike everywhere.", at, at});
    }
  }

  /// The first connection of a rank over a transport, else the line with which it joined.
  static trace::LogRow LineOf(const Communicator& comm, const CommRank& rank, Transport transport) {
    for (const auto& peer : comm.peers) {
      if (peer.transport == transport && (peer.side == 'r' ? peer.to : peer.from) == rank.rank) return peer.line;
    }
    return rank.line;
  }
  static size_t CountRanks(const Communicator& comm, const std::string& host) {
    return static_cast<size_t>(
        std::count_if(comm.ranks.begin(), comm.ranks.end(), [&](const CommRank& r) { return r.host == host; }));
  }

  /// One rank, or one host, whose NIC does not reach GPU memory itself. Sends and receives are compared apart: some
  /// platforms use GPU Direct for one of them only.
  void JudgeGdr(const Communicator& comm, char side, const std::map<int, const CommRank*>& ranks) {
    std::map<int, const CommPeer*> with;
    std::map<int, const CommPeer*> without;
    for (const auto& peer : comm.peers) {
      if (peer.transport != Transport::kNet || peer.side != side) continue;
      const int own = side == 's' ? peer.from : peer.to;
      if (ranks.count(own) == 0) continue;
      (peer.gdr ? with : without).emplace(own, &peer);
    }
    for (const auto& [rank, peer] : with) without.erase(rank);  // some NICs of it do
    if (without.empty()) return;
    if (with.empty()) {
      if (seen_.insert("all staged").second) {
        const auto at = store_.logs[without.begin()->second->line.value()].at;
        out_.notes.push_back(
            {"No rank of communicator " + comm.id +
                 " uses GPU Direct RDMA: all data between hosts goes through host memory, alike everywhere.",
             at, at});
      }
      return;
    }
    std::set<std::string> hosts_with;
    std::set<std::string> hosts_without;
    for (const auto& [rank, peer] : with) hosts_with.insert(ranks.at(rank)->host);
    for (const auto& [rank, peer] : without) hosts_without.insert(ranks.at(rank)->host);
    const std::string host = *hosts_without.begin();
    const bool one_rank = without.size() == 1 && with.size() >= kLeastGdrRanks && hosts_with.size() >= 2;
    const bool one_host = hosts_without.size() == 1 && hosts_with.count(host) == 0 && hosts_with.size() >= 2;
    if (!one_rank && !one_host) return;
    if (!First(host + " gdr " + (one_host ? "" : std::to_string(without.begin()->first)))) return;
    const CommPeer& peer = *without.begin()->second;
    const CommRank& rank = *ranks.at(without.begin()->first);
    Finding finding = Start(FaultClass::kNetPathWrong, kTransportAlarm, peer.line);
    finding.culprit.layer = "network";
    if (without.size() == 1) finding.culprit.rank = RankOfGpu(rank.host, NodeOf(rank)).value_or(rank.rank);
    finding.culprit.process = finding.culprit.rank ? "rank" + std::to_string(*finding.culprit.rank) : host;
    const std::string odd_mark = Cite(finding, peer.line);
    const std::string good_mark = Cite(finding, with.begin()->second->line);
    finding.explanation = fmt::format(
        "{} of communicator {} {} data through host memory ({}){}, {} other ranks let the NIC reach GPU memory itself "
        "(GPU Direct RDMA){}.",
        without.size() == 1 ? RankText(rank) : "Every rank on " + host, comm.id, side == 's' ? "sends" : "receives",
        peer.via, odd_mark, with.size(), good_mark);
    for (const auto& notice : comm.notices) {
      if (notice.host == host && notice.text.find("GPU Direct") != std::string::npos)
        finding.explanation += " It says: " + notice.text + Cite(finding, notice.line) + ".";
    }
    out_.findings.push_back(std::move(finding));
  }

  const trace::Store& store_;
  LogCauses out_;
  std::map<std::pair<std::string, std::string>, std::pair<int, int>>
      widest_;  ///< GPU -> size of its largest group, rank
  std::set<std::string> seen_;
};

}  // namespace

LogCauses FindTopologyCauses(const trace::Store& store) {
  if (store.communicators.empty()) return {};
  return Causes(store).Run();
}

}  // namespace teller::locate
