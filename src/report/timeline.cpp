#include "report/timeline.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

namespace teller::report {

using base::kNoTime;
using base::Nanos;
using trace::SpanKind;

namespace {

/// The gap before a step is shown up to this many step lengths.
constexpr Nanos kGapLengths = 4;
/// A frame that is nearly all of the frame above it is not drawn.
constexpr double kSameFrame = 0.97;

const trace::Step* FindStep(const engine::Run& run, const trace::AbnormalStep& step) {
  const std::vector<trace::Step>& steps = run.trees.steps;
  if (step.row.valid() && step.row.value() < steps.size()) return &steps[step.row.value()];
  const auto it = std::find_if(steps.begin(), steps.end(), [&](const trace::Step& s) {
    return s.index == step.index && s.rank == step.rank && s.begin == step.begin;
  });
  return it == steps.end() ? nullptr : &*it;
}

/// The longest step that the profiler did not touch, or the longest of all when it touched all.
const trace::Step* LongestStep(const engine::Run& run) {
  const trace::Step* longest = nullptr;
  for (const trace::Step& step : run.trees.steps) {
    if (longest == nullptr ||
        std::pair(!step.observer, step.duration()) > std::pair(!longest->observer, longest->duration())) {
      longest = &step;
    }
  }
  return longest;
}

/// The abnormal step that the first piece of evidence lies in or right before; else the one with the highest score.
const trace::Step* ProvenStep(const engine::Run& run, const trace::Finding& finding) {
  for (const trace::Evidence& evidence : finding.evidence) {
    if (!evidence.span.valid()) continue;
    const uint32_t row = evidence.span.value();
    for (const trace::AbnormalStep& abnormal : finding.steps) {
      const trace::Step* step = FindStep(run, abnormal);
      if (step == nullptr || step->process != run.store.track_of(row).process) continue;
      const Nanos begin = step->begin - std::max<Nanos>(step->gap_before, 0);
      if (run.store.spans.begin[row] >= begin && run.store.spans.begin[row] < step->end) return step;
    }
  }
  return finding.steps.empty() ? nullptr : FindStep(run, finding.steps.front());
}

/// Evidence that lies within one length of the stretch belongs into the picture.
void WidenToEvidence(const engine::Run& run, const trace::Finding& finding, Focus& focus) {
  const Nanos length = focus.end - focus.begin;
  const Nanos from = focus.begin - length;
  const Nanos to = focus.end + length;
  for (const trace::Evidence& evidence : finding.evidence) {
    if (!evidence.span.valid()) continue;
    const Nanos begin = run.store.spans.begin[evidence.span.value()];
    const Nanos end = run.store.spans.end(evidence.span.value());
    if (begin < from || end > to) continue;
    focus.begin = std::min(focus.begin, begin);
    focus.end = std::max(focus.end, end);
  }
}

class Builder {
 public:
  Builder(const engine::Run& run, const trace::Diagnosis& diagnosis, const Focus& focus, const TimelineLimits& limits)
      : store_(run.store), limits_(limits) {
    timeline_.begin = focus.begin;
    timeline_.end = focus.end;
    for (const trace::Finding& finding : diagnosis.findings) {
      for (const trace::Evidence& evidence : finding.evidence) {
        if (evidence.span.valid()) evidence_.insert(evidence.span.value());
      }
    }
    if (focus.step != nullptr) first_process_ = focus.step->process;
  }

  Timeline Build() {
    const Nanos shortest = ShortestDrawn();
    for (uint32_t t = 0; t < store_.tracks.size(); ++t) AddLane(trace::TrackRow(t), shortest);
    KeepBusiestLanes();
    return std::move(timeline_);
  }

 private:
  template <class Visit>
  void ForEachSpan(const trace::Track& track, Visit visit) const {
    const size_t last = track.first_span + track.span_count;
    for (size_t row = track.first_span; row < last && store_.spans.begin[row] < timeline_.end; ++row) {
      if (store_.spans.end(row) > timeline_.begin) visit(static_cast<uint32_t>(row));
    }
  }

  /// Duration below which spans are left out so that the rest is within the limit.
  Nanos ShortestDrawn() const {
    std::vector<Nanos> durations;
    for (const trace::Track& track : store_.tracks) {
      ForEachSpan(track, [&](uint32_t row) { durations.push_back(store_.spans.duration[row]); });
    }
    if (durations.size() <= limits_.spans) return 0;
    const auto nth = durations.begin() + static_cast<std::ptrdiff_t>(limits_.spans);
    std::nth_element(durations.begin(), nth, durations.end(), std::greater<>());
    return *nth + 1;
  }

  void AddLane(trace::TrackRow track, Nanos shortest) {
    TimelineLane lane{.track = track, .rows = 0, .spans = {}};
    std::vector<uint32_t> open;  // drawn spans that have not ended, outermost first
    ForEachSpan(store_.tracks[track.value()], [&](uint32_t row) {
      while (!open.empty() && store_.spans.end(open.back()) <= store_.spans.begin[row]) open.pop_back();
      const bool proof = evidence_.contains(row);
      if (!proof && (IsSameFrame(open, row) || IsBackground(row))) return;
      const bool drawn = proof || (store_.spans.duration[row] >= shortest && open.size() < limits_.rows_per_lane);
      if (!drawn) {
        ++timeline_.hidden_spans;
        return;
      }
      lane.spans.push_back({trace::SpanRow(row), static_cast<uint32_t>(open.size())});
      open.push_back(row);
      lane.rows = std::max(lane.rows, static_cast<uint32_t>(open.size()));
    });
    if (!lane.spans.empty()) timeline_.lanes.push_back(std::move(lane));
  }

  bool IsSameFrame(const std::vector<uint32_t>& open, uint32_t row) const {
    if (open.empty() || store_.kind(row) != SpanKind::kPython || store_.kind(open.back()) != SpanKind::kPython)
      return false;
    return static_cast<double>(store_.spans.duration[row]) >=
           kSameFrame * static_cast<double>(store_.spans.duration[open.back()]);
  }

  /// The recording itself, and what lasts longer than the stretch on both sides, says nothing about it.
  bool IsBackground(uint32_t row) const {
    return store_.kind(row) == SpanKind::kProfiler ||
           (store_.spans.begin[row] < timeline_.begin && store_.spans.end(row) > timeline_.end);
  }

  trace::ProcessRow ProcessOf(const TimelineLane& lane) const { return store_.tracks[lane.track.value()].process; }

  void KeepBusiestLanes() {
    std::map<trace::ProcessRow, std::vector<size_t>> by_process;
    for (size_t i = 0; i < timeline_.lanes.size(); ++i) by_process[ProcessOf(timeline_.lanes[i])].push_back(i);
    std::vector<trace::ProcessRow> order;
    for (const auto& [process, lanes] : by_process) order.push_back(process);
    // The process of the step always stays; the rest by rank.
    const auto key = [&](trace::ProcessRow p) {
      const std::optional<int> rank = store_.processes[p.value()].rank;
      return std::tuple(!rank.has_value(), rank.value_or(0), p);
    };
    std::sort(order.begin(), order.end(), [&](auto a, auto b) {
      return std::pair(a != first_process_, key(a)) < std::pair(b != first_process_, key(b));
    });
    if (order.size() > limits_.processes) order.resize(limits_.processes);
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return key(a) < key(b); });

    std::vector<TimelineLane> kept;
    for (const trace::ProcessRow process : order) {
      std::vector<size_t> lanes = by_process[process];
      std::stable_sort(lanes.begin(), lanes.end(),
                       [&](size_t a, size_t b) { return Weight(timeline_.lanes[a]) > Weight(timeline_.lanes[b]); });
      if (lanes.size() > limits_.lanes_per_process) lanes.resize(limits_.lanes_per_process);
      std::sort(lanes.begin(), lanes.end());
      for (const size_t i : lanes) kept.push_back(std::move(timeline_.lanes[i]));
    }
    timeline_.hidden_lanes = timeline_.lanes.size() - kept.size();
    timeline_.lanes = std::move(kept);
  }

  /// Time at the lane's top row inside the stretch; lanes with evidence weigh most.
  std::pair<bool, Nanos> Weight(const TimelineLane& lane) const {
    bool proof = false;
    Nanos busy = 0;
    for (const TimelineSpan& s : lane.spans) {
      proof = proof || evidence_.contains(s.span.value());
      if (s.row != 0) continue;
      busy += std::min(store_.spans.end(s.span.value()), timeline_.end) -
              std::max(store_.spans.begin[s.span.value()], timeline_.begin);
    }
    return {proof, busy};
  }

  const trace::Store& store_;
  TimelineLimits limits_;
  Timeline timeline_;
  std::set<uint32_t> evidence_;
  trace::ProcessRow first_process_;
};

}  // namespace

Focus ChooseFocus(const engine::Run& run, const trace::Diagnosis& diagnosis) {
  Focus focus;
  if (!diagnosis.findings.empty()) {
    const trace::Finding& worst = diagnosis.findings.front();
    focus.finding = 0;
    focus.begin = worst.onset;
    focus.end = worst.end;
    focus.step = ProvenStep(run, worst);
  } else {
    focus.step = LongestStep(run);
  }
  if (focus.step != nullptr) {
    const trace::Step& step = *focus.step;
    focus.begin = step.begin - std::clamp<Nanos>(step.gap_before, 0, kGapLengths * step.duration());
    focus.end = step.end;
  }
  const bool has_stretch = focus.begin != kNoTime && focus.end != kNoTime && focus.end > focus.begin;
  if (has_stretch && focus.finding) WidenToEvidence(run, diagnosis.findings[*focus.finding], focus);
  return focus;
}

Timeline BuildTimeline(const engine::Run& run, const trace::Diagnosis& diagnosis, const Focus& focus,
                       const TimelineLimits& limits) {
  if (focus.begin == kNoTime || focus.end == kNoTime || focus.end <= focus.begin) return {};
  return Builder(run, diagnosis, focus, limits).Build();
}

}  // namespace teller::report
