#include "retime/syncs.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "retime/typical.hpp"

namespace teller::retime {

namespace {

using base::kMicro;
using trace::Nanos;
using trace::SpanRow;

/// Clocks of host and device agree to about this.
constexpr Nanos kClockSlack = 5 * kMicro;
constexpr Nanos kUsualCall = 2 * kMicro;
/// A call is taken to have waited for work that ended before it returned if no more time lies between than this, or
/// than a quarter of the call.
constexpr Nanos kLongestReturn = 50 * kMicro;

/// True for calls that return only when work of the device is done.
bool Synchronizes(std::string_view name) {
  return name.find("Synchronize") != std::string_view::npos || name == "cudaFree" || name == "hipFree";
}

/// A call and the work that it waited for.
struct Waiting {
  SpanRow call;
  SpanRow work;
};

/// What calls of one process and name take.
struct CallTimes {
  std::vector<Nanos> alone;      ///< durations of calls that waited for nothing
  std::vector<Nanos> returning;  ///< from the end of the work to the end of the call
  Nanos usual_alone = 0;
  Nanos usual_return = 0;
};

struct Launched {
  Nanos end = 0;
  SpanRow work;
  Nanos launched = 0;
};

class SyncBuilder {
 public:
  SyncBuilder(const trace::Store& store, const trace::Trees& trees, Graph& graph)
      : store_(store), trees_(trees), graph_(graph), spans_(store.spans) {}

  void Build() {
    for (const auto& link : trees_.launches) {
      by_process_[ProcessOf(link.work)].push_back(
          {spans_.end(link.work.value()), link.work, spans_.begin[link.launch.value()]});
    }
    for (auto& [process, works] : by_process_) {
      std::sort(works.begin(), works.end(),
                [](const auto& a, const auto& b) { return std::pair(a.end, a.work) < std::pair(b.end, b.work); });
    }
    FindBlockingCopies();
    FindSyncs();
    for (auto& [key, times] : times_) {
      times.usual_alone = Median(times.alone, kUsualCall);
      times.usual_return = TrimmedMean(times.returning, 0);
    }
    for (const Waiting& waiting : waiting_) Place(waiting);
  }

 private:
  uint32_t ProcessOf(SpanRow row) const { return store_.track_of(row.value()).process.value(); }
  Nanos Begin(SpanRow row) const { return spans_.begin[row.value()]; }
  Nanos End(SpanRow row) const { return spans_.end(row.value()); }

  CallTimes& TimesOf(SpanRow call) {
    return times_[uint64_t{ProcessOf(call)} << 32 | spans_.name[call.value()].value()];
  }

  void Found(SpanRow call, SpanRow work) {
    TimesOf(call).returning.push_back(End(call) - End(work));
    waiting_.push_back({call, work});
  }

  /// Copies whose call was still running when they ended.
  void FindBlockingCopies() {
    for (const auto& link : trees_.launches) {
      if (store_.kind(link.work.value()) != trace::SpanKind::kCopy) continue;
      if (End(link.work) > End(link.launch) + kClockSlack) {
        if (store_.name(link.launch.value()).find("Memcpy") != std::string_view::npos) {
          TimesOf(link.launch).alone.push_back(spans_.duration[link.launch.value()]);
        }
        continue;
      }
      Found(link.launch, link.work);
    }
  }

  void FindSyncs() {
    for (uint32_t row = 0; row < spans_.size(); ++row) {
      if (!trace::IsApiCall(store_.kind(row)) || !Synchronizes(store_.name(row))) continue;
      const SpanRow call(row);
      if (graph_.position[EndOf(call)] == Graph::kNoPosition) continue;
      if (InsideAnother(call)) continue;
      const SpanRow work = LastAwaited(call);
      if (work.valid()) {
        Found(call, work);
      } else {
        TimesOf(call).alone.push_back(spans_.duration[row]);
      }
    }
  }

  /// A driver call below a runtime call that synchronizes as well: the outer one counts.
  bool InsideAnother(SpanRow call) const {
    const SpanRow parent = spans_.parent[call.value()];
    return parent.valid() && trace::IsApiCall(store_.kind(parent.value())) && Synchronizes(store_.name(parent.value()));
  }

  SpanRow LastAwaited(SpanRow call) const {
    const auto found = by_process_.find(ProcessOf(call));
    if (found == by_process_.end()) return {};
    const auto& works = found->second;
    const Nanos longest_return = std::max(kLongestReturn, spans_.duration[call.value()] / 4);
    auto it = std::upper_bound(works.begin(), works.end(), End(call) + kClockSlack,
                               [](Nanos end, const Launched& work) { return end < work.end; });
    while (it != works.begin()) {
      --it;
      if (it->end <= Begin(call) || End(call) - it->end > longest_return) break;
      if (it->launched <= Begin(call)) return it->work;
    }
    return {};
  }

  void Place(const Waiting& waiting) {
    const uint32_t end = graph_.position[EndOf(waiting.call)];
    const uint32_t begin = graph_.position[BeginOf(waiting.call)];
    if (end == Graph::kNoPosition || graph_.position[BeginOf(waiting.work)] == Graph::kNoPosition) return;
    const CallTimes& times = TimesOf(waiting.call);
    // Points inside the call (of driver calls below it) are part of its wait.
    for (uint32_t at = begin + 1; at < end; ++at) graph_.own[at] = 0;
    graph_.own[end] = std::min(times.usual_alone, spans_.duration[waiting.call.value()]);
    graph_.waits.push_back({end, EndOf(waiting.work), times.usual_return, DependencyKind::kSync});
  }

  const trace::Store& store_;
  const trace::Trees& trees_;
  Graph& graph_;
  const trace::Spans& spans_;
  std::unordered_map<uint32_t, std::vector<Launched>> by_process_;  ///< order: by end
  std::unordered_map<uint64_t, CallTimes> times_;
  std::vector<Waiting> waiting_;
};

}  // namespace

void AddSyncs(const trace::Store& store, const trace::Trees& trees, Graph& graph) {
  SyncBuilder(store, trees, graph).Build();
}

}  // namespace teller::retime
