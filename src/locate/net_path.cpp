#include "locate/net_path.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "locate/log_facts.hpp"
#include "locate/log_text.hpp"
#include "locate/resources.hpp"
#include "ml/robust.hpp"

namespace teller::locate {

namespace {

using trace::FaultClass;
using trace::Finding;
using trace::Nanos;

constexpr double kMost = 0.4;  // of the steps' time: more than computing leaves room for elsewhere
constexpr size_t kFewestSteps = 5;
constexpr double kFalseAlarm = 8e-3;  // a cluster may have no faster network

/// Lines that say that data of the ranks goes over TCP.
struct SocketLines {
  size_t channel = 0;  ///< a connection between two ranks
  size_t network = 0;  ///< the network and its interface; else the same line
};

/// That NCCL chooses a network does not tell that data goes there: it also does so where all ranks are on one host and
/// exchange data without it. A connection tells. Nothing where some use a faster network: then who falls back is found
/// by contrast.
std::optional<SocketLines> FindSocketLines(const trace::Store& store) {
  std::optional<size_t> channel;
  std::optional<size_t> network;
  for (size_t row = 0; row < store.logs.size(); ++row) {
    const trace::LogRecord& record = store.logs[row];
    if (record.source != trace::LogSource::kNccl) continue;
    const std::string_view text = FirstLine(record.message);
    const bool socket = Has(text, " via NET/Socket");
    if (!socket && Has(text, " via NET/")) return std::nullopt;
    if (socket && !channel) channel = row;
    if (!network && Has(text, "NET/Socket : Using ")) network = row;
  }
  if (!channel) return std::nullopt;
  return SocketLines{*channel, network.value_or(*channel)};
}

/// Time of one process's steps, and how long its device was in collectives that all ranks had entered.
struct Share {
  Nanos steps = 0;
  Nanos transfer = 0;
  size_t count = 0;  ///< of steps

  double part() const { return static_cast<double>(transfer) / static_cast<double>(steps); }
};

/// By process. Only of those that use a device and take part in collectives.
std::map<trace::ProcessRow, Share> Shares(const Scene& scene) {
  std::map<trace::ProcessRow, Share> shares;
  for (const trace::Collective& collective : scene.trees.collectives) {
    if (collective.point_to_point || collective.inferred) continue;
    for (const auto& member : collective.members)
      shares[member.process].transfer += std::max<Nanos>(0, collective.transfer);
  }
  for (const trace::Step& step : scene.trees.steps) {
    const auto share = shares.find(step.process);
    if (share == shares.end()) continue;
    share->second.steps += step.duration();
    ++share->second.count;
  }
  std::erase_if(shares, [&](const auto& entry) {
    return entry.second.count < kFewestSteps || entry.second.steps <= 0 || !UsesDevice(scene, entry.first);
  });
  return shares;
}

}  // namespace

std::vector<Finding> FindNetPath(const Scene& scene) {
  const auto lines = FindSocketLines(scene.store);
  if (!lines) return {};
  const auto shares = Shares(scene);
  if (shares.empty()) return {};
  std::vector<double> parts;
  for (const auto& [process, share] : shares) parts.push_back(share.part());
  const double part = std::min(1.0, ml::Quantile(parts, 0.5));
  if (part < kMost) return {};
  Finding finding;
  finding.fault = FaultClass::kNetPathWrong;
  finding.view = "vertical";
  finding.culprit.layer = "network";
  finding.culprit.log_record = Shorten(FirstLine(scene.store.logs[lines->network].message), 240);
  finding.false_alarm_probability = kFalseAlarm;
  finding.score = ScoreOf(kFalseAlarm);
  finding.alternatives = {{FaultClass::kNetLinkFault, 0.2}, {FaultClass::kNotAFault, 0.2}};
  const auto& steps = scene.trees.steps;
  for (uint32_t s = 0; s < steps.size(); ++s) {
    if (shares.count(steps[s].process) == 0) continue;
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
  for (const auto& [process, share] : shares) finding.cost = std::max(finding.cost, share.transfer);
  const std::string network = AddEvidence(finding, scene.store, lines->network);
  const std::string channel = AddEvidence(finding, scene.store, lines->channel);
  finding.explanation = fmt::format(
      "NCCL moves data between ranks over TCP sockets {}{}, and collectives that all ranks have entered take {:.0f} % "
      "of the steps' "
      "time. If these hosts have a faster network (InfiniBand, RoCE) or links between their GPUs, the job does not use "
      "it: a driver, a device or a right is missing in the container, or a setting chooses the wrong interface.",
      network, channel == network ? "" : channel, 100 * part);
  return {finding};
}

}  // namespace teller::locate
