#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/nanos.hpp"
#include "tree/clock.hpp"

namespace teller::tree {

namespace {

using base::Minus;
using trace::Nanos;
using trace::ProcessClock;

/// The clock that each process's times must be put right by; null where it needs nothing, or nobody knows.
class Clocks {
 public:
  Clocks(const trace::Store& store, const std::vector<ProcessClock>& clocks) : store_(store), clocks_(clocks) {
    of_.resize(store.processes.size(), nullptr);
    for (uint32_t p = 0; p < of_.size(); ++p) {
      if (!store.processes[p].service) of_[p] = Corrected(p);
    }
    for (uint32_t p = 0; p < of_.size(); ++p) {
      if (store.processes[p].service) of_[p] = OfService(store.processes[p]);
    }
  }

  const ProcessClock* Of(trace::ProcessRow process) const {
    return process.valid() && process.value() < of_.size() ? of_[process.value()] : nullptr;
  }

  /// Of the service process of a file that has this name. Several must agree.
  const ProcessClock* Of(trace::FileRow file, const std::string& name) const {
    const ProcessClock* found = nullptr;
    bool any = false;
    for (uint32_t p = 0; p < of_.size(); ++p) {
      const trace::Process& process = store_.processes[p];
      if (!process.service || process.file != file || process.name != name) continue;
      if (any && found != of_[p]) return nullptr;
      found = of_[p];
      any = true;
    }
    return found;
  }

 private:
  const ProcessClock* Corrected(uint32_t process) const {
    return process < clocks_.size() && clocks_[process].corrected ? &clocks_[process] : nullptr;
  }

  /// What reports its requests may be a traced process itself (its process id, its name), or run beside some: then it
  /// has their host's clock, if these have one.
  const ProcessClock* OfService(const trace::Process& service) const {
    const auto elsewhere = [&](const trace::Process& traced) {
      return !service.host.empty() && !traced.host.empty() && service.host != traced.host;
    };
    for (const auto part : {&trace::Process::pid, &trace::Process::name}) {
      if ((service.*part).empty()) continue;
      size_t found = 0;
      uint32_t row = 0;
      for (uint32_t p = 0; p < of_.size(); ++p) {
        const trace::Process& traced = store_.processes[p];
        if (traced.service || traced.*part != service.*part || elsewhere(traced)) continue;
        ++found;
        row = p;
      }
      if (found == 1) return of_[row];
    }
    if (service.host.empty()) return nullptr;
    const ProcessClock* shared = nullptr;
    for (uint32_t p = 0; p < of_.size(); ++p) {
      const trace::Process& traced = store_.processes[p];
      if (traced.service || traced.host != service.host) continue;
      if (of_[p] == nullptr || (shared != nullptr && shared->domain != of_[p]->domain)) return nullptr;
      if (shared == nullptr) shared = of_[p];
    }
    return shared;
  }

  const trace::Store& store_;
  const std::vector<ProcessClock>& clocks_;
  std::vector<const ProcessClock*> of_;
};

/// Requests of spans; what logs state of requests moves with its line, which align does.
void ShiftRequests(trace::Store& store, const Clocks& clocks) {
  std::map<std::pair<trace::FileRow, std::string>, const ProcessClock*> known;
  for (trace::RequestRecord& record : store.request_records) {
    if (record.source != trace::RequestSource::kSpan) continue;
    const auto [it, fresh] = known.try_emplace({record.file, record.process}, nullptr);
    if (fresh) it->second = clocks.Of(record.file, record.process);
    if (it->second == nullptr) continue;
    for (const auto time : trace::kRequestTimes) record.*time = it->second->ToReference(record.*time);
  }
}

}  // namespace

void ShiftToReference(trace::Store& store, const std::vector<ProcessClock>& clocks) {
  const Clocks known(store, clocks);
  const auto clock_of = [&](trace::ProcessRow process) { return known.Of(process); };
  for (const trace::Track& track : store.tracks) {
    const ProcessClock* clock = clock_of(track.process);
    if (clock == nullptr) continue;
    for (uint32_t row = track.first_span; row < track.first_span + track.span_count; ++row) {
      const Nanos end = clock->ToReference(store.spans.end(row));
      store.spans.begin[row] = clock->ToReference(store.spans.begin[row]);
      store.spans.duration[row] = std::max<Nanos>(0, Minus(end, store.spans.begin[row]));
    }
  }
  const auto shift = [](const ProcessClock* clock, Nanos& at) {
    if (clock != nullptr) at = clock->ToReference(at);
  };
  for (auto& instant : store.instants) shift(clock_of(store.tracks[instant.track.value()].process), instant.at);
  for (auto& flow : store.flows) shift(clock_of(store.tracks[flow.track.value()].process), flow.at);
  for (auto& sample : store.counters) shift(clock_of(store.counter_series[sample.series.value()].process), sample.at);
  std::map<int, const ProcessClock*> by_rank;
  for (uint32_t p = 0; p < store.processes.size(); ++p) {
    if (!store.processes[p].rank.has_value() || store.processes[p].service) continue;
    const auto [it, fresh] = by_rank.try_emplace(*store.processes[p].rank, clock_of(trace::ProcessRow(p)));
    if (!fresh) it->second = nullptr;  // two replicas: which one wrote the dump is not known
  }
  for (auto& record : store.comm_records) {
    const auto found = by_rank.find(record.rank);
    if (found == by_rank.end()) continue;
    for (Nanos* at : {&record.created, &record.started, &record.completed}) shift(found->second, *at);
  }
  ShiftRequests(store, known);
}

}  // namespace teller::tree
