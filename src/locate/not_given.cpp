#include "locate/not_given.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace teller::locate {

namespace {

constexpr int kLargestWorld = 100'000;  // beyond it a world size is not believed

/// Ranks that have spans, and how many there should be.
std::pair<size_t, int> RanksTraced(const trace::Store& store) {
  std::set<int> ranks;
  int world = 0;
  for (const trace::Track& track : store.tracks) {
    const trace::Process& process = store.processes[track.process.value()];
    if (track.span_count > 0 && process.rank.has_value()) ranks.insert(*process.rank);
    world = std::max(world, process.world_size.value_or(0));
  }
  return {ranks.size(), world > kLargestWorld ? 0 : world};
}

bool HasCounters(const trace::Store& store, bool of_host) {
  return std::any_of(store.counter_series.begin(), store.counter_series.end(), [&](const trace::CounterSeries& series) {
    return !series.process.valid() && series.file.valid() &&
           (store.files[series.file.value()].kind == "host-counters") == of_host;
  });
}

}  // namespace

std::vector<trace::NotGiven> WhatWasNotGiven(const trace::Store& store, const trace::Trees& trees) {
  std::vector<trace::NotGiven> out;
  const bool traces =
      !trees.steps.empty() ||
      std::any_of(store.categories.begin(), store.categories.end(), [](const trace::Category& category) {
        return category.kind == trace::SpanKind::kOp || category.kind == trace::SpanKind::kKernel;
      });
  if (!traces) {
    out.push_back(
        {"traces (torch.profiler, Nsight Systems)",
         "no operator, kernel or step can be examined, so a slow one is not found and no rank is blamed for it"});
  } else if (const auto [traced, world] = RanksTraced(store); traced > 0 && world > static_cast<int>(traced)) {
    out.push_back({fmt::format("traces of {} of {} ranks", world - static_cast<int>(traced), world),
                   "who is late among them cannot be told, and what they wait for is not seen"});
  }
  if (store.logs.empty()) {
    out.push_back(
        {"service logs", "errors, deaths and rejected requests that the engine only writes down are not found"});
  }
  if (trees.requests.empty()) {
    out.push_back({"request spans (OTLP) or logs with request ids",
                   "time before the scheduler and after the last step - tokenizer, event loop, queue, detokenizer - is "
                   "not seen"});
  }
  if (!HasCounters(store, false)) {
    out.push_back({"engine counters (/metrics)",
                   "preemptions, cache use and queue lengths are known only as far as logs tell them"});
  }
  if (!HasCounters(store, true)) {
    out.push_back(
        {"host counters", "whether a process was kept from its processor can only be inferred from its spans"});
  }
  return out;
}

}  // namespace teller::locate
