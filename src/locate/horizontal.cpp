#include <algorithm>
#include <cmath>
#include <map>

#include "locate/hypothesis.hpp"
#include "ml/robust.hpp"

namespace teller::locate {

namespace {

constexpr double kMatters = 0.8;        // share of a step that transfers must have gained
constexpr double kTransferRatio = 4.0;  // against the low mode of equal steps; threads of a busy host alone reach 3
constexpr size_t kFewestSteps = 2;
constexpr size_t kFewestCollectives = 3;
constexpr double kMostlyLate = 0.7;     // a late rank is last in most of the collectives that cost something

/// Collectives that took long after everyone had arrived, on all ranks of a step.
void SearchTransfers(const Scene& scene, std::vector<Hypothesis>& out) {
  struct Hit {
    Nanos lost = 0;
    uint32_t step = 0;
  };
  std::map<uint32_t, std::vector<Hit>> hits;  // process -> hits
  std::map<uint32_t, size_t> judged;
  for (uint32_t s = 0; s < scene.profiles.size(); ++s) {
    const StepProfile& p = scene.profiles[s];
    const StepNormal& n = scene.normals[s];
    if (!n.judged) continue;
    const uint32_t process = scene.trees.steps[s].process.value();
    ++judged[process];
    const Nanos lost = p.comm_transfer - n.expected_transfer;
    const auto step_cost = static_cast<double>(n.expected_own + n.expected_transfer);
    if (static_cast<double>(lost) < kMatters * step_cost) continue;
    if (static_cast<double>(p.comm_transfer) < kTransferRatio * static_cast<double>(n.expected_transfer)) continue;
    // The ranks' own time must be as usual: a starved process also moves its data slowly.
    if (static_cast<double>(p.own()) > 2.0 * static_cast<double>(n.expected_own)) continue;
    hits[process].push_back({lost, s});
  }
  std::vector<std::pair<uint32_t, std::vector<Hit>>> ranks;
  for (auto& [process, list] : hits) {
    if (list.size() >= kFewestSteps) ranks.emplace_back(process, std::move(list));
  }
  if (ranks.size() < 2) return;  // a link has two ends
  Hypothesis h;
  h.trouble = Trouble::kSlowTransfer;
  Nanos most = -1;
  for (const auto& [process, list] : ranks) {
    Nanos lost = 0;
    for (const Hit& hit : list) lost += hit.lost;
    if (lost > most) {
      most = lost;
      h.process = trace::ProcessRow(process);
    }
  }
  h.rank = scene.store.processes[h.process.value()].rank;
  for (const auto& [process, list] : ranks) {
    if (trace::ProcessRow(process) != h.process) continue;
    for (const Hit& hit : list) {
      const trace::Step& step = scene.trees.steps[hit.step];
      h.steps.push_back(hit.step);
      h.lost_in.push_back(hit.lost);
      h.lost += hit.lost;
      if (h.onset == trace::kNoTime) h.onset = step.begin;
      h.end = step.end;
    }
  }
  Nanos longest = 0;
  for (uint32_t c = 0; c < scene.trees.collectives.size(); ++c) {
    const auto& collective = scene.trees.collectives[c];
    const Nanos at = collective.members.front().arrival;
    if (at < h.onset || at > h.end) continue;
    h.collectives.push_back(c);
    if (collective.transfer > longest) {
      longest = collective.transfer;
      h.worst = collective.transfer;
      h.worst_begin = at;
      for (const auto& member : collective.members) {
        if (member.process == h.process) h.span = member.span.value();
      }
    }
  }
  const StepNormal& n = scene.normals[h.steps.front()];
  h.usual = n.expected_transfer;
  h.false_alarm = std::clamp(std::pow(0.05, static_cast<double>(h.steps.size()) - 0.5), 1e-9, 1.0);
  out.push_back(std::move(h));
}

/// One rank last in most collectives that cost the others time; used where steps cannot say it (few steps, GPU lanes).
void SearchLateRank(const Scene& scene, std::vector<Hypothesis>& out) {
  std::map<int, std::vector<uint32_t>> late;
  std::map<int, Nanos> cost;
  size_t costly = 0;
  Nanos begin = trace::kNoTime;
  Nanos end = trace::kNoTime;
  Nanos waited = 0;
  for (uint32_t c = 0; c < scene.trees.collectives.size(); ++c) {
    const auto& collective = scene.trees.collectives[c];
    for (const auto& member : collective.members) {
      if (begin == trace::kNoTime || member.arrival < begin) begin = member.arrival;
      if (end == trace::kNoTime || member.end > end) end = member.end;
    }
    if (collective.members.size() < 3) continue;  // of two, one is always last
    // Ends that disagree by more than the lateness say that the clocks do, not the ranks.
    if (collective.late_by < 2 * scene.trees.clock_error || collective.late_by < 200 * base::kMicro) continue;
    ++costly;
    late[collective.late_rank].push_back(c);
    cost[collective.late_rank] += collective.late_by;
    waited += collective.late_by;
  }
  if (end == trace::kNoTime || waited * 20 < end - begin) return;  // under 5 % of the time: nobody's fault
  for (const auto& [rank, list] : late) {
    if (list.size() < kFewestCollectives || static_cast<double>(list.size()) < kMostlyLate * static_cast<double>(costly)) continue;
    if (static_cast<double>(cost[rank]) < kMostlyLate * static_cast<double>(waited)) continue;
    Hypothesis h;
    h.trouble = Trouble::kLateRank;
    h.rank = rank;
    h.collectives = list;
    h.lost = cost[rank];
    Nanos worst = -1;
    for (const uint32_t c : list) {
      const auto& collective = scene.trees.collectives[c];
      for (const auto& member : collective.members) {
        if (member.rank != rank) continue;
        h.process = member.process;
        if (h.onset == trace::kNoTime || member.arrival < h.onset) h.onset = member.arrival;
        h.end = std::max(h.end == trace::kNoTime ? member.end : h.end, member.end);
        if (collective.late_by > worst) {
          worst = collective.late_by;
          h.worst = collective.late_by;
          h.worst_begin = member.arrival;
          h.span = member.span.value();
        }
      }
    }
    // By chance each rank is last equally often.
    const auto ranks = static_cast<double>(scene.trees.collectives[list.front()].members.size());
    h.false_alarm = std::clamp(ranks * std::pow(1.0 / ranks, static_cast<double>(list.size()) * kMostlyLate), 1e-9, 1.0);
    out.push_back(std::move(h));
  }
}

}  // namespace

std::vector<Hypothesis> SearchHorizontal(const Scene& scene) {
  std::vector<Hypothesis> out;
  SearchTransfers(scene, out);
  SearchLateRank(scene, out);
  return out;
}

}  // namespace teller::locate
