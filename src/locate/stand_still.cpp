#include "locate/stand_still.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "locate/naming.hpp"
#include "locate/observed.hpp"
#include "locate/proof.hpp"
#include "ml/robust.hpp"

namespace teller::locate {

namespace {

using trace::FaultClass;
using trace::Finding;
using trace::kNoTime;
using trace::Nanos;
using trace::PhaseKind;
using trace::Request;
using trace::Step;
using Use = CpuWitness::Use;

constexpr Nanos kMs = 1'000'000;
constexpr Nanos kLeast = 150 * kMs;  // a shorter wait of an idle engine is a busy machine
constexpr double kTimesUsual = 50;   // by which a wait exceeds the usual one
constexpr Nanos kUsualFloor = 2 * kMs;
constexpr Nanos kTogether = 5 * kMs;  // requests taken in by one look into the input queue
constexpr Nanos kApart = 50 * kMs;    // arrivals that no one stall of the front end explains
constexpr double kMostIdle = 0.9;     // share of a wait in which no step ran
constexpr Nanos kTouch = 5 * kMs;     // by which an engine's stamp and a step's edge may miss each other
constexpr double kTimesError = 5;     // by which a wait exceeds what the place of its phases leaves open
constexpr size_t kLeastRequests = 6;  // to know what is usual
constexpr size_t kShownEvidence = 4;
constexpr double kYields = 0.02;        // of score
constexpr size_t kMostSteps = 100'000;  // looked at for one request

/// A request that waited for an engine which ran nothing.
struct Wait {
  uint32_t request = 0;
  Nanos begin = 0;
  Nanos end = 0;
  Nanos lost() const { return end - begin; }
};

class Search {
 public:
  Search(const trace::Store& store, const trace::Trees& trees, const CpuWitness& witness,
         const std::vector<trace::Note>& notes)
      : store_(store), trees_(trees), witness_(witness) {
    if (trees.steps.empty()) NoteRequests(notes);
    for (uint32_t s = 0; s < trees.steps.size(); ++s) {
      const Step& step = trees.steps[s];
      if (step.kind != trace::StepKind::kEmpty && step.prefill_requests >= 0)
        lanes_[step.process.value()].steps.push_back(s);
    }
    for (auto& [process, lane] : lanes_) {
      std::stable_sort(lane.steps.begin(), lane.steps.end(),
                       [&](uint32_t a, uint32_t b) { return trees_.steps[a].begin < trees_.steps[b].begin; });
    }
    NoteRecording();
  }

  std::vector<Finding> Run() {
    std::vector<Finding> findings;
    const std::vector<Wait> handed_over = HandedOver();
    if (!handed_over.empty()) findings.push_back(WriteWorker(handed_over));
    for (const std::vector<Wait>& group : TakenTogether()) {
      const bool echo = std::any_of(handed_over.begin(), handed_over.end(), [&](const Wait& w) {
        return w.begin < group.back().end && group.front().begin < w.end;
      });
      if (!echo) findings.push_back(WriteScheduler(group));
    }
    return findings;
  }

 private:
  /// Steps of one process that serve something, by begin.
  struct Lane {
    std::vector<uint32_t> steps;
    Nanos since = kNoTime;  ///< when its recording began, where the recorder says so
  };

  const Step& At(uint32_t s) const { return trees_.steps[s]; }

  /// What is known without steps: when requests were taken in and finished, and when a profiler held them up.
  void NoteRequests(const std::vector<trace::Note>& notes) {
    logged_ = std::any_of(store_.logs.begin(), store_.logs.end(), [](const trace::LogRecord& record) {
      return record.source == trace::LogSource::kVllm || record.source == trace::LogSource::kSglang;
    });
    observed_ = ObservedTimes(notes);
    for (const Request& request : trees_.requests) {
      if (request.failed || request.arrival == kNoTime) continue;
      taken_in_.push_back(request.arrival + request.phase(PhaseKind::kFrontEnd));
      if (request.finished != kNoTime) finished_.push_back(request.finished);
    }
    std::sort(taken_in_.begin(), taken_in_.end());
    std::sort(finished_.begin(), finished_.end());
  }

  /// True when nothing was taken in while a request waited, and nothing finished for most of that time.
  bool WasAsleep(const Request& request, Nanos wait) const {
    const Nanos admitted = request.arrival + wait;
    const auto any = [](const std::vector<Nanos>& times, Nanos from, Nanos to) {
      const auto it = std::upper_bound(times.begin(), times.end(), from);
      return it != times.end() && *it < to;
    };
    const bool observed = observed_.Of(request.arrival, admitted) > 0;
    return logged_ && !observed && !any(taken_in_, request.arrival + kTogether, admitted - kTogether) &&
           !any(finished_, request.arrival + wait / 4, admitted - kTogether);
  }

  /// A recorder that states its own span shows that nothing ran before the first step.
  void NoteRecording() {
    for (uint32_t t = 0; t < store_.tracks.size(); ++t) {
      const trace::Track& track = store_.tracks[t];
      for (uint32_t row = track.first_span; row < track.first_span + track.span_count; ++row) {
        if (store_.kind(row) != trace::SpanKind::kProfiler || store_.spans.duration[row] <= 0) break;
        for (auto& [process, lane] : lanes_) {
          if (store_.processes[process].file != store_.processes[track.process.value()].file) continue;
          const Nanos begin = store_.spans.begin[row];
          if (begin <= At(lane.steps.front()).begin) lane.since = begin;
        }
      }
    }
  }

  /// The first step of the lane that begins at or after `t`, or the lane's size.
  size_t FirstFrom(const Lane& lane, Nanos t) const {
    return static_cast<size_t>(std::lower_bound(lane.steps.begin(), lane.steps.end(), t,
                                                [&](uint32_t s, Nanos at) { return At(s).begin < at; }) -
                               lane.steps.begin());
  }

  static bool IsRecorded(const Lane& lane, size_t next, Nanos from) {
    return next > 0 || (lane.since != kNoTime && lane.since <= from);
  }

  /// The stretch before the first step that begins after `from`, in which the lane ran nothing; none before its
  /// recording.
  std::optional<std::pair<Nanos, size_t>> IdleFrom(const Lane& lane, Nanos from) const {
    const size_t next = FirstFrom(lane, from);
    if (next == lane.steps.size() || !IsRecorded(lane, next, from)) return std::nullopt;
    return std::pair(next == 0 ? from : std::max(from, At(lane.steps[next - 1]).end), next);
  }

  /// Usual length of what `of` gives for each request; nothing where too few are known.
  template <class Of>
  std::optional<double> Usual(Of of) const {
    std::vector<double> values;
    for (const Request& request : trees_.requests) {
      if (request.failed || request.phases.empty() || request.arrival == kNoTime) continue;
      if (const auto value = of(request); value.has_value()) values.push_back(static_cast<double>(*value));
    }
    if (values.size() < kLeastRequests) return std::nullopt;
    return std::max(ml::Quantile(values, 0.4), static_cast<double>(kUsualFloor));
  }

  static bool IsLong(Nanos wait, double usual) {
    return wait >= kLeast && static_cast<double>(wait) >= kTimesUsual * usual;
  }

  // --- The process that computes.

  /// From the scheduling of a request to the begin of the step that prefills it, without what other steps took.
  std::optional<Wait> ToItsStep(uint32_t row) const {
    const Request& request = trees_.requests[row];
    const auto lane = lanes_.find(request.served_by.value());
    const Nanos prefill = request.phase(PhaseKind::kPrefill);
    if (!request.served_by.valid() || lane == lanes_.end() || prefill <= 0) return std::nullopt;
    const Nanos scheduled = request.arrival + request.phase(PhaseKind::kFrontEnd) + request.phase(PhaseKind::kQueue);
    const auto idle = IdleFrom(lane->second, scheduled - kTouch);
    if (!idle.has_value()) return std::nullopt;
    const Step& step = At(lane->second.steps[idle->second]);
    // The step must be its own: it prefills, and its end is where the first token comes from.
    if (step.prefill_requests <= 0 || step.end > scheduled + prefill + kTouch + request.at_error) return std::nullopt;
    const Wait wait{row, std::max(idle->first, scheduled), std::max(step.begin, scheduled)};
    if (kTimesError * static_cast<double>(request.at_error) > static_cast<double>(std::max(wait.lost(), kLeast)))
      return std::nullopt;
    return wait;
  }

  std::vector<Wait> HandedOver() const {
    std::vector<Wait> waits;
    for (uint32_t r = 0; r < trees_.requests.size(); ++r) {
      const Request& request = trees_.requests[r];
      if (request.failed || request.phases.empty() || request.arrival == kNoTime) continue;
      if (const auto wait = ToItsStep(r); wait.has_value()) waits.push_back(*wait);
    }
    if (waits.size() < kLeastRequests) return {};
    std::vector<double> lengths;
    for (const Wait& wait : waits) lengths.push_back(static_cast<double>(wait.lost()));
    const double usual = std::max(ml::Quantile(lengths, 0.4), static_cast<double>(kUsualFloor));
    std::erase_if(waits, [&](const Wait& wait) { return !IsLong(wait.lost(), usual) || Works(wait); });
    return waits;
  }

  /// True when the computing process demonstrably did something in the wait: it was not stopped.
  bool Works(const Wait& wait) const {
    const trace::ProcessRow process = trees_.requests[wait.request].served_by;
    if (witness_.During(ProcessName(store_, process), wait.begin, wait.end) == Use::kWorking) return true;
    for (uint32_t t = 0; t < store_.tracks.size(); ++t) {
      const trace::Track& track = store_.tracks[t];
      if (track.process != process || track.is_stream) continue;
      const auto first = store_.spans.begin.begin() + track.first_span;
      const auto it = std::lower_bound(first, first + track.span_count, wait.begin + kTouch);
      if (it != first + track.span_count && *it < wait.end - kTouch) return true;
    }
    return false;
  }

  // --- The process that schedules.

  /// Requests that waited in front of an idle engine and were taken in at one moment.
  std::vector<std::vector<Wait>> TakenTogether() const {
    const auto usual = Usual([](const Request& r) { return std::optional(r.phase(PhaseKind::kFrontEnd)); });
    if (!usual.has_value()) return {};
    std::map<std::pair<uint32_t, std::string>, std::vector<Wait>> by_lane;  // traced process; engine where none is
    for (uint32_t r = 0; r < trees_.requests.size(); ++r) {
      const Request& request = trees_.requests[r];
      if (request.failed || request.arrival == kNoTime || request.handed_on >= 0) continue;
      const bool pinned = !request.steps.empty() && request.steps.front().prefill;
      const Nanos wait = request.phase(PhaseKind::kFrontEnd);
      if (!IsLong(wait, *usual)) continue;
      if (trees_.steps.empty() ? !WasAsleep(request, wait) : !pinned || !WasIdle(request, wait)) continue;
      by_lane[{request.served_by.value(), request.engine}].push_back({r, request.arrival, request.arrival + wait});
    }
    std::vector<std::vector<Wait>> groups;
    for (auto& [lane, waits] : by_lane) {
      std::stable_sort(waits.begin(), waits.end(), [](const Wait& a, const Wait& b) { return a.end < b.end; });
      std::vector<Wait> group;
      for (const Wait& wait : waits) {
        if (!group.empty() && wait.end - group.front().end > kTogether) Close(group, groups);
        group.push_back(wait);
      }
      Close(group, groups);
    }
    return groups;
  }

  void Close(std::vector<Wait>& group, std::vector<std::vector<Wait>>& groups) const {
    std::stable_sort(group.begin(), group.end(), [](const Wait& a, const Wait& b) { return a.begin < b.begin; });
    // A front end that computes all the while holds them up itself.
    if (!group.empty() && group.back().begin - group.front().begin > LeastApart(group.front()) &&
        witness_.During(FrontEnd(group.front()), group.front().begin, group.front().end) != Use::kWorking)
      groups.push_back(std::move(group));
    group.clear();
  }

  /// By how much arrivals must differ: more than one stall of the front end explains. Without steps the first may have
  /// been served and its token held back; then it was made before the last came.
  Nanos LeastApart(const Wait& first) const {
    if (!trees_.steps.empty()) return kApart;
    const Request& request = trees_.requests[first.request];
    return std::max(kApart, request.phase(PhaseKind::kQueue) + request.phase(PhaseKind::kPrefill) + 2 * kTouch);
  }

  /// True when no step began in a request's wait and none ran for nearly all of it: an engine that began one was awake
  /// and would have taken the request in.
  bool WasIdle(const Request& request, Nanos wait) const {
    const auto lane = lanes_.find(request.served_by.value());
    if (lane == lanes_.end()) return false;
    const Nanos admitted = request.arrival + wait;
    Nanos busy = 0;
    size_t at = FirstFrom(lane->second, request.arrival);
    if (!IsRecorded(lane->second, at, request.arrival)) return false;
    if (at > 0) --at;
    size_t looked = 0;
    for (; at < lane->second.steps.size() && looked < kMostSteps; ++at, ++looked) {
      const Step& step = At(lane->second.steps[at]);
      if (step.begin >= admitted - kTouch) break;
      if (step.begin > request.arrival) return false;
      busy += std::max<Nanos>(0, std::min(step.end, admitted) - std::max(step.begin, request.arrival));
    }
    return static_cast<double>(busy) <= (1 - kMostIdle) * static_cast<double>(wait);
  }

  std::string FrontEnd(const Wait& wait) const {
    const Request& request = trees_.requests[wait.request];
    return request.engine == "vllm" ? "APIServer" : request.engine == "sglang" ? "tokenizer_manager" : request.process;
  }

  // --- Findings.

  Finding Start(const std::vector<Wait>& waits) const {
    Finding finding;
    finding.fault = FaultClass::kRuntimePause;
    finding.alternatives = {{FaultClass::kCpuStarved, 0.2}, {FaultClass::kHostCpuBound, 0.2}};
    finding.view = "vertical";
    finding.culprit.layer = "process";
    // Waits of one standstill overlap: the time lost is what they cover.
    Nanos until = std::numeric_limits<Nanos>::min();
    for (const Wait& wait : waits) {
      finding.onset = finding.onset == kNoTime ? wait.begin : std::min(finding.onset, wait.begin);
      finding.end = finding.end == kNoTime ? wait.end : std::max(finding.end, wait.end);
      finding.cost += std::max<Nanos>(0, wait.end - std::max(wait.begin, until));
      until = std::max(until, wait.end);
      finding.victims.push_back(
          {std::nullopt, "request " + trees_.requests[wait.request].id + " is delayed by " + Ms(wait.lost())});
    }
    return finding;
  }

  void AddEvidence(const Wait& wait, const std::string& where, Finding& finding) const {
    const Request& request = trees_.requests[wait.request];
    CiteRequest(finding, store_, request, wait.begin,
                fmt::format("request {}: {} {}", request.id, Ms(wait.lost()), where));
  }

  Finding WriteWorker(const std::vector<Wait>& waits) const {
    Finding finding = Start(waits);
    const trace::ProcessRow process = trees_.requests[waits.front().request].served_by;
    finding.culprit.process = ProcessName(store_, process);
    finding.culprit.rank = store_.processes[process.value()].rank;
    const Wait& worst =
        *std::max_element(waits.begin(), waits.end(), [](const Wait& a, const Wait& b) { return a.lost() < b.lost(); });
    for (size_t i = 0; i < std::min(waits.size(), kShownEvidence); ++i)
      AddEvidence(waits[i], "from its scheduling to the begin of its step, in which no step ran", finding);
    const bool seen = witness_.During(finding.culprit.process, worst.begin, worst.end) == Use::kStill;
    finding.false_alarm_probability = seen ? 1e-6 : waits.size() > 1 ? 1e-4 : 1e-3;
    finding.score = seen ? 0.98 : waits.size() > 1 ? 0.95 : 0.9;
    finding.explanation = fmt::format(
        "{} stands still: {} {} scheduled, but the step did not begin for up to {} while no other ran [E1]. The "
        "scheduler had done its part, so what did not move is {}.{}",
        finding.culprit.process, waits.size() == 1 ? "a request" : fmt::format("{} requests", waits.size()),
        waits.size() == 1 ? "was" : "were", Ms(worst.lost()), finding.culprit.process,
        seen ? " Host counters say so too: it spins whenever it waits, and used no processor meanwhile." : "");
    return finding;
  }

  Finding WriteScheduler(const std::vector<Wait>& group) const {
    Finding finding = Start(group);
    const Request& first = trees_.requests[group.front().request];
    const bool stepless = trees_.steps.empty();
    finding.culprit.process = !stepless                  ? SchedulerName(store_, first.served_by)
                              : first.engine == "vllm"   ? std::string("EngineCore")
                              : first.engine == "sglang" ? std::string("scheduler")
                                                         : first.process;
    const std::string idle = stepless ? "no other request was taken in" : "no step ran";
    for (size_t i = 0; i < std::min(group.size(), kShownEvidence); ++i)
      AddEvidence(group[i], "from its arrival until the engine took it in, in which " + idle, finding);
    finding.false_alarm_probability = std::pow(0.02, static_cast<double>(group.size()));
    finding.score = (group.size() > 2 ? 0.92 : 0.85) - (stepless ? 0.1 : 0.0);
    finding.explanation = fmt::format(
        "{} stands still while it is idle: {} requests arrived {} apart, waited up to {} and were taken in together "
        "[E1], and {} meanwhile. The front end went on receiving, so what did not look into its input is {} "
        "(stopped, collecting garbage or without a processor). A tokenizer that hung over the first of them would look "
        "alike.",
        finding.culprit.process, group.size(), Ms(group.back().begin - group.front().begin), Ms(group.front().lost()),
        idle, finding.culprit.process);
    return finding;
  }

  const trace::Store& store_;
  const trace::Trees& trees_;
  const CpuWitness& witness_;
  std::map<uint32_t, Lane> lanes_;  ///< by process
  // Without steps:
  bool logged_ = false;
  Coverage observed_;            ///< a profiler held up serving
  std::vector<Nanos> taken_in_;  ///< in order
  std::vector<Nanos> finished_;  ///< in order
};

}  // namespace

std::vector<Finding> FindStandStills(const trace::Store& store, const trace::Trees& trees, const CpuWitness& witness,
                                     const std::vector<trace::Note>& notes) {
  return Search(store, trees, witness, notes).Run();
}

void JoinStandStills(std::vector<Finding> still, std::vector<Finding>& findings) {
  for (Finding& one : still) {
    const bool computes = one.culprit.rank.has_value();
    bool joined = false;
    for (Finding& other : findings) {
      if (other.fault != FaultClass::kRuntimePause || other.culprit.layer != "process") continue;
      if (other.culprit.process != one.culprit.process) {
        if (computes) other.score = std::min(other.score, one.score - kYields);
        continue;
      }
      if (joined) continue;
      joined = true;
      for (const trace::Evidence& evidence : one.evidence)
        other.explanation += fmt::format(" Requests show it too: {} {}.", evidence.text, Cite(other, evidence));
      other.onset = std::min(other.onset, one.onset);
      other.end = std::max(other.end, one.end);
      other.score = std::max(other.score, one.score);
      other.false_alarm_probability = std::min(other.false_alarm_probability, one.false_alarm_probability);
      for (const trace::Victim& victim : one.victims) other.victims.push_back(victim);
    }
    if (!joined) findings.push_back(std::move(one));
  }
}

}  // namespace teller::locate
