#include "locate/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "locate/device_calls.hpp"
#include "locate/naming.hpp"
#include "locate/pause_kind.hpp"
#include "locate/pause_text.hpp"
#include "locate/proof.hpp"

namespace teller::locate {

namespace {

using trace::Evidence;
using trace::FaultClass;
using trace::Finding;

constexpr trace::Nanos kSpinsFor = 800 * base::kMilli;  // a process that waits for another one

constexpr double kIrregular = 0.8;     // spread of gaps: work of one kind takes about the same each time
constexpr double kStretchedToo = 1.2;  // times the usual

class Writer {
 public:
  Writer(const Scene& scene, const Hypothesis& h, const std::optional<Counterfactual>& test)
      : scene_(scene), store_(scene.store), h_(h), test_(test) {}

  Finding Run() {
    finding_.false_alarm_probability = h_.false_alarm;
    finding_.compares_ranks = h_.compares_ranks;
    finding_.score = std::clamp(1.0 - std::pow(h_.false_alarm, 0.5), 0.0, 0.999);
    finding_.culprit.rank = h_.rank;
    finding_.culprit.process = ProcessName(store_, h_.process);
    finding_.onset = h_.onset;
    finding_.end = h_.end;
    finding_.cost = h_.lost;
    finding_.view = "vertical";
    AddSteps();
    switch (h_.trouble) {
      case Trouble::kSlowOperator: SlowOperator(); break;
      case Trouble::kHostWork: HostWork(); break;
      case Trouble::kGapWork: GapWork(); break;
      case Trouble::kPause: Pause(); break;
      case Trouble::kStarvation: Starvation(); break;
      case Trouble::kSlowDevice: SlowDevice(); break;
      case Trouble::kSlowSave: SlowSave(); break;
      case Trouble::kSlowTransfer: SlowTransfer(); break;
      case Trouble::kLateRank: LateRank(); break;
    }
    AddVictims();
    JudgeRepair();
    return std::move(finding_);
  }

 private:
  void Class(FaultClass fault, std::vector<trace::Alternative> alternatives) {
    finding_.fault = fault;
    finding_.alternatives = std::move(alternatives);
  }

  void AddSteps() {
    Nanos worst = -1;
    for (size_t i = 0; i < h_.steps.size(); ++i) {
      const trace::Step& step = scene_.trees.steps[h_.steps[i]];
      trace::AbnormalStep abnormal;
      abnormal.row = trace::StepRow(h_.steps[i]);
      abnormal.rank = step.rank;
      abnormal.index = step.index;
      abnormal.name = step.name;
      abnormal.begin = h_.in_gap ? step.begin - scene_.profiles[h_.steps[i]].gap : step.begin;
      abnormal.end = step.end;
      const auto share =
          static_cast<double>(h_.lost_in[i]) / static_cast<double>(std::max<Nanos>(1, step.end - abnormal.begin));
      abnormal.score = std::clamp(share, 0.0, 1.0);
      finding_.steps.push_back(std::move(abnormal));
      if (h_.lost_in[i] > worst) {
        worst = h_.lost_in[i];
        if (h_.sent) continue;  // it is the receiver that waits, and what a faster link would save it is not known
        const Nanos observed = step.end - finding_.steps.back().begin;
        finding_.step_observed = observed;
        finding_.step_without = std::max<Nanos>(0, observed - h_.lost_in[i]);
        if (test_ && test_->worst == h_.steps[i]) {
          finding_.step_without = std::clamp<Nanos>(observed - test_->worst_saved, 0, observed);
        }
      }
    }
    std::stable_sort(finding_.steps.begin(), finding_.steps.end(),
                     [](const auto& a, const auto& b) { return a.score > b.score; });
  }

  std::string AddEvidence(Evidence::Kind kind, std::string text, trace::Nanos at, uint32_t span) {
    Evidence e;
    e.kind = kind;
    e.file = store_.processes[h_.process.value()].file;
    e.at = at;
    e.text = std::move(text);
    if (span != kNoSpan) {
      e.span = trace::SpanRow(span);
      e.ref = "span:" + std::to_string(span);
    } else {
      e.ref = "step:" + std::to_string(h_.steps.empty() ? 0 : scene_.trees.steps[h_.steps.front()].index);
    }
    return Cite(finding_, std::move(e));
  }

  std::string Who() const {
    const std::string name = ProcessName(store_, h_.process);
    if (!h_.rank.has_value()) return name;
    const std::string rank = "rank " + std::to_string(*h_.rank);
    return name == "rank" + std::to_string(*h_.rank) ? rank : rank + " (" + name + ")";
  }

  std::string Steps() const {
    if (h_.steps.empty()) return "the traced window";
    const trace::Step& first = scene_.trees.steps[h_.steps.front()];
    const trace::Step& last = scene_.trees.steps[h_.steps.back()];
    if (h_.steps.size() == 1) return fmt::format("step {} ({})", first.index, first.name);
    return fmt::format("{} steps between {} and {}", h_.steps.size(), first.index, last.index);
  }

  size_t Ranks() const {
    std::set<int> ranks;
    for (const auto& process : store_.processes) {
      if (process.rank.has_value()) ranks.insert(*process.rank);
    }
    return ranks.size();
  }

  std::string Without() const {
    if (!finding_.step_observed.has_value()) return {};
    return fmt::format(" Without it the worst of these steps would have taken {} instead of {}.",
                       Ms(*finding_.step_without), Ms(*finding_.step_observed));
  }

  /// What does not help when it is repaired is no cause, or not the only one.
  void JudgeRepair() {
    if (!test_ || test_->lost <= 0) return;
    finding_.saved_share = std::clamp(static_cast<double>(test_->saved) / static_cast<double>(test_->lost), 0.0, 1.0);
    if (*finding_.saved_share >= kNecessary) return;
    constexpr double kNothing = 0.05;
    if (h_.trouble == Trouble::kSlowTransfer && *finding_.saved_share < kNothing) {
      // The ranks were held up, but not by moving data: one of them may have stood still meanwhile.
      finding_.alternatives.insert(finding_.alternatives.begin(),
                                   {{FaultClass::kCpuStarved, 0.3}, {FaultClass::kRuntimePause, 0.3}});
    }
    constexpr double kDoubt = 0.5;
    finding_.score *= kDoubt;
    finding_.explanation += fmt::format(
        " But repairing it alone would have saved {} of the {} lost: something else would have been waited for.",
        Ms(std::max<Nanos>(0, test_->saved)), Ms(test_->lost));
  }

  void SlowOperator() {
    if (h_.calls > 0) return OftenCalled();
    const bool gpu = h_.slot.kind == SlotKey::Kind::kGpu;
    finding_.culprit.layer = gpu ? "kernel" : "op";
    const std::string_view why = gpu ? SlowKernel() : SlowOnTheHost();
    finding_.culprit.op = std::string(store_.name(h_.span));
    if (!h_.whole_operator) finding_.culprit.module = ModuleAt(store_, h_.span);
    const trace::GraphOrigin* origin = nullptr;
    if (!h_.whole_operator && finding_.culprit.module.empty()) origin = SureOrigin(scene_.trees, h_.span);
    if (origin != nullptr) finding_.culprit.module = std::string(store_.text(origin->module));
    const std::string where = finding_.culprit.module.empty() ? std::string() : " in " + finding_.culprit.module;
    const std::string worst = AddEvidence(
        Evidence::Kind::kSpan,
        fmt::format("{}{} takes {} where {} is normal", finding_.culprit.op, where, Ms(h_.worst), Ms(h_.usual)),
        h_.worst_begin, h_.span);
    if (origin != nullptr && !finding_.culprit.module.empty()) AddOrigin(*origin);
    const std::string rest =
        AddEvidence(Evidence::Kind::kStatistic,
                    fmt::format("everything else in these steps takes {:.2f} times its normal time", h_.rest_ratio),
                    h_.onset, kNoSpan);
    finding_.explanation = fmt::format(
        "On {}, {}{} is slow in {}: the worst call takes {} where {} is normal for this place and shape {}. It "
        "explains {} of lost time, "
        "{} {}.{}",
        Who(), finding_.culprit.op, h_.whole_operator ? " (all its calls)" : where, Steps(), Ms(h_.worst), Ms(h_.usual),
        worst, Ms(h_.lost),
        h_.rest_ratio < 1.35 ? "and the rest of the steps is as usual" : "far more than anything else in these steps",
        rest, Without());
    finding_.explanation += why;
  }

  /// An operator that is repeated: by this rank alone, or for a while.
  void OftenCalled() {
    Class(FaultClass::kKernelRegression, {{FaultClass::kStragglerRank, 0.3}, {FaultClass::kHostCpuBound, 0.2}});
    finding_.view = h_.compares_ranks ? "horizontal" : "vertical";
    finding_.culprit.layer = "op";
    finding_.culprit.op = std::string(store_.name(h_.span));
    finding_.culprit.module = ModuleAt(store_, h_.span);
    const std::string where = finding_.culprit.module.empty() ? std::string() : " in " + finding_.culprit.module;
    const std::string worst =
        AddEvidence(Evidence::Kind::kSpan,
                    fmt::format("one of the calls of {}{}, which take {} in this step; as many as {} would take {}",
                                finding_.culprit.op, where, Ms(h_.worst),
                                h_.compares_ranks ? "on the other ranks" : "usual", Ms(h_.usual)),
                    h_.worst_begin, h_.span);
    const std::string others =
        h_.compares_ranks
            ? fmt::format(
                  "the other ranks of the same program {:.0f} times {}; in its other steps it calls it as "
                  "often as they do. Most other operators are called equally often, so it has no more to "
                  "compute than they.",
                  h_.usual_calls, worst)
            : fmt::format(
                  "{:.0f} times in its other steps of this kind {}. Most other operators are called as often "
                  "as ever, so it has no more to compute than before.",
                  h_.usual_calls, worst);
    finding_.explanation =
        fmt::format("{} calls {}{} about {:.0f} times in each of {}, {} It explains {} of lost time.{}", Who(),
                    finding_.culprit.op, where, h_.calls, Steps(), others, Ms(h_.lost), Without());
  }

  /// Class of a kernel that takes longer. Returns what is to be said of it.
  std::string_view SlowKernel() {
    if (!WorkMovedHere()) {
      Class(FaultClass::kKernelRegression, {{FaultClass::kStragglerRank, 0.2}, {FaultClass::kHostCpuBound, 0.1}});
      return {};
    }
    Class(FaultClass::kMoeSkew, {{FaultClass::kStragglerRank, 0.3}, {FaultClass::kKernelRegression, 0.2}});
    return " On the other ranks the same kernel is not slow in these steps, so more of the routed work lies on this "
           "one.";
  }

  /// True when the kernel takes clearly less time than usual on most other ranks meanwhile, or is the one that computes
  /// what was routed here and takes no longer there: a slower kernel would be slow on all of them.
  bool WorkMovedHere() const {
    constexpr double kLess = 0.85;  // of the usual
    constexpr std::array<std::string_view, 5> kRouted = {"moe", "Moe", "MoE", "expert", "grouped_gemm"};
    std::map<uint32_t, std::pair<double, double>> others;  // process -> (cost, expected)
    for (const uint32_t mine : h_.steps) {
      const trace::Step& step = scene_.trees.steps[mine];
      for (uint32_t s = 0; s < scene_.trees.steps.size(); ++s) {
        const trace::Step& theirs = scene_.trees.steps[s];
        if (theirs.process == h_.process || theirs.index != step.index || !theirs.rank || !scene_.normals[s].judged)
          continue;
        auto& [cost, expected] = others[theirs.process.value()];
        for (size_t k = 0; k < scene_.profiles[s].slots.size(); ++k) {
          const Slot& slot = scene_.profiles[s].slots[k];
          if (slot.key.kind != h_.slot.kind || slot.key.name != h_.slot.name) continue;
          cost += static_cast<double>(slot.cost);
          expected += static_cast<double>(scene_.normals[s].expected[k]);
        }
      }
    }
    const std::string_view name = store_.name(h_.span);
    const bool routed = std::any_of(kRouted.begin(), kRouted.end(),
                                    [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
    size_t not_longer = 0;
    for (const auto& [process, sums] : others) {
      not_longer += sums.second > 0 && sums.first < (routed ? 1.1 : kLess) * sums.second ? 1 : 0;
    }
    return !others.empty() && 4 * not_longer > 3 * others.size();
  }

  /// Class of an operator whose time on the host is long: where it launches work, its own length is the host's.
  std::string_view SlowOnTheHost() {
    switch (ReadHostCause(scene_, h_)) {
      case HostCause::kComputes:
        Class(FaultClass::kKernelRegression, {{FaultClass::kStragglerRank, 0.2}, {FaultClass::kHostCpuBound, 0.1}});
        return {};
      case HostCause::kHost:
        Class(FaultClass::kHostCpuBound, {{FaultClass::kStragglerRank, 0.3}, {FaultClass::kCpuStarved, 0.15}});
        return " It launches work on the device; what took longer is the host's part of it.";
      case HostCause::kHiddenSync:
        Class(FaultClass::kHiddenSync, {{FaultClass::kHostCpuBound, 0.3}});
        finding_.culprit.layer = "cuda_api";
        return " In these steps the host waits for the device again and again, which equal steps do not.";
      case HostCause::kGraphFallback:
        Class(FaultClass::kGraphFallback, {{FaultClass::kHostCpuBound, 0.3}});
        finding_.culprit.layer = "python";
        return " In these steps kernels are launched one by one where equal steps replay a graph.";
    }
    return {};
  }

  /// Whence the module of a replayed kernel is known.
  void AddOrigin(const trace::GraphOrigin& origin) {
    std::string from(Name(origin.source));
    if (origin.learned.valid()) from += " of " + store_.files[origin.learned.value()].path;
    AddEvidence(
        Evidence::Kind::kStatistic,
        fmt::format("a graph replayed the kernel; its module is that of the {} it was aligned to, confidence {:.2f}",
                    from, origin.confidence),
        h_.worst_begin, kNoSpan);
  }

  void HostWork() {
    Class(FaultClass::kHostCpuBound, {{FaultClass::kStragglerRank, 0.2}, {FaultClass::kRuntimePause, 0.1}});
    finding_.culprit.layer = "python";
    const std::string frame = DescribeFrame();
    const std::string worst = AddEvidence(
        Evidence::Kind::kSpan, fmt::format("{} of host time{} where {} is normal", Ms(h_.worst), frame, Ms(h_.usual)),
        h_.worst_begin, h_.span);
    finding_.explanation = fmt::format(
        "On {}, host code between operators is slow at the same place in {}: up to {}{} where {} is normal {}. It "
        "explains {} of lost "
        "time; the operators themselves are as usual.{}",
        Who(), Steps(), Ms(h_.worst), frame, Ms(h_.usual), worst, Ms(h_.lost), Without());
  }

  /// Names the host frame over the worst piece, and takes its module.
  std::string DescribeFrame() {
    const trace::TrackRow track = Lane();
    if (!track.valid()) return {};
    frame_ = FrameOver(store_, track, h_.worst_begin, h_.worst_begin + h_.worst);
    if (frame_ == kNoSpan || store_.kind(frame_) != trace::SpanKind::kPython) {
      finding_.culprit.module = ModuleInProgress(store_, track, h_.worst_begin);
      return {};
    }
    finding_.culprit.module = ModuleAt(store_, frame_);
    return fmt::format(" in {}", store_.name(frame_));
  }

  trace::TrackRow Lane() const {
    if (h_.steps.empty()) return {};
    const trace::Step& step = scene_.trees.steps[h_.steps.front()];
    return step.span.valid() ? store_.spans.track[step.span.value()] : trace::TrackRow();
  }

  void BlameScheduler() {
    finding_.culprit.process = SchedulerName(store_, h_.process);
    if (SchedulerIsElsewhere(store_, h_.process)) finding_.culprit.rank.reset();
  }

  void GapWork() {
    Class(FaultClass::kHostCpuBound,
          {{FaultClass::kSchedStall, 0.2}, {FaultClass::kRuntimePause, 0.15}, {FaultClass::kIpcOverhead, 0.1}});
    finding_.culprit.layer = "scheduler";
    BlameScheduler();
    const bool starved = h_.spread > kIrregular && h_.rest_ratio > kStretchedToo;
    if (starved) {
      Class(FaultClass::kCpuStarved, {{FaultClass::kHostCpuBound, 0.35}, {FaultClass::kSchedStall, 0.1}});
      finding_.culprit.layer = "host";
    }
    const std::string frame = DescribeFrame();
    finding_.culprit.module.clear();  // what runs between steps is no layer of the model
    const std::string worst =
        AddEvidence(Evidence::Kind::kSpan,
                    fmt::format("{} between two steps{} where {} is normal", Ms(h_.worst), frame, Ms(h_.usual)),
                    h_.worst_begin, frame_);
    finding_.explanation = fmt::format(
        "The time between steps is long before {}: up to {}{} where {} is normal, while sequences were running {}. It "
        "adds up to {}. {}{}",
        Steps(), Ms(h_.worst), frame, Ms(h_.usual), worst, Ms(h_.lost),
        starved ? "These gaps differ widely and the steps between them are stretched too: that is what processes look "
                  "like that do not get their CPU."
                : fmt::format("The steps themselves are as usual, so {} spends it on the host before the next forward "
                              "pass.",
                              finding_.culprit.process),
        Without());
  }

  void Pause() {
    finding_.culprit.layer = h_.in_gap ? "process" : "python";
    const std::string said = h_.in_gap ? BlameForPause() : std::string();
    const std::string frame = DescribeFrame();
    const trace::TrackRow lane = Lane();
    const HostTime time =
        lane.valid() ? ReadHostTime(store_, lane, h_.worst_begin, h_.worst_begin + h_.worst) : HostTime::kUnknown;
    // Who is stopped again and again until a period ends is so inside of some call each time.
    const bool stopped = h_.throttled && h_.at_changing_places;
    const bool own_work = !stopped && (time == HostTime::kWorking || time == HostTime::kBlocked);
    const bool crowded = !own_work && time != HostTime::kCollecting && WasCrowdedOut();
    const bool throttled = !own_work && time != HostTime::kCollecting &&
                           (h_.throttled || (!crowded && IsThrottled(scene_, h_, finding_.culprit.process)));
    const bool taking_in = h_.in_gap && !crowded && time != HostTime::kCollecting && IsTakingRequestsIn(scene_, h_);
    if (taking_in && !own_work && !throttled) {
      Class(FaultClass::kPreForwardStall,
            {{FaultClass::kHostCpuBound, 0.3}, {FaultClass::kRuntimePause, 0.2}, {FaultClass::kStragglerRank, 0.1}});
      finding_.culprit.layer = "host";
    } else if (crowded || throttled) {
      Class(FaultClass::kCpuStarved, {{FaultClass::kRuntimePause, 0.35}, {FaultClass::kHostCpuBound, 0.1}});
    } else if (own_work) {
      Class(FaultClass::kHostCpuBound, {{FaultClass::kRuntimePause, 0.3}, {FaultClass::kStragglerRank, 0.2}});
    } else {
      Class(FaultClass::kRuntimePause,
            {{FaultClass::kCpuStarved, 0.2}, {FaultClass::kHostCpuBound, 0.2}, {FaultClass::kStragglerRank, 0.1}});
    }
    if (h_.in_gap || !own_work) finding_.culprit.module.clear();
    const std::string place = h_.in_gap ? "between two steps" : "inside a step";
    const std::string worst = AddEvidence(
        Evidence::Kind::kSpan,
        fmt::format("nothing ends for {} {}{}; {} is normal there", Ms(h_.worst), place, frame, Ms(h_.usual)),
        h_.worst_begin, frame_ != kNoSpan ? frame_ : h_.span);
    finding_.explanation = fmt::format(
        "{} stands still {}: {} without progress {}{} where {} is normal {}. {} Before and after it the same work runs "
        "at its usual "
        "speed, so neither an operator nor the load explains it.{}{}{}",
        finding_.culprit.process, h_.steps.size() <= 1 ? "once" : fmt::format("{} times", h_.steps.size()),
        Ms(h_.worst), place, frame, Ms(h_.usual), worst,
        crowded                     ? kCrowdedOut
        : throttled && h_.throttled ? kInPeriods
        : throttled                 ? kThrottled
                                    : PauseReason(time),
        taking_in ? kTakingIn : "", said, Without());
  }

  /// True when by host counters no processor was free for it: other programs had them, and it did not compute.
  bool WasCrowdedOut() const {
    if (scene_.witness == nullptr) return false;
    const trace::Nanos end = h_.worst_begin + h_.worst;
    return scene_.witness->WasCrowded(h_.worst_begin, end) &&
           scene_.witness->During(finding_.culprit.process, h_.worst_begin, end) != CpuWitness::Use::kWorking;
  }

  /// Between two steps the scheduler has not asked for the next one, or the computing process has not begun it: host
  /// counters tell, where they are given. Returns what they say.
  std::string BlameForPause() {
    if (OthersHadBegun(scene_, h_)) return " The other ranks had been told to begin the step and waited for it.";
    BlameScheduler();
    const std::string worker = ProcessName(store_, h_.process);
    if (scene_.witness == nullptr || worker == finding_.culprit.process) return {};
    // One that waits for long may go from spinning to sleep, so only the beginning counts.
    const trace::Nanos end = h_.worst_begin + std::min(h_.worst, kSpinsFor);
    const auto worked = scene_.witness->During(worker, h_.worst_begin, end);
    const auto scheduled = scene_.witness->During(finding_.culprit.process, h_.worst_begin, end);
    using Use = CpuWitness::Use;
    if (worked == Use::kStill && scheduled == Use::kWorking) {
      std::string text = fmt::format(" Host counters show that {} waited for {}, which used no processor meanwhile.",
                                     finding_.culprit.process, worker);
      finding_.culprit.process = worker;
      finding_.culprit.rank = h_.rank;
      return text;
    }
    if (worked == Use::kWorking && scheduled == Use::kIdle)
      return fmt::format(" Host counters show that {} spun for work meanwhile and {} used no processor.", worker,
                         finding_.culprit.process);
    return {};
  }

  void Starvation() {
    const bool straggles = h_.even && Ranks() > 1;
    if (straggles) {
      Class(FaultClass::kStragglerRank,
            {{FaultClass::kCpuStarved, 0.35}, {FaultClass::kGpuClockLimit, 0.15}, {FaultClass::kHostCpuBound, 0.15}});
    } else {
      Class(FaultClass::kCpuStarved,
            {{FaultClass::kHostCpuBound, 0.2}, {FaultClass::kStragglerRank, 0.2}, {FaultClass::kHostMemPressure, 0.1}});
    }
    finding_.culprit.layer = "host";
    const auto ratio = static_cast<double>(h_.worst) / static_cast<double>(std::max<Nanos>(1, h_.usual));
    const std::string worst = AddEvidence(
        Evidence::Kind::kStatistic,
        fmt::format("the worst step takes {} where {} of its own work is normal", Ms(h_.worst), Ms(h_.usual)),
        h_.worst_begin, kNoSpan);
    const std::string_view how =
        straggles ? "operators and host code take longer alike, none stands out. The processor that this rank runs on "
                    "is slower, or it gets less of it."
        : h_.even ? "operators and host code take longer alike, none stands out. That is what a process looks like "
                    "whose processor is slower or that does not get enough of it."
                  : "operators and host code alike lose time at changing places, none stands out. That is what a "
                    "process looks like that does not get its CPU.";
    finding_.explanation =
        fmt::format("On {}, {} are stretched as a whole, the worst to {:.1f} times its normal {}: {} {} are lost.{}",
                    Who(), Steps(), ratio, worst, how, Ms(h_.lost), Without());
  }

  void SlowDevice() {
    Class(FaultClass::kGpuClockLimit, {{FaultClass::kStragglerRank, 0.4}, {FaultClass::kKernelRegression, 0.2}});
    finding_.culprit.layer = "hardware";
    const std::string factor = AddEvidence(
        Evidence::Kind::kStatistic,
        fmt::format("the kernels of these steps take {:.2f} times their usual time, most of them alike", h_.rest_ratio),
        h_.worst_begin, kNoSpan);
    finding_.explanation = fmt::format(
        "On {}, the device is slow in {}: its kernels take {:.2f} times as long as usual{}, whatever they compute {}. "
        "The host's part is as usual; {} are lost. That is what a device looks like whose clock is held down.{}",
        Who(), Steps(), h_.rest_ratio, Ranks() > 1 ? " and those of the other ranks do not" : "", factor, Ms(h_.lost),
        Without());
  }

  void SlowSave() {
    Class(FaultClass::kStorageSlow, {{FaultClass::kCpuStarved, 0.15}, {FaultClass::kHostMemPressure, 0.1}});
    finding_.culprit.layer = "storage";
    const trace::Step& step = scene_.trees.steps[h_.steps.front()];
    const std::string worst = AddEvidence(
        Evidence::Kind::kStatistic,
        fmt::format("{} between two steps for {:.0f} MB that were copied to the host; {} is the longest other time",
                    Ms(h_.worst), static_cast<double>(scene_.profiles[h_.steps.front()].saved_bytes) / 1e6,
                    Ms(h_.usual)),
        h_.worst_begin, kNoSpan);
    finding_.explanation = fmt::format(
        "Before step {} {} saves its state, as it does now and then, but this time it takes {} where {} is the longest "
        "otherwise {}. The copies to the host are as large as ever, so what they are written to is slow: {} are "
        "lost.{}",
        step.index, Who(), Ms(h_.worst), Ms(h_.usual), worst, Ms(h_.lost), Without());
  }

  void SlowTransfer() {
    Class(FaultClass::kNetLinkFault, {{FaultClass::kNetPathWrong, 0.2}, {FaultClass::kIntraLinkDegraded, 0.1}});
    finding_.view = "horizontal";
    finding_.culprit.layer = "network";
    if (h_.span != kNoSpan) finding_.culprit.op = std::string(store_.name(h_.span));
    Nanos late = 0;
    for (const uint32_t c : h_.collectives) late += scene_.trees.collectives[c].late_by;
    const Nanos mean_late = h_.collectives.empty() ? 0 : late / static_cast<Nanos>(h_.collectives.size());
    const std::string worst =
        AddEvidence(Evidence::Kind::kCollective,
                    fmt::format("{} takes {} after the last rank has arrived; arrivals differ by {} on average",
                                finding_.culprit.op, Ms(h_.worst), Ms(mean_late)),
                    h_.worst_begin, h_.span);
    finding_.explanation = fmt::format(
        "In {}, {} are slow after all ranks have arrived: {} up to {} {}. No rank computes longer than usual, "
        "so the time goes into "
        "moving data: {} are lost. {}{}",
        Steps(), h_.sent ? "transfers" : "collectives", finding_.culprit.op, Ms(h_.worst), worst, Ms(h_.lost),
        LinkEnds(), Without());
  }

  /// Which link, as far as the order of leaving tells.
  std::string LinkEnds() const {
    if (!h_.peer.has_value())
      return fmt::format("With the traces alone the slow end of the link cannot be told; {} lost most.", Who());
    if (h_.sent) {
      return fmt::format("It is what rank {} sends to rank {}; the fault may be at either end of that link.", *h_.rank,
                         *h_.peer);
    }
    const auto percent = static_cast<int>(100 * h_.link_share);
    if (h_.both_ways) {
      return fmt::format(
          "In {} % of them rank {} leaves last and the rank on the other side of rank {} first: rank {} is slow "
          "towards both. That the others wait afterwards is a consequence.",
          percent, *h_.peer, *h_.rank, *h_.rank);
    }
    return fmt::format(
        "In {} % of them rank {} leaves first and rank {} last: what rank {} sends to rank {} is slow. The fault may "
        "be at either end of that link; that rank {} arrives last afterwards is a consequence.",
        percent, *h_.rank, *h_.peer, *h_.rank, *h_.peer, *h_.peer);
  }

  void LateRank() {
    Class(FaultClass::kStragglerRank, {{FaultClass::kHostCpuBound, 0.2}, {FaultClass::kMoeSkew, 0.1}});
    finding_.view = "horizontal";
    finding_.culprit.layer = "collective";
    const std::string worst =
        AddEvidence(Evidence::Kind::kCollective,
                    fmt::format("rank {} enters {} {} after the others", *h_.rank, store_.name(h_.span), Ms(h_.worst)),
                    h_.worst_begin, h_.span);
    finding_.explanation = fmt::format(
        "Rank {} arrives last in {} collectives, up to {} after the others {}; the others wait for it, {} in all. "
        "Their long collectives are "
        "waiting and not transfer: look at what rank {} does before it arrives.",
        *h_.rank, h_.collectives.size(), Ms(h_.worst), worst, Ms(h_.lost), *h_.rank);
  }

  /// Other ranks that waited meanwhile.
  void AddVictims() {
    std::map<int, Nanos> waits;
    std::map<int, Nanos> whole;
    for (const auto& collective : scene_.trees.collectives) {
      const Nanos at = collective.members.front().arrival;
      if (at > h_.end || collective.members.back().end < h_.onset) continue;
      for (const auto& member : collective.members) {
        if (h_.rank.has_value() && member.rank == *h_.rank) continue;
        if (collective.late_rank != h_.rank.value_or(-1)) continue;
        waits[member.rank] += member.wait;
        whole[member.rank] += member.end - member.arrival;
      }
    }
    for (const auto& [rank, wait] : waits) {
      if (wait < base::kMilli) continue;
      finding_.victims.push_back({rank, fmt::format("waits {} of {} in its collectives", Ms(wait), Ms(whole[rank]))});
      finding_.view = "horizontal";
    }
    if (Ranks() > 1) finding_.view = "horizontal";
  }

  const Scene& scene_;
  const trace::Store& store_;
  const Hypothesis& h_;
  const std::optional<Counterfactual>& test_;
  Finding finding_;
  uint32_t frame_ = kNoSpan;
};

}  // namespace

Finding Explain(const Scene& scene, const Hypothesis& hypothesis, const std::optional<Counterfactual>& test) {
  return Writer(scene, hypothesis, test).Run();
}

}  // namespace teller::locate
