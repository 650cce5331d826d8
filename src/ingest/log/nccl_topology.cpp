// Which NCCL line belongs to which communicator. A line names its writer ("host:pid:tid [device]") and mostly no
// communicator. The thread that joins one writes "Init START" (since 2.18) and "Init COMPLETE"; what it writes in
// between belongs to it. Connections that are made later come from other threads: there the process, the device and the
// rank that the line names tell. Before 2.18 there was no START, so lines wait for their COMPLETE.
#include "ingest/log/nccl_topology.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ingest/log/diagnostics.hpp"
#include "ingest/log/nccl_message.hpp"

namespace teller::ingest {

namespace {

using log::NcclMessage;
using Kind = NcclMessage::Kind;

constexpr size_t kMaxRings = 64;  // distinct orders of one communicator
constexpr size_t kMaxNotices = 16;
constexpr size_t kMaxPending = 1u << 16;  // lines of one thread that wait for their communicator
constexpr size_t kMaxInstances = 1024;
constexpr size_t kLookBack = 1024;  // communicators of one process that a late connection may belong to

/// One rank's part in one communicator.
struct Part {
  size_t comm = 0;
  trace::CommRank rank;
  std::vector<trace::TopologyLink> tree;           ///< the fullest one that it printed
  std::vector<trace::TopologyLink> open_tree;      ///< being printed
  std::vector<std::pair<long, std::string>> path;  ///< nodes above, by column; -1 = the root
  bool in_tree = false;
  bool complete = false;
};

/// Peers, edges and notices of a communicator while they are collected.
struct Draft {
  trace::Communicator comm;
  std::map<std::tuple<int, int, char, std::string>, trace::CommPeer> peers;
  std::set<std::pair<int, int>> edges;
  std::map<int, size_t> parts;  ///< by rank
};

using Process = std::pair<uint32_t, int64_t>;  // file and pid: hosts of containers may share a name
using Thread = std::tuple<uint32_t, int64_t, int64_t>;

class Builder {
 public:
  explicit Builder(trace::Store& store) : store_(store) {}

  void Run() {
    for (size_t i = 0; i < store_.nccl_writers.size(); ++i) {
      const uint32_t row = store_.nccl_writers.row(i);
      const NcclMessage message = log::ParseNcclMessage(store_.logs[row].message);
      if (message.kind != Kind::kNone) Take(row, store_.nccl_writers.value(i), message);
    }
    TakeLeftovers();
    Finish();
  }

 private:
  trace::LogRow Row(uint32_t row) const { return trace::LogRow(row); }
  std::string Host(const trace::NcclWriter& w) const { return std::string(store_.strings.Text(w.host)); }
  Process ProcessOf(uint32_t row, const trace::NcclWriter& w) const { return {store_.logs[row].file.value(), w.pid}; }
  Thread ThreadOf(uint32_t row, const trace::NcclWriter& w) const {
    return {store_.logs[row].file.value(), w.pid, w.tid};
  }

  void Take(uint32_t row, const trace::NcclWriter& w, const NcclMessage& m) {
    switch (m.kind) {
      case Kind::kNetwork: network_[ProcessOf(row, w)] = std::string(m.text); return;
      case Kind::kInitStart:
        has_start_.insert(ProcessOf(row, w));
        current_[ThreadOf(row, w)] = Join(row, w, m);
        return;
      case Kind::kInitComplete: Complete(row, w, m); return;
      default: break;
    }
    if (const auto part = PartOf(row, w, m)) {
      Apply(row, m, *part);
    } else if (auto& waiting = pending_[ThreadOf(row, w)]; waiting.size() < kMaxPending) {
      waiting.push_back(row);
    } else {
      ++lost_;
    }
  }

  /// The communicator that a line belongs to, when it can be told now.
  std::optional<size_t> PartOf(uint32_t row, const trace::NcclWriter& w, const NcclMessage& m) const {
    const bool starts = has_start_.count(ProcessOf(row, w)) > 0;
    const auto mine = current_.find(ThreadOf(row, w));
    if (mine != current_.end()) {
      const Part& part = parts_[mine->second];
      // Without START the next communicator of the thread has begun already, but for the timings of this one.
      const bool own = !part.complete || starts || m.kind == Kind::kTimings;
      if (own && Fits(part, m)) return mine->second;
    }
    if (!starts) return std::nullopt;
    const auto it = by_device_.find(ProcessOf(row, w));
    if (it == by_device_.end()) return std::nullopt;
    const size_t oldest = it->second.size() > kLookBack ? it->second.size() - kLookBack : 0;
    for (size_t i = it->second.size(); i-- > oldest;) {
      const Part& part = parts_[it->second[i]];
      if ((w.device < 0 || part.rank.device == w.device) && Fits(part, m)) return it->second[i];
    }
    return std::nullopt;
  }

  /// A connection's line is written by one of its ends.
  bool Fits(const Part& part, const NcclMessage& m) const {
    if (m.kind == Kind::kTimings) return m.rank == part.rank.rank;
    if (m.kind != Kind::kChannel) return true;
    return (m.side == 'r' ? m.to : m.rank) == part.rank.rank && std::max(m.rank, m.to) < drafts_[part.comm].comm.nranks;
  }

  /// Name of the communicator, equal on all its ranks.
  std::string IdOf(uint32_t row, const trace::NcclWriter& w, const NcclMessage& m) {
    if (!m.comm_id.empty()) return m.comm_id;
    if (!m.parent.empty()) {
      const auto it = by_pointer_.find({ProcessOf(row, w), std::string(m.parent)});
      const std::string parent = it == by_pointer_.end() ? "split" : drafts_[parts_[it->second].comm].comm.id;
      return (parent + "/" + std::string(m.color)).substr(0, 256);
    }
    return std::to_string(m.nranks) + " ranks";  // before 2.18 no line names it: in order of creation, see Join
  }

  size_t Join(uint32_t row, const trace::NcclWriter& w, const NcclMessage& m) {
    const std::string base = IdOf(row, w, m);
    // The same rank again is another communicator of that name: a restart, or the next one where none has an id.
    for (size_t instance = 1;; ++instance) {
      const std::string id = instance == 1 ? base : base + " #" + std::to_string(instance);
      const auto [it, added] = by_id_.emplace(id, drafts_.size());
      if (added) {
        drafts_.emplace_back();
        drafts_.back().comm.id = id;
        drafts_.back().comm.nranks = m.nranks;
      }
      Draft& draft = drafts_[it->second];
      if (instance < kMaxInstances && (draft.comm.nranks != m.nranks || draft.parts.count(m.rank) > 0)) continue;
      const size_t part = parts_.size();
      draft.parts[m.rank] = part;
      parts_.emplace_back();
      parts_.back().comm = it->second;
      trace::CommRank& rank = parts_.back().rank;
      rank.rank = m.rank;
      rank.host = Host(w);
      rank.pid = w.pid;
      rank.device = m.device >= 0 ? m.device : w.device;
      rank.bus_id = log::NodeName("/" + std::string(m.bus_id)).substr(1);
      rank.line = Row(row);
      if (const auto network = network_.find(ProcessOf(row, w)); network != network_.end())
        rank.network = network->second;
      by_pointer_[{ProcessOf(row, w), std::string(m.comm)}] = part;
      by_device_[ProcessOf(row, w)].push_back(part);
      return part;
    }
  }

  void Complete(uint32_t row, const trace::NcclWriter& w, const NcclMessage& m) {
    const auto thread = ThreadOf(row, w);
    const auto known = current_.find(thread);
    size_t part = 0;
    if (known != current_.end() && !parts_[known->second].complete && parts_[known->second].rank.rank == m.rank) {
      part = known->second;
    } else {
      part = Join(row, w, m);
      current_[thread] = part;
    }
    parts_[part].complete = true;
    auto waiting = pending_.extract(thread);
    if (waiting.empty()) return;
    for (const uint32_t earlier : waiting.mapped()) {
      const NcclMessage message = log::ParseNcclMessage(store_.logs[earlier].message);
      if (Fits(parts_[part], message)) {
        Apply(earlier, message, part);
      } else {
        ++lost_;
      }
    }
  }

  void Apply(uint32_t row, const NcclMessage& m, size_t index) {
    Part& part = parts_[index];
    Draft& draft = drafts_[part.comm];
    trace::Communicator& comm = draft.comm;
    switch (m.kind) {
      case Kind::kTimings:
        part.rank.init_s = m.total_s;
        part.rank.bootstrap_s = m.bootstrap_s;
        break;
      case Kind::kChannel: AddPeer(row, m, draft); break;
      case Kind::kRing:
        comm.channels = std::max(comm.channels, m.channels);
        AddRing(m.text, comm);
        break;
      case Kind::kTrees: draft.edges.insert(m.edges.begin(), m.edges.end()); break;
      case Kind::kCounts:
        comm.channels = m.channels;
        comm.p2p_channels = std::max(comm.p2p_channels, m.p2p_channels);
        comm.p2p_channels_per_peer = std::max(comm.p2p_channels_per_peer, m.p2p_channels_per_peer);
        comm.nvls_channels = std::max(comm.nvls_channels, m.nvls_channels);
        break;
      case Kind::kPattern: {
        // Numbers of ncclTopoGraph patterns: 1 to 3 are trees, 4 rings.
        if (m.pattern == 4 && comm.ring_gbs < 0) comm.ring_gbs = m.gbs;
        if (m.pattern >= 1 && m.pattern <= 3 && comm.tree_gbs < 0) comm.tree_gbs = m.gbs;
        break;
      }
      case Kind::kSystem:
        comm.max_gbs = std::max(comm.max_gbs, m.gbs);
        comm.total_gbs = std::max(comm.total_gbs, m.total_gbs);
        part.open_tree.clear();
        part.path.clear();
        part.in_tree = true;
        break;
      case Kind::kNode: AddNode(row, m, part); break;
      case Kind::kSystemEnd: CloseTree(part); break;
      case Kind::kNotice: AddNotice(row, m, part.rank.host, comm); break;
      default: break;
    }
  }

  void AddPeer(uint32_t row, const NcclMessage& m, Draft& draft) const {
    auto& peer = draft.peers[{m.rank, m.to, m.side, std::string(m.text)}];
    if (peer.channels++ > 0) return;
    peer.from = m.rank;
    peer.to = m.to;
    peer.side = m.side;
    peer.transport = m.transport;
    peer.gdr = m.gdr;
    peer.via = std::string(m.text);
    peer.line = Row(row);
  }

  static void AddRing(std::string_view order, trace::Communicator& comm) {
    std::string clean;
    for (const char c : order) {
      if (c != ' ' || (!clean.empty() && clean.back() != ' ')) clean += c;
    }
    const bool known = std::find(comm.rings.begin(), comm.rings.end(), clean) != comm.rings.end();
    if (!known && comm.rings.size() < kMaxRings) comm.rings.push_back(std::move(clean));
  }

  void AddNotice(uint32_t row, const NcclMessage& m, const std::string& host, trace::Communicator& comm) const {
    for (auto& notice : comm.notices) {
      if (notice.host == host && notice.text == m.text) {
        ++notice.count;
        return;
      }
    }
    if (comm.notices.size() < kMaxNotices) comm.notices.push_back({host, std::string(m.text), 1, Row(row)});
  }

  /// A node's children stand further right than itself; what stands under the root stands at column 0.
  void AddNode(uint32_t row, const NcclMessage& m, Part& part) const {
    if (!part.in_tree) return;
    const std::string name = log::NodeName(m.text);
    if (m.link.empty()) {
      part.path.assign(1, {-1, name});
      return;
    }
    const auto column = static_cast<long>(m.indent);
    while (!part.path.empty() && part.path.back().first >= column) part.path.pop_back();
    if (part.path.empty()) return;  // its root was lost
    if (m.link != "LOC") {
      part.open_tree.push_back({part.rank.host, part.path.back().second, name, std::string(m.link), m.gbs, Row(row)});
    }
    part.path.emplace_back(column, name);
  }

  static void CloseTree(Part& part) {
    if (!part.in_tree) return;
    part.in_tree = false;
    if (part.open_tree.size() > part.tree.size()) part.tree = std::move(part.open_tree);
    part.open_tree.clear();
  }

  /// Lines of threads that never completed a communicator: connections made later (old versions), or a cut log.
  void TakeLeftovers() {
    for (const auto& [thread, rows] : pending_) {
      for (const uint32_t row : rows) {
        const trace::NcclWriter& w = *store_.nccl_writers.Find(row);
        const NcclMessage m = log::ParseNcclMessage(store_.logs[row].message);
        if (!Place(row, w, m)) ++lost_;
      }
    }
    if (lost_ > 0) store_.diagnostics.Report(log::kNcclUnassigned, {}, {}, lost_);
  }

  bool Place(uint32_t row, const trace::NcclWriter& w, const NcclMessage& m) {
    const auto it = by_device_.find(ProcessOf(row, w));
    if (it == by_device_.end()) return false;
    const size_t oldest = it->second.size() > kLookBack ? it->second.size() - kLookBack : 0;
    for (size_t i = it->second.size(); i-- > oldest;) {
      const Part& part = parts_[it->second[i]];
      const bool device = w.device < 0 || part.rank.device == w.device;
      if (!device || !Fits(part, m) || part.rank.line > Row(row)) continue;
      Apply(row, m, it->second[i]);
      return true;
    }
    return false;
  }

  void Finish() {
    for (Draft& draft : drafts_) {
      trace::Communicator& comm = draft.comm;
      std::map<std::string, const Part*> fullest;
      for (auto& [rank, index] : draft.parts) {
        Part& part = parts_[index];
        CloseTree(part);
        comm.ranks.push_back(part.rank);
        auto& best = fullest[part.rank.host];
        if (best == nullptr || part.tree.size() > best->tree.size()) best = &part;
      }
      for (const auto& [host, part] : fullest)
        comm.links.insert(comm.links.end(), part->tree.begin(), part->tree.end());
      for (auto& [key, peer] : draft.peers) comm.peers.push_back(std::move(peer));
      comm.tree_edges.assign(draft.edges.begin(), draft.edges.end());
      store_.communicators.push_back(std::move(comm));
    }
  }

  trace::Store& store_;
  std::vector<Part> parts_;
  std::vector<Draft> drafts_;
  std::map<std::string, size_t> by_id_;
  std::map<std::pair<Process, std::string>, size_t> by_pointer_;  ///< the part that a pointer stands for
  std::map<Process, std::vector<size_t>> by_device_;              ///< parts of a process, oldest first
  std::map<Thread, size_t> current_;
  std::map<Thread, std::vector<uint32_t>> pending_;
  std::map<Process, std::string> network_;
  std::set<Process> has_start_;
  uint64_t lost_ = 0;
};

}  // namespace

void BuildCommunicators(trace::Store& store) {
  if (store.nccl_writers.size() > 0) Builder(store).Run();
}

}  // namespace teller::ingest
