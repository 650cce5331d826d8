#include "locate/death.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <vector>

namespace teller::locate {

namespace {

using trace::Finding;

constexpr int kLargestWorld = 100'000;                // a hostile world_size must not be counted through
constexpr trace::Nanos kLogClock = 2 * base::kMilli;  // stamps of logs are cut off to milliseconds

/// A death whose rank no log names: the one rank of the job that left no trace, where all others did.
void NameDeadRank(const trace::Store& store, Finding& finding) {
  if (finding.culprit.rank.has_value()) return;
  std::set<int> traced;
  std::set<int> all;
  for (const auto& process : store.processes) {
    if (process.rank.has_value()) traced.insert(*process.rank);
    for (int rank = 0; rank < std::min(process.world_size.value_or(0), kLargestWorld); ++rank) all.insert(rank);
  }
  for (const auto& file : store.files) {
    if (file.kind == "log" && file.rank.has_value()) all.insert(*file.rank);
  }
  std::vector<int> missing;
  std::set_difference(all.begin(), all.end(), traced.begin(), traced.end(), std::back_inserter(missing));
  if (traced.empty() || missing.size() != 1) return;
  finding.culprit.rank = missing.front();
  if (finding.culprit.process.empty()) finding.culprit.process = "rank" + std::to_string(missing.front());
  finding.explanation += fmt::format(" Rank {} is the only one of {} that left no trace.", missing.front(), all.size());
  finding.score = std::max(finding.score, 0.9);
}

void AddLastSteps(const trace::Trees& trees, Finding& finding) {
  if (!finding.steps.empty() || finding.onset == trace::kNoTime) return;
  const auto& steps = trees.steps;
  for (uint32_t s = 0; s < steps.size(); ++s) {
    const bool last = s + 1 == steps.size() || steps[s + 1].process != steps[s].process;
    if (!last || steps[s].end < finding.onset - kLogClock || steps[s].begin > finding.end + kLogClock) continue;
    trace::AbnormalStep abnormal;
    abnormal.row = trace::StepRow(s);
    abnormal.rank = steps[s].rank;
    abnormal.index = steps[s].index;
    abnormal.name = steps[s].name;
    abnormal.begin = steps[s].begin;
    abnormal.end = steps[s].end;
    abnormal.score = 1;
    finding.steps.push_back(std::move(abnormal));
  }
}

}  // namespace

void CompleteDeath(const trace::Store& store, const trace::Trees& trees, Finding& finding) {
  if (finding.fault != trace::FaultClass::kProcDeath) return;
  NameDeadRank(store, finding);
  AddLastSteps(trees, finding);
}

}  // namespace teller::locate
