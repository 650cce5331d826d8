#include "locate/front_end.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "locate/arrival_delay.hpp"
#include "locate/maybe.hpp"
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

constexpr Nanos kMs = 1'000'000;
constexpr Nanos kLeast = 40 * kMs;       // a shorter delay of one request is nobody's fault
constexpr double kTimesUsual = 8;        // by which a delay must exceed what is expected
constexpr double kTimesUsualAlone = 25;  // the same where only one request shows it
constexpr Nanos kLeastAlone = 400 * kMs;
constexpr double kTimesUsualExact = 50;  // where one request shows it, but exactly
constexpr Nanos kLeastExact = 150 * kMs;
constexpr size_t kLeastRequests = 6;    // to know what is usual
constexpr size_t kLeastMeasured = 4;    // the same where it was measured, not bounded
constexpr double kMostAffected = 0.95;  // of all: beyond that there is no contrast
constexpr Nanos kMostCost = 1'000'000'000'000'000'000;
constexpr size_t kShownEvidence = 4;
constexpr Nanos kEdge = 20 * kMs;        // of a delay: what comes and goes there is not inside
constexpr Nanos kCollects = 1200 * kMs;  // a garbage collection of a large Python process may compute as long as that
constexpr double kCollecting = 0.5;      // processors that it uses then, at least

enum class Side : uint8_t {
  kBefore,  ///< before the scheduler has it
  kQueue,   ///< in its queue, while no step runs
  kAfter,   ///< behind the last step
};

/// Time of one request that the front end alone accounts for.
struct Delay {
  uint32_t request = 0;
  Nanos begin = 0;
  Nanos lost = 0;
  double expected = 0;  ///< for its prompt and its company
  bool exact = false;   ///< measured between two points of the engine's own, not bounded from below
  bool own = false;     ///< stated by the front end itself, not bounded by what the engine did
  bool tied = false;    ///< as long as its neighbours', from each one's arrival on
  bool judged = true;   ///< false: an upper bound only, good for learning what is usual
  bool usual = true;    ///< false: a profiler may have held it up, so that it does not tell what is usual
};

/// When an engine demonstrably took work: begins of steps, or, where none were recorded, requests that overtook others.
class Marks {
 public:
  explicit Marks(const trace::Trees& trees)
      : staged_(std::any_of(trees.collectives.begin(), trees.collectives.end(),
                            [](const trace::Collective& c) { return c.point_to_point; })) {
    for (const Step& step : trees.steps) {
      if (step.prefill_requests < 0) continue;
      steps_[step.process.value()].emplace_back(step.begin, step.end);
      if (step.decode_requests > 0 && !staged_) decodes_[step.process.value()].emplace_back(step.begin, step.end);
    }
    for (auto& [process, list] : decodes_) std::sort(list.begin(), list.end());
    for (auto& [process, list] : steps_) std::sort(list.begin(), list.end());
    for (const Request& request : trees.requests) {
      const bool known = request.phase(PhaseKind::kQueue) > 0 || request.phase(PhaseKind::kPrefill) > 0;
      if (request.failed || !known || request.arrival == kNoTime) continue;
      arrivals_[Server(request)].push_back({request.arrival, request.arrival + request.phase(PhaseKind::kFrontEnd)});
    }
    for (auto& [server, list] : arrivals_) std::sort(list.begin(), list.end());
  }

  /// True for a pipeline: its stages have several batches under way, and which of their steps make a request's tokens
  /// is not known.
  bool Staged() const { return staged_; }

  /// Time from `arrival` to the last step but one that began before `admitted`: an engine that has a request may still
  /// begin the step that it had planned, never a second one without it.
  Nanos UntilLastStepButOne(trace::ProcessRow engine, Nanos arrival, Nanos admitted) const {
    const auto found = steps_.find(engine.value());
    if (found == steps_.end()) return 0;
    const auto next = std::lower_bound(found->second.begin(), found->second.end(), std::pair(admitted, Nanos{0})) -
                      found->second.begin();
    if (next < 2) return 0;
    return std::max<Nanos>(0, found->second[static_cast<size_t>(next - 2)].first - arrival);
  }

  /// The longest stretch of [from, to) in which no step ran.
  Nanos LongestIdle(trace::ProcessRow engine, Nanos from, Nanos to) const {
    const auto found = steps_.find(engine.value());
    if (found == steps_.end() || from < found->second.front().first) return 0;  // before anything was recorded
    Nanos longest = 0;
    Nanos at = from;
    auto it = std::upper_bound(found->second.begin(), found->second.end(), std::pair(from, Nanos{0}));
    if (it != found->second.begin()) --it;
    for (; it != found->second.end() && it->first < to; ++it) {
      longest = std::max(longest, it->first - at);
      at = std::max(at, it->second);
    }
    return std::max(longest, to - at);
  }

  /// End of the `tokens`-th step from `first` on that decodes: at the latest then an engine that decodes everything it
  /// runs in each such step has made so many tokens. Nothing where the recording does not hold them, or not every step
  /// decodes all.
  std::optional<Nanos> MadeBy(trace::ProcessRow engine, Nanos first, int64_t tokens) const {
    auto found = decodes_.find(engine.value());
    if (!engine.valid() && decodes_.size() == 1) found = decodes_.begin();
    if (found == decodes_.end() || tokens <= 0 || tokens > kMostTokens) return std::nullopt;
    const auto& list = found->second;
    const auto from = std::lower_bound(list.begin(), list.end(), std::pair(first - kEdge, Nanos{0}));
    if (from == list.begin() || list.end() - from < tokens) return std::nullopt;
    return (from + (tokens - 1))->second;
  }

  /// Without steps: some request came later and was in the engine by `last`, this one not before `admitted` (or its
  /// first token was held back). Whichever it was, the front end accounts for the smaller of the two differences.
  Nanos Overtaken(const Request& request, Nanos admitted) const {
    const Nanos arrival = request.arrival;
    const auto found = arrivals_.find(Server(request));
    if (found == arrivals_.end()) return 0;
    const auto& list = found->second;
    Nanos lost = 0;
    size_t looked = 0;
    auto it = std::upper_bound(list.begin(), list.end(), std::pair(arrival, admitted));
    for (; it != list.end() && it->first < admitted && looked < kMostLooked; ++it, ++looked) {
      const auto [came, last] = *it;
      if (last < admitted) lost = std::max(lost, std::min(admitted - last, came - arrival));
    }
    return lost;
  }

 private:
  bool staged_ = false;
  static constexpr size_t kMostLooked = 4096;
  static constexpr int64_t kMostTokens = 1 << 20;
  static constexpr Nanos kEdge = kMs;  // by which an engine's stamp and a step's edge may miss each other
  std::map<uint32_t, std::vector<std::pair<Nanos, Nanos>>> steps_;    ///< begin and end
  std::map<uint32_t, std::vector<std::pair<Nanos, Nanos>>> decodes_;  ///< of those that decode
  /// Requests that wait for one and the same engine, as far as told.
  static std::string Server(const Request& request) { return request.engine + "/" + request.process; }

  std::map<std::string, std::vector<std::pair<Nanos, Nanos>>> arrivals_;  ///< arrival; in the engine at the latest
};

class Search {
 public:
  Search(const trace::Store& store, const trace::Trees& trees, const std::vector<trace::Note>& notes,
         const CpuWitness* witness)
      : store_(store),
        trees_(trees),
        witness_(witness),
        observed_(ObservedTimes(notes)),
        marks_(trees),
        own_(OwnDelays(trees)) {}

  std::vector<Finding> Run() {
    std::vector<Finding> findings;
    for (const Side side : {Side::kBefore, Side::kQueue, Side::kAfter}) {
      std::vector<Delay> delays = Delays(side);
      std::vector<Delay> bad = StandingOut(side, delays);
      if (!bad.empty()) findings.push_back(Write(side, bad, delays.size()));
    }
    return findings;
  }

 private:
  std::vector<Delay> Delays(Side side) const {
    std::vector<Delay> delays;
    for (uint32_t r = 0; r < trees_.requests.size(); ++r) {
      const Request& request = trees_.requests[r];
      if (request.failed || request.phases.empty() || request.arrival == kNoTime) continue;
      Delay delay{.request = r};
      if (!Judge(side, request, delay)) continue;
      delay.usual = observed_.Of(delay.begin, delay.begin + delay.lost) == 0;
      delays.push_back(delay);
    }
    return delays;
  }

  bool Before(const Request& request, Delay& delay) const {
    delay.begin = request.arrival;
    if (const auto found = own_.find(delay.request); found != own_.end() && request.handed_on < 0) {
      delay.lost = found->second;
      delay.tied = true;
      return true;
    }
    if (request.handed_on >= 0) {
      delay.lost = request.handed_on;
      delay.own = true;
      return true;
    }
    const Nanos admitted = request.arrival + request.phase(PhaseKind::kFrontEnd);
    const bool pinned = !request.steps.empty() && request.steps.front().prefill;
    if (!pinned && !trees_.steps.empty()) {  // it may lie where no step was recorded
      delay.lost = request.phase(PhaseKind::kFrontEnd);
      delay.judged = false;
      return true;
    }
    delay.lost = pinned ? marks_.UntilLastStepButOne(request.served_by, request.arrival, admitted - kMs)
                        : marks_.Overtaken(request, admitted);
    return true;
  }

  bool Judge(Side side, const Request& request, Delay& delay) const {
    switch (side) {
      case Side::kBefore: return Before(request, delay);
      case Side::kQueue: return Queue(request, delay);
      case Side::kAfter: return After(request, delay);
    }
    return false;
  }

  /// A queue is for requests that wait for a step to end or for room; an engine that has one and runs nothing stands
  /// still.
  bool Queue(const Request& request, Delay& delay) const {
    if (request.steps.empty() || !request.steps.front().prefill) {
      delay.lost = request.phase(PhaseKind::kQueue);
      delay.judged = false;
      return !trees_.steps.empty();
    }
    const Nanos from = request.arrival + request.phase(PhaseKind::kFrontEnd);
    const Nanos to = from + request.phase(PhaseKind::kQueue);
    delay.begin = from;
    delay.lost = marks_.LongestIdle(request.served_by, from, to);
    delay.own = true;
    delay.exact = request.cover == trace::StepCover::kExact;
    return true;
  }

  bool After(const Request& request, Delay& delay) const {
    const bool whole = request.cover == trace::StepCover::kExact && !marks_.Staged();
    const std::optional<Nanos> made = whole ? std::nullopt : MadeBy(request);
    if (request.first_out < 0 && !whole && !made.has_value()) return false;
    delay.lost = std::max<Nanos>(0, request.first_out);
    delay.begin = request.first_out < 0 ? request.arrival : request.arrival + request.ttft - request.first_out;
    const Nanos last_out = whole ? request.phase(PhaseKind::kOutput) : made.has_value() ? request.finished - *made : 0;
    if (last_out > delay.lost) {
      delay.lost = last_out;
      delay.begin = request.finished - last_out;
    }
    delay.own = true;
    delay.exact = whole;
    return true;
  }

  /// When the engine had made all tokens of a request at the latest, by the steps that it ran since the first one.
  std::optional<Nanos> MadeBy(const Request& request) const {
    constexpr Nanos kMostError = 20 * kMs;
    if (request.output_tokens < 2 || request.preemptions > 0 || request.phase(PhaseKind::kPrefill) <= 0 ||
        request.at_error > kMostError || request.finished == kNoTime)
      return std::nullopt;
    const Nanos first = request.arrival + request.phase(PhaseKind::kFrontEnd) + request.phase(PhaseKind::kQueue) +
                        request.phase(PhaseKind::kPrefill);
    const auto made = marks_.MadeBy(request.served_by, first, request.output_tokens - 1);
    if (!made.has_value() || *made > request.finished) return std::nullopt;
    return made;
  }

  /// Delays far beyond what their prompts and their company make of the usual one.
  std::vector<Delay> StandingOut(Side side, std::vector<Delay>& delays) const {
    if (delays.size() < (side == Side::kAfter ? kLeastMeasured : kLeastRequests)) return {};
    std::vector<double> lost;
    std::vector<double> prompts;
    std::vector<Nanos> begins;
    std::vector<Nanos> ends;
    for (const Delay& delay : delays) {
      if (delay.usual) lost.push_back(static_cast<double>(delay.lost));
      begins.push_back(delay.begin);
      ends.push_back(delay.begin + delay.lost);
      prompts.push_back(static_cast<double>(std::max<int64_t>(1, trees_.requests[delay.request].prompt_tokens)));
    }
    std::sort(begins.begin(), begins.end());
    std::sort(ends.begin(), ends.end());
    if (lost.size() < kLeastMeasured) return {};
    const double usual = std::max(ml::Quantile(lost, 0.4), static_cast<double>(2 * kMs));
    const double prompt = std::max(1.0, ml::Quantile(prompts, 0.5));
    std::vector<Delay> bad;
    for (size_t i = 0; i < delays.size(); ++i) {
      Delay& delay = delays[i];
      if (!delay.judged) continue;
      // Those that were under way at the same time may have had to wait for each other.
      const auto begun = std::lower_bound(begins.begin(), begins.end(), delay.begin + delay.lost) - begins.begin();
      const auto over = std::upper_bound(ends.begin(), ends.end(), delay.begin) - ends.begin();
      const auto company = begun - over;
      delay.expected =
          usual * std::max(1.0, prompts[i] / prompt) * static_cast<double>(std::max<std::ptrdiff_t>(1, company));
      if (delay.lost >= kLeast && static_cast<double>(delay.lost) >= kTimesUsual * delay.expected) bad.push_back(delay);
    }
    if (bad.size() == 1) {
      const Delay& only = bad.front();
      const Nanos least = only.exact ? kLeastExact : kLeastAlone;
      const double times = only.exact ? kTimesUsualExact : kTimesUsualAlone;
      if (only.lost < least || static_cast<double>(only.lost) < times * only.expected) bad.clear();
    }
    if (static_cast<double>(bad.size()) > kMostAffected * static_cast<double>(delays.size())) bad.clear();
    return bad;
  }

  std::string Process(Side side, const Request& request) const {
    if (side == Side::kQueue && request.served_by.valid()) return SchedulerName(store_, request.served_by);
    std::string engine = request.engine;
    if (engine.empty() && request.served_by.valid()) engine = store_.processes[request.served_by.value()].engine;
    if (engine == "vllm") return "APIServer";
    if (engine == "sglang") return side == Side::kBefore ? "tokenizer_manager" : "detokenizer";
    if (engine == "llama.cpp") return "llama-server";
    return request.process;
  }

  static std::string Where(Side side) {
    switch (side) {
      case Side::kBefore: return "between their arrival and the scheduler";
      case Side::kQueue: return "in the scheduler's queue while the engine ran no step";
      case Side::kAfter: return "between the making of a token and its leaving the server";
    }
    return {};
  }

  static std::string Why(Side side) {
    switch (side) {
      case Side::kBefore: return "HTTP handling, tokenizer or a blocked event loop";
      case Side::kQueue:
        return "it stood still (stopped, collecting garbage or without a processor) although it had work";
      case Side::kAfter: return "detokenizer, event loop or the way out";
    }
    return {};
  }

  /// Of two processes on the way out, the one that also lets requests in is to blame when several requests came as soon
  /// as the delay was over and none during it, unless the other one computed all the while.
  bool ShutTheDoor(const Delay& delay, size_t affected) const {
    const Nanos end = delay.begin + delay.lost;
    if (witness_ != nullptr && witness_->During("detokenizer", delay.begin, end) == CpuWitness::Use::kWorking)
      return false;
    size_t after = 0;
    for (const Request& request : trees_.requests) {
      if (request.arrival > delay.begin + kEdge && request.arrival < end - kEdge) return false;
      after += request.arrival >= end - kEdge && request.arrival <= end + 2 * kEdge ? 1 : 0;
    }
    return after >= 2 || (after == 1 && affected > 2);
  }

  /// True when nothing came into or out of the process for the length of a delay, and it used no processor: it did
  /// not work slowly, it did not work.
  bool StoodStill(const Delay& delay, const std::string& process) const {
    if (witness_ == nullptr) return false;
    const auto use = witness_->During(process, delay.begin, delay.begin + delay.lost);
    if (use != CpuWitness::Use::kIdle && use != CpuWitness::Use::kStill) return false;
    const Nanos from = delay.begin + kEdge;
    const Nanos to = delay.begin + delay.lost - kEdge;
    const bool lets_in = process != "detokenizer";  // requests come in by another process
    return std::none_of(trees_.requests.begin(), trees_.requests.end(), [&](const Request& request) {
      const bool came = lets_in && request.arrival > from && request.arrival < to;
      return came || (request.finished > from && request.finished < to);
    });
  }

  Finding Write(Side side, const std::vector<Delay>& bad, size_t all) const {
    const Request& first = trees_.requests[bad.front().request];
    Finding finding;
    finding.fault = FaultClass::kHostCpuBound;
    finding.alternatives = {
        {FaultClass::kPreForwardStall, 0.25}, {FaultClass::kFrontendNet, 0.15}, {FaultClass::kRuntimePause, 0.1}};
    if (side == Side::kAfter)
      finding.alternatives = {{FaultClass::kRuntimePause, 0.3}, {FaultClass::kFrontendNet, 0.2}};
    if (side == Side::kQueue) {
      finding.fault = FaultClass::kRuntimePause;
      finding.alternatives = {
          {FaultClass::kHostCpuBound, 0.3}, {FaultClass::kSchedStall, 0.2}, {FaultClass::kCpuStarved, 0.2}};
    }
    finding.view = "vertical";
    finding.culprit.process = Process(side, first);
    finding.culprit.layer = side == Side::kQueue ? "process" : "python";
    std::vector<double> times;
    const Delay* worst = &bad.front();
    for (const Delay& delay : bad) {
      finding.onset = finding.onset == kNoTime ? delay.begin : std::min(finding.onset, delay.begin);
      finding.end = finding.end == kNoTime ? delay.begin + delay.lost : std::max(finding.end, delay.begin + delay.lost);
      finding.cost = std::min(kMostCost, finding.cost + std::min(delay.lost, kMostCost));
      times.push_back(static_cast<double>(delay.lost) / std::max(1.0, delay.expected));
      if (delay.lost > worst->lost) worst = &delay;
    }
    if (side == Side::kAfter && finding.culprit.process == "detokenizer" && ShutTheDoor(*worst, bad.size()))
      finding.culprit.process = "tokenizer_manager";
    if (side == Side::kAfter && StoodStill(*worst, finding.culprit.process)) {
      finding.fault = FaultClass::kRuntimePause;
      finding.alternatives = {{FaultClass::kHostCpuBound, 0.35}, {FaultClass::kFrontendNet, 0.1}};
    }
    // How far the typical affected one is beyond the expected, and how many agree.
    const double ratio = ml::Quantile(times, 0.5);
    finding.false_alarm_probability = std::pow(ratio, -1.5 * std::sqrt(static_cast<double>(bad.size()))) * 0.5;
    const bool once = IsOneCollection(finding, worst->lost);
    if (once) finding.false_alarm_probability = std::max(finding.false_alarm_probability, kMaybe);
    finding.score = std::clamp(1 - 10 * finding.false_alarm_probability, 0.5, 0.97);
    std::vector<Delay> shown = bad;
    std::stable_sort(shown.begin(), shown.end(), [](const Delay& a, const Delay& b) { return a.lost > b.lost; });
    for (size_t i = 0; i < std::min(shown.size(), kShownEvidence); ++i) AddEvidence(side, shown[i], finding);
    for (const Delay& delay : bad)
      finding.victims.push_back(
          {std::nullopt, "request " + trees_.requests[delay.request].id + " is delayed by " + Ms(delay.lost)});
    const std::string where = Where(side);
    const std::string engine = side == Side::kQueue   ? " An idle engine takes a request at once."
                               : side == Side::kAfter ? " The engine had made it by then."
                               : worst->tied          ? " Each begins with its own arrival and lasts as long as the "
                                                        "others, whatever the engine does meanwhile."
                               : worst->own           ? " The front end itself states when it handed them on."
                                            : " The engine took other work meanwhile, so it did not hold them up.";
    finding.explanation = fmt::format(
        "{} of {} requests lost {} {} (up to {}; {} is expected for their size and company) [E1].{} The cause lies in "
        "{}: {}.",
        bad.size(), all, Ms(finding.cost), where, Ms(worst->lost), Ms(static_cast<Nanos>(worst->expected)), engine,
        finding.culprit.process.empty() ? "the front end" : finding.culprit.process,
        finding.fault == FaultClass::kRuntimePause && side == Side::kAfter
            ? "it stood still as a whole: nothing passed it and it used no processor (stopped, or its event "
              "loop blocked)"
            : Why(side));
    if (once) finding.explanation += " It happened once: a garbage collection takes as long in a healthy process.";
    return finding;
  }

  /// True when all that was delayed was so by one interruption in which the process computed.
  bool IsOneCollection(const Finding& finding, Nanos longest) const {
    if (finding.fault != FaultClass::kHostCpuBound || witness_ == nullptr) return false;
    const Nanos whole = finding.end - finding.onset;
    return whole <= kCollects && whole <= longest + longest / 4 &&
           witness_->Used(finding.culprit.process, finding.onset, finding.end) >= kCollecting;
  }

  void AddEvidence(Side side, const Delay& delay, Finding& finding) const {
    const Request& request = trees_.requests[delay.request];
    CiteRequest(finding, store_, request, delay.begin,
                fmt::format("request {}: {} {} where {} is expected", request.id, Ms(delay.lost), Where(side),
                            Ms(static_cast<Nanos>(delay.expected))));
  }

  const trace::Store& store_;
  const trace::Trees& trees_;
  const CpuWitness* witness_;
  Coverage observed_;  ///< a profiler held up serving
  Marks marks_;
  std::map<uint32_t, Nanos> own_;  ///< waits of an idle engine that are the front end's own
};

}  // namespace

std::vector<Finding> FindFrontEndCauses(const trace::Store& store, const trace::Trees& trees,
                                        const std::vector<trace::Note>& notes, const CpuWitness* witness) {
  return Search(store, trees, notes, witness).Run();
}

}  // namespace teller::locate
