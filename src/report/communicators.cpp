#include "report/communicators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "report/units.hpp"

namespace teller::report {

using Json = nlohmann::ordered_json;

namespace {

constexpr size_t kShown = 8;  // communicators, and lines of each kind in one

std::string_view Name(trace::Transport transport) {
  switch (transport) {
    case trace::Transport::kP2p: return "p2p";
    case trace::Transport::kShm: return "shm";
    case trace::Transport::kNet: return "net";
    case trace::Transport::kSocket: return "socket";
    case trace::Transport::kOther: break;
  }
  return "other";
}

std::string Gbs(double value) {
  return fmt::format("{:.1f} GB/s", value);
}

std::string HeadText(const trace::Communicator& comm) {
  std::set<std::string> hosts;
  std::set<std::string> networks;
  double init = -1;
  for (const auto& rank : comm.ranks) {
    hosts.insert(rank.host);
    if (!rank.network.empty()) networks.insert(rank.network);
    init = std::max(init, rank.init_s);
  }
  std::vector<std::string> parts{fmt::format("{} ranks on {}", comm.nranks, Count(hosts.size(), "host"))};
  if (static_cast<int>(comm.ranks.size()) < comm.nranks)
    parts.push_back(fmt::format("lines of {} of them", comm.ranks.size()));
  if (comm.channels >= 0) parts.push_back(Count(static_cast<uint64_t>(comm.channels), "channel"));
  if (comm.ring_gbs >= 0) parts.push_back("ring " + Gbs(comm.ring_gbs));
  if (comm.tree_gbs >= 0) parts.push_back("tree " + Gbs(comm.tree_gbs));
  if (comm.max_gbs >= 0) parts.push_back("fastest link " + Gbs(comm.max_gbs));
  if (!networks.empty()) parts.push_back(fmt::format("network {}", fmt::join(networks, ", ")));
  if (init >= 0) parts.push_back(fmt::format("joined in {:.2f} s", init));
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// "0 -> 1": what it goes through and how many channels say so; several NICs of one pair make one line.
std::vector<std::string> PeerLines(const trace::Communicator& comm) {
  std::map<std::pair<int, int>, std::map<std::string, uint32_t>> pairs;
  for (const auto& peer : comm.peers) {
    uint32_t& channels = pairs[{peer.from, peer.to}][peer.via];
    channels = std::max(channels, peer.channels);  // sender and receiver tell of the same channels
  }
  std::vector<std::string> lines;
  for (const auto& [ends, ways] : pairs) {
    std::vector<std::string> parts;
    for (const auto& [via, channels] : ways) parts.push_back(fmt::format("{} ({})", via, Count(channels, "channel")));
    lines.push_back(fmt::format("{} -> {}  {}", ends.first, ends.second, fmt::join(parts, ", ")));
  }
  return lines;
}

/// Links of one speed and kind in one line, of each pair once.
std::vector<std::string> LinkLines(const trace::Communicator& comm) {
  std::map<std::tuple<std::string, std::string, double>, std::set<std::string>> groups;
  for (const auto& link : comm.links) {
    const bool swap = link.to < link.from;
    groups[{link.host, link.kind, link.gbs}].insert((swap ? link.to : link.from) + " - " +
                                                    (swap ? link.from : link.to));
  }
  std::vector<std::string> lines;
  for (const auto& [key, pairs] : groups) {
    const auto& [host, kind, gbs] = key;
    lines.push_back(fmt::format("{}  {} {}: {}", host, kind, Gbs(gbs), fmt::join(pairs, ", ")));
  }
  return lines;
}

void AddLines(const std::vector<std::string>& lines, Page& page) {
  const size_t shown = page.options().all ? lines.size() : std::min(lines.size(), kShown);
  for (size_t i = 0; i < shown; ++i) page.Paragraph(6, lines[i]);
  if (shown < lines.size()) page.Line(6, fmt::format("and {} more", lines.size() - shown), Ink::kDim);
}

Json OrNull(int64_t value) {
  return value < 0 ? Json(nullptr) : Json(value);
}
Json RealOrNull(double value) {
  return value < 0 ? Json(nullptr) : Json(value);
}
Json TextOrNull(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json ToJson(const trace::Communicator& comm) {
  Json ranks = Json::array();
  for (const auto& r : comm.ranks) {
    ranks.push_back({{"rank", r.rank},
                     {"host", r.host},
                     {"pid", OrNull(r.pid)},
                     {"device", OrNull(r.device)},
                     {"bus_id", TextOrNull(r.bus_id)},
                     {"network", TextOrNull(r.network)},
                     {"init_s", RealOrNull(r.init_s)},
                     {"bootstrap_s", RealOrNull(r.bootstrap_s)}});
  }
  Json peers = Json::array();
  for (const auto& p : comm.peers) {
    peers.push_back({{"from", p.from},
                     {"to", p.to},
                     {"side", p.side == 's'   ? Json("send")
                              : p.side == 'r' ? Json("receive")
                                              : Json(nullptr)},
                     {"transport", Name(p.transport)},
                     {"via", p.via},
                     {"gpu_direct", p.gdr},
                     {"channels", p.channels}});
  }
  Json links = Json::array();
  for (const auto& l : comm.links) {
    links.push_back({{"host", l.host}, {"from", l.from}, {"to", l.to}, {"kind", l.kind}, {"gbs", l.gbs}});
  }
  Json notices = Json::array();
  for (const auto& n : comm.notices) notices.push_back({{"host", n.host}, {"text", n.text}, {"count", n.count}});
  return {{"id", comm.id},
          {"nranks", comm.nranks},
          {"ranks", ranks},
          {"channels", OrNull(comm.channels)},
          {"p2p_channels", OrNull(comm.p2p_channels)},
          {"p2p_channels_per_peer", OrNull(comm.p2p_channels_per_peer)},
          {"nvls_channels", OrNull(comm.nvls_channels)},
          {"max_gbs", RealOrNull(comm.max_gbs)},
          {"total_gbs", RealOrNull(comm.total_gbs)},
          {"ring_gbs", RealOrNull(comm.ring_gbs)},
          {"tree_gbs", RealOrNull(comm.tree_gbs)},
          {"rings", comm.rings},
          {"tree_edges", comm.tree_edges},
          {"peers", peers},
          {"links", links},
          {"notices", notices}};
}

}  // namespace

void AddCommunicators(const trace::Store& store, Page& page) {
  if (store.communicators.empty()) return;
  page.Gap();
  page.Head(fmt::format("NCCL communicators: {}", Count(store.communicators.size())));
  const size_t shown = page.options().all ? store.communicators.size() : std::min(store.communicators.size(), kShown);
  for (size_t i = 0; i < shown; ++i) {
    const auto& comm = store.communicators[i];
    page.Line(2, comm.id);
    page.Paragraph(6, HeadText(comm), Ink::kDim);
    std::vector<std::string> ranks;
    for (const auto& r : comm.ranks) {
      ranks.push_back(fmt::format("rank {}  {} pid {} device {}{}", r.rank, r.host, r.pid, r.device,
                                  r.bus_id.empty() ? "" : " (" + r.bus_id + ")"));
    }
    AddLines(ranks, page);
    AddLines(PeerLines(comm), page);
    AddLines(LinkLines(comm), page);
    std::vector<std::string> notices;
    for (const auto& n : comm.notices) notices.push_back(fmt::format("{}  {}", n.host, n.text));
    AddLines(notices, page);
  }
  if (shown < store.communicators.size())
    page.Line(2, fmt::format("and {} more", store.communicators.size() - shown), Ink::kDim);
}

Json CommunicatorsToJson(const trace::Store& store) {
  Json out = Json::array();
  for (const auto& comm : store.communicators) out.push_back(ToJson(comm));
  return out;
}

}  // namespace teller::report
