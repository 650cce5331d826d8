#include "locate/missing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace teller::locate {

namespace {

/// True when the traces show operators or kernels; an idle process's file does not.
bool HoldsWork(const trace::Store& store) {
  for (size_t row = 0; row < store.spans.size(); ++row) {
    if (store.kind(row) == trace::SpanKind::kOp || store.kind(row) == trace::SpanKind::kKernel) return true;
  }
  return false;
}

/// True when ranks spend much of their steps in collectives, so that a rank without a trace may be why.
bool WaitsMatter(const trace::Trees& trees) {
  double inside = 0;
  double all = 0;
  for (const auto& collective : trees.collectives) {
    for (const auto& member : collective.members) inside += static_cast<double>(member.end - member.arrival);
  }
  for (const trace::Step& step : trees.steps) all += static_cast<double>(step.duration());
  return inside > 0.5 * all;
}

/// True when some steps take much longer than others of their kind and size, for whatever reason.
bool SomeStepsAreLong(const trace::Trees& trees) {
  constexpr size_t kFewest = 4;
  constexpr Nanos kLonger = 5 * base::kMilli;
  std::map<std::tuple<uint32_t, trace::StepKind, int64_t>, std::vector<Nanos>> groups;
  for (const trace::Step& step : trees.steps) {
    // A prompt's length explains a step; what the profiler touched says nothing.
    if (step.observer || step.kind == trace::StepKind::kPrefill || step.kind == trace::StepKind::kMixed) continue;
    groups[{step.process.value(), step.kind, step.new_tokens}].push_back(step.duration());
  }
  return std::any_of(groups.begin(), groups.end(), [&](auto& entry) {
    std::vector<Nanos>& durations = entry.second;
    if (durations.size() < kFewest) return false;
    std::sort(durations.begin(), durations.end());
    const Nanos usual = durations[durations.size() / 2];
    return durations.back() > 2 * usual && durations.back() - usual > kLonger;
  });
}

/// Steps of which nothing tells how much they compute, some of them much longer than the others: a fault or more work.
/// The share of them that is long; 0 where they hardly differ or sizes are known.
double LongWithoutSizes(const trace::Trees& trees) {
  constexpr size_t kFewest = 6;
  constexpr Nanos kLonger = 3;  // times the usual
  constexpr Nanos kMost = 5;    // of the time, one part in so many: less is a busy machine
  std::map<uint32_t, std::vector<Nanos>> processes;
  for (const trace::Step& step : trees.steps) {
    if (step.new_tokens >= 0 || step.work >= 0) return 0;
    if (!step.observer) processes[step.process.value()].push_back(std::max<Nanos>(0, step.duration()));
  }
  double share = 0;
  for (auto& [process, durations] : processes) {
    if (durations.size() < kFewest) continue;
    std::sort(durations.begin(), durations.end());
    const Nanos usual = durations[durations.size() / 3];
    const auto first = std::upper_bound(durations.begin(), durations.end(), kLonger * usual);
    Nanos all = 0;
    for (const Nanos d : durations) all += d / kMost;
    Nanos excess = 0;
    for (auto it = first; it != durations.end(); ++it) excess += *it - usual;
    if (durations.end() - first < 2 || excess < all) continue;
    share = std::max(share, static_cast<double>(durations.end() - first) / static_cast<double>(durations.size()));
  }
  return share;
}

}  // namespace

std::vector<std::string> WhatIsMissing(const trace::Store& store, const trace::Trees& trees,
                                 const std::vector<StepNormal>& normals) {
  std::vector<std::string> missing;
  size_t judged = 0;
  for (const auto& normal : normals) judged += normal.judged;
  // Request spans alone tell that a request was slow, not why.
  const bool traced = std::any_of(store.spans.category.begin(), store.spans.category.end(), [&](uint8_t category) {
    return store.categories[category].kind != trace::SpanKind::kService;
  });
  if (!traced && store.logs.empty() && store.comm_records.empty() && store.comm_perf.empty()) {
    missing.push_back(std::string(store.spans.size() > 0 ? "the inputs hold request spans and counters only"
                                                         : "the inputs hold no spans and no log records") +
                      ": capture a torch.profiler trace of 20 or more steps, or the service log");
  } else if (trees.steps.empty() && HoldsWork(store)) {
    missing.push_back(
        "no steps were recognized in the traces: capture with the engine's step annotations on, over 20 or more steps");
  } else if (!trees.steps.empty() && judged == 0) {
    missing.push_back("too few steps of a similar shape to say what is normal: capture 20 or more steps");
  } else if (const double share = LongWithoutSizes(trees); share > 0) {
    missing.push_back(
        fmt::format("{:.0f} % of the steps take more than three times as long as the others, and nothing in the traces "
                    "says how much they compute: capture with record_shapes=True or the engine's step annotations",
                    100 * share));
  }
  const bool known_line = std::any_of(store.logs.begin(), store.logs.end(), [](const trace::LogRecord& record) {
    return record.source != trace::LogSource::kUnknown && record.source != trace::LogSource::kProgramOutput;
  });
  if (missing.empty() && !traced && store.comm_records.empty() && store.comm_perf.empty() && !known_line) {
    missing.push_back("no log line is in a known form: give the service's own log");
  }
  std::set<int> ranks;
  int world = 0;
  for (const auto& process : store.processes) {
    if (process.rank.has_value()) ranks.insert(*process.rank);
    world = std::max(world, process.world_size.value_or(0));
  }
  if (store.spans.size() > 0 && !ranks.empty() && world > static_cast<int>(ranks.size()) &&
      (!missing.empty() || WaitsMatter(trees) || SomeStepsAreLong(trees))) {
    missing.push_back(fmt::format("traces of {} of {} ranks: capture all ranks of the same steps to see who is late",
                                  ranks.size(), world));
  }
  return missing;
}

}  // namespace teller::locate
