#include "locate/net_path.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "locate/log_facts.hpp"
#include "locate/log_text.hpp"
#include "locate/maybe.hpp"
#include "locate/resources.hpp"
#include "ml/robust.hpp"

namespace teller::locate {

namespace {

using trace::FaultClass;
using trace::Finding;
using trace::Nanos;

constexpr double kMost = 0.4;  // of the steps' time: more than computing leaves room for elsewhere
constexpr size_t kFewestSteps = 5;
constexpr double kFalseAlarm = 8e-3;

/// What a log says of data that goes over TCP.
struct SocketPath {
  size_t channel = 0;  ///< line: a connection between two ranks
  size_t network = 0;  ///< line: the network and its interface; else the same
  bool wrong = false;  ///< ranks of one host, or a faster network that is there
};

/// Ranks of "Channel 00/0 : 0[0] -> 1[1] [send] via NET/Socket/0", and who of them wrote it.
struct Connection {
  int from = -1;
  int to = -1;
  bool sender = true;
  int writer() const { return sender ? from : to; }
};

std::optional<Connection> ReadConnection(std::string_view text) {
  const size_t colon = text.find(" : ");
  const size_t arrow = text.find(" -> ");
  if (colon == std::string_view::npos || arrow == std::string_view::npos || arrow < colon) return std::nullopt;
  const auto from = NumberAfter(text.substr(colon), " : ");
  const auto to = NumberAfter(text.substr(arrow), " -> ");
  if (!from || !to || *from < 0 || *to < 0 || *from > INT32_MAX || *to > INT32_MAX) return std::nullopt;
  return Connection{static_cast<int>(*from), static_cast<int>(*to), !Has(text, "[receive]")};
}

/// Where the ranks of a job run, by the lines that they wrote of their connections.
class Hosts {
 public:
  using Writer = std::tuple<uint32_t, int64_t, int32_t>;  // host, pid, device

  static Writer Of(const trace::NcclWriter& writer) { return {writer.host.value(), writer.pid, writer.device}; }

  void Speaks(const Writer& writer, int rank) {
    // Numbers count within a communicator: where there are several, they are no ranks of the job.
    known_ = known_ && writers_.try_emplace(rank, writer).first->second == writer &&
             ranks_.try_emplace(writer, rank).first->second == rank;
  }

  void HasAddress(const Writer& writer, std::string_view line) { addresses_[writer] = line; }

  /// True when both are known to run on one host. Names alone may be equal on several: addresses must not differ.
  bool Same(int a, int b) const {
    const auto one = writers_.find(a);
    const auto other = writers_.find(b);
    if (!known_ || one == writers_.end() || other == writers_.end() ||
        std::get<0>(one->second) != std::get<0>(other->second))
      return false;
    const auto here = addresses_.find(one->second);
    const auto there = addresses_.find(other->second);
    return here == addresses_.end() || there == addresses_.end() || here->second == there->second;
  }

 private:
  bool known_ = true;
  std::map<int, Writer> writers_;
  std::map<Writer, int> ranks_;
  std::map<Writer, std::string_view> addresses_;
};

/// That NCCL chooses a network does not tell that data goes there: it also does so where all ranks are on one host and
/// exchange data without it. A connection tells. Nothing where some use a faster network: then who falls back is found
/// by contrast. That a faster one is switched off proves nothing: this is also set where there is none.
std::optional<SocketPath> FindSocketPath(const trace::Store& store) {
  std::optional<size_t> channel;
  std::optional<size_t> network;
  Hosts hosts;
  std::vector<Connection> sockets;
  SocketPath path;
  for (size_t row = 0; row < store.logs.size(); ++row) {
    const trace::LogRecord& record = store.logs[row];
    if (record.source != trace::LogSource::kNccl) continue;
    const std::string_view text = FirstLine(record.message);
    const bool socket = Has(text, " via NET/Socket");
    if (!socket && Has(text, " via NET/")) return std::nullopt;
    path.wrong = path.wrong || Has(text, "NET/IB : Using ");
    const trace::NcclWriter* writer = store.nccl_writers.Find(static_cast<uint32_t>(row));
    if (Has(text, "NET/Socket : Using ")) {
      if (!network) network = row;
      if (writer != nullptr) hosts.HasAddress(Hosts::Of(*writer), text);
    }
    const auto connection = Has(text, " via ") ? ReadConnection(text) : std::nullopt;
    if (connection && writer != nullptr) hosts.Speaks(Hosts::Of(*writer), connection->writer());
    if (!socket) continue;
    if (!channel) channel = row;
    if (connection) sockets.push_back(*connection);
  }
  if (!channel) return std::nullopt;
  path.channel = *channel;
  path.network = network.value_or(*channel);
  path.wrong = path.wrong || std::any_of(sockets.begin(), sockets.end(),
                                         [&](const Connection& c) { return hosts.Same(c.from, c.to); });
  return path;
}

using Stretches = std::vector<std::pair<Nanos, Nanos>>;

/// In order, without overlap.
Stretches Union(Stretches parts) {
  std::sort(parts.begin(), parts.end());
  Stretches out;
  for (const auto& [begin, end] : parts) {
    if (!out.empty() && begin <= out.back().second)
      out.back().second = std::max(out.back().second, end);
    else if (end > begin)
      out.emplace_back(begin, end);
  }
  return out;
}

/// What lies in both of two unions.
Stretches Common(const Stretches& a, const Stretches& b) {
  Stretches out;
  for (size_t i = 0, k = 0; i < a.size() && k < b.size(); a[i].second < b[k].second ? ++i : ++k) {
    const Nanos begin = std::max(a[i].first, b[k].first);
    const Nanos end = std::min(a[i].second, b[k].second);
    if (begin < end) out.emplace_back(begin, end);
  }
  return out;
}

Nanos Sum(const Stretches& parts) {
  Nanos sum = 0;
  for (const auto& [begin, end] : parts) sum += end - begin;
  return sum;
}

/// One process: its steps, and how long in them its device did nothing but collectives that all ranks had entered.
struct Share {
  Stretches steps;
  Stretches moving;
  Stretches computing;
  Nanos whole = 0;
  Nanos moved = 0;

  double part() const { return static_cast<double>(moved) / static_cast<double>(whole); }
};

/// By process. Only of those that use a device and take part in collectives. Cost: O(spans log spans).
std::map<trace::ProcessRow, Share> Shares(const Scene& scene) {
  std::map<trace::ProcessRow, Share> shares;
  std::set<uint32_t> transfers;
  for (const trace::Collective& collective : scene.trees.collectives) {
    for (const auto& member : collective.members) {
      if (member.span.valid()) transfers.insert(member.span.value());
      if (collective.point_to_point || collective.inferred || collective.transfer <= 0) continue;
      shares[member.process].moving.emplace_back(member.end - collective.transfer, member.end);
    }
  }
  for (const trace::Step& step : scene.trees.steps) {
    const auto share = shares.find(step.process);
    if (share == shares.end()) continue;
    share->second.steps.emplace_back(step.begin, step.end);
    share->second.whole += step.duration();
  }
  std::erase_if(shares, [&](const auto& entry) {
    return entry.second.steps.size() < kFewestSteps || entry.second.whole <= 0 || !UsesDevice(scene, entry.first);
  });
  const trace::Store& store = scene.store;
  for (const trace::Track& track : store.tracks) {
    const auto share = shares.find(track.process);
    if (share == shares.end()) continue;
    for (uint32_t span = track.first_span; span < track.first_span + track.span_count; ++span) {
      if (store.kind(span) != trace::SpanKind::kKernel || transfers.count(span) > 0) continue;
      share->second.computing.emplace_back(store.spans.begin[span],
                                           store.spans.begin[span] + store.spans.duration[span]);
    }
  }
  for (auto& [process, share] : shares) {
    const Stretches moving = Common(Union(share.moving), Union(share.steps));
    share.moved = Sum(moving) - Sum(Common(moving, Union(std::move(share.computing))));
  }
  return shares;
}

}  // namespace

std::vector<Finding> FindNetPath(const Scene& scene) {
  const auto path = FindSocketPath(scene.store);
  if (!path) return {};
  const auto shares = Shares(scene);
  if (shares.empty()) return {};
  std::vector<double> parts;
  for (const auto& [process, share] : shares) parts.push_back(share.part());
  const double part = ml::Quantile(parts, 0.5);
  if (part < kMost) return {};
  const auto most = std::max_element(shares.begin(), shares.end(),
                                     [](const auto& a, const auto& b) { return a.second.moved < b.second.moved; });
  Finding finding;
  finding.fault = FaultClass::kNetPathWrong;
  finding.view = "vertical";
  finding.culprit.layer = "network";
  finding.culprit.log_record = Shorten(FirstLine(scene.store.logs[path->network].message), 240);
  // Hosts that have no faster network are common.
  finding.false_alarm_probability = path->wrong ? kFalseAlarm : kMaybe;
  finding.score = ScoreOf(finding.false_alarm_probability);
  finding.alternatives = {{FaultClass::kNetLinkFault, 0.2}, {FaultClass::kNotAFault, 0.2}};
  finding.cost = most->second.moved;
  const auto& steps = scene.trees.steps;
  for (uint32_t s = 0; s < steps.size(); ++s) {  // all ranks take the same ones: of one, the worst hit
    if (steps[s].process != most->first) continue;
    finding.steps.push_back({.row = trace::StepRow(s),
                             .rank = steps[s].rank,
                             .index = steps[s].index,
                             .name = steps[s].name,
                             .begin = steps[s].begin,
                             .end = steps[s].end,
                             .score = part});
    finding.onset = finding.onset == trace::kNoTime ? steps[s].begin : std::min(finding.onset, steps[s].begin);
    finding.end = std::max(finding.end, steps[s].end);
  }
  const std::string network = AddEvidence(finding, scene.store, path->network);
  const std::string channel = AddEvidence(finding, scene.store, path->channel);
  finding.explanation = fmt::format(
      "NCCL moves data between ranks over TCP sockets {}{}, and for {:.0f} % of the steps' time devices do "
      "nothing but collectives that all ranks have entered. If these hosts have a faster network (InfiniBand, RoCE) or "
      "links between their GPUs, the "
      "job does not use it: a driver, a device or a right is missing in the container, or a setting chooses the wrong "
      "interface.",
      network, channel == network ? "" : channel, 100 * part);
  return {finding};
}

}  // namespace teller::locate
