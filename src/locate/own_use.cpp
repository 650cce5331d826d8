#include "locate/own_use.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "locate/coverage.hpp"
#include "locate/maybe.hpp"
#include "locate/naming.hpp"
#include "locate/observed.hpp"
#include "locate/proof.hpp"
#include "ml/robust.hpp"

namespace teller::locate {

namespace {

using trace::CounterSample;
using trace::CounterSeries;
using trace::FaultClass;
using trace::Finding;
using trace::kNoTime;
using trace::Nanos;
using trace::PhaseKind;

constexpr double kCovered = 0.9;           // of a sample's time with requests in the engine
constexpr size_t kLeastSamples = 4;        // that are alike, to know what is usual,
constexpr double kLeastTime = 3;           // and s that they last
constexpr size_t kLeastAtRest = 3;         // without any request: to know that it runs at all times
constexpr double kLeastUsual = 0.5;        // processors that it takes
constexpr double kVaries = 0.15;           // of the usual, either way
constexpr double kSteady = 0.85;           // of the time, in which it varies no more
constexpr double kLow = 0.6;               // of the usual: held back
constexpr double kFree = 0.25;             // processors that did nothing, at least,
constexpr double kFreeOfMissing = 0.5;     // and at least this part of what it did not use
constexpr double kLeastLost = 0.3;         // s of processor time
constexpr double kMostLow = 0.4;           // of the time: beyond that there is no usual
constexpr double kNothing = 0.05;          // of the usual
constexpr Nanos kLongest = 3'000'000'000;  // between two samples
constexpr double kOthers = 0.5;            // of what it did not use: programs that nobody counts used as much more

/// What happened between two samples of one process.
struct Sample {
  Nanos begin = 0;
  Nanos end = 0;
  double used = 0;    ///< processors
  double free = 0;    ///< processors of the machine that did nothing
  double others = 0;  ///< processors that programs used of which there are no counters
  double seconds() const { return static_cast<double>(end - begin) / 1e9; }
};

using Values = std::vector<std::pair<Nanos, double>>;  // time, counter

Values InOrder(const std::vector<const CounterSample*>& samples) {
  Values values;
  for (const CounterSample* sample : samples) {
    if (sample->at != kNoTime && std::isfinite(sample->value)) values.emplace_back(sample->at, sample->value);
  }
  std::stable_sort(values.begin(), values.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return values;
}

/// What one file of counters says of the machine as a whole.
struct Machine {
  std::map<Nanos, double> idle;
  std::map<Nanos, double> busy;
  std::map<Nanos, std::pair<size_t, double>> counted;  ///< processes that have counters, and what they used

  /// What the others used in between; 0 where that is not told.
  double Others(const Sample& sample) const {
    const auto from = busy.find(sample.begin);
    const auto to = busy.find(sample.end);
    const auto before = counted.find(sample.begin);
    const auto after = counted.find(sample.end);
    if (from == busy.end() || to == busy.end() || before == counted.end() || after == counted.end() ||
        before->second.first != after->second.first)
      return 0;
    return (to->second - from->second - (after->second.second - before->second.second)) / sample.seconds();
  }
};

/// Both counters' changes between their common times; a restart or a long silence gives none.
std::vector<Sample> Changes(const Values& used, const Machine& machine) {
  const std::map<Nanos, double>& idle_at = machine.idle;
  std::vector<Sample> out;
  for (size_t i = 1; i < used.size(); ++i) {
    const auto from = idle_at.find(used[i - 1].first);
    const auto to = idle_at.find(used[i].first);
    Sample sample{.begin = used[i - 1].first, .end = used[i].first};
    if (from == idle_at.end() || to == idle_at.end() || sample.end <= sample.begin ||
        sample.end - sample.begin > kLongest)
      continue;
    sample.used = (used[i].second - used[i - 1].second) / sample.seconds();
    sample.free = (to->second - from->second) / sample.seconds();
    sample.others = machine.Others(sample);
    if (sample.used >= 0 && sample.free >= 0) out.push_back(sample);
  }
  return out;
}

bool IsUsual(const Sample& sample, double usual) {
  return std::abs(sample.used - usual) <= kVaries * usual;
}

/// Clearly less than usual, and not for want of a processor.
bool IsLess(const Sample& sample, double usual, double share) {
  return sample.used <= share * usual &&
         sample.free >= std::max(kFree, kFreeOfMissing * std::max(0.0, usual - sample.used));
}

class Search {
 public:
  Search(const trace::Store& store, const trace::Trees& trees, const std::vector<trace::Note>& notes)
      : store_(store), observed_(ObservedTimes(notes)) {
    std::vector<std::pair<Nanos, Nanos>> inside;
    std::vector<std::pair<Nanos, Nanos>> under_way;
    for (const trace::Request& request : trees.requests) {
      if (request.arrival == kNoTime || request.finished == kNoTime) continue;
      under_way.emplace_back(request.arrival, request.finished);
      const Nanos admitted = request.arrival + request.phase(PhaseKind::kFrontEnd);
      inside.emplace_back(admitted, admitted + request.phase(PhaseKind::kQueue) + request.phase(PhaseKind::kPrefill) +
                                        request.phase(PhaseKind::kDecode));
    }
    inside_ = Coverage(std::move(inside));
    under_way_ = Coverage(std::move(under_way));
  }

  std::vector<Finding> Run() {
    std::map<uint32_t, std::vector<const CounterSample*>> by_series;
    for (const CounterSample& sample : store_.counters) {
      if (sample.series.valid()) by_series[sample.series.value()].push_back(&sample);
    }
    std::map<uint32_t, Machine> machines;  // by file
    for (const auto& [row, samples] : by_series) {
      const CounterSeries& series = store_.counter_series[row];
      Machine& machine = machines[series.file.value()];
      const Values values = InOrder(samples);
      if (series.process_name.empty() && series.name == "idle_s") machine.idle = {values.begin(), values.end()};
      if (series.process_name.empty() && series.name == "busy_s") machine.busy = {values.begin(), values.end()};
      if (series.process_name.empty() || series.name != "cpu_s") continue;
      for (const auto& [at, used] : values) {
        auto& [processes, sum] = machine.counted[at];
        ++processes;
        sum += used;
      }
    }
    std::vector<Finding> findings;
    for (const auto& [row, samples] : by_series) {
      const CounterSeries& series = store_.counter_series[row];
      const Machine& machine = machines[series.file.value()];
      if (series.process_name.empty() || series.name != "cpu_s" || machine.idle.empty()) continue;
      const auto changes = Changes(InOrder(samples), machine);
      if (auto finding = Judge(series, changes); finding.has_value()) findings.push_back(std::move(*finding));
    }
    return findings;
  }

 private:
  static bool Covers(const Coverage& coverage, const Sample& sample) {
    return static_cast<double>(coverage.Of(sample.begin, sample.end)) >=
           kCovered * static_cast<double>(sample.end - sample.begin);
  }

  /// The process's samples that count, in order, those that do not left out; empty where its use is not steady.
  std::vector<Sample> Steady(const std::vector<Sample>& all, double& usual) const {
    std::vector<Sample> asked;
    std::vector<Sample> busy;
    std::vector<Sample> at_rest;
    for (const Sample& sample : all) {
      if (observed_.Of(sample.begin, sample.end) > 0) continue;
      if (Covers(inside_, sample)) busy.push_back(sample);
      (under_way_.Of(sample.begin, sample.end) > 0 ? asked : at_rest).push_back(sample);
    }
    if (at_rest.size() >= kLeastAtRest && IsSteady(asked, usual)) {
      const auto spins =
          std::count_if(at_rest.begin(), at_rest.end(), [&](const Sample& sample) { return IsUsual(sample, usual); });
      if (static_cast<double>(spins) >= kSteady * static_cast<double>(at_rest.size())) return asked;
    }
    return IsSteady(busy, usual) ? busy : std::vector<Sample>();
  }

  /// True when the use is alike for nearly all of the time, but for where it was held back.
  static bool IsSteady(const std::vector<Sample>& samples, double& usual) {
    std::vector<double> used;
    for (const Sample& sample : samples) used.push_back(sample.used);
    if (used.size() < kLeastSamples) return false;
    size_t usual_ones = 0;
    usual = ml::Quantile(used, 0.6);
    double all = 0;
    double alike = 0;
    double low = 0;
    for (const Sample& sample : samples) {
      all += sample.seconds();
      if (IsLess(sample, usual, 1 - kVaries)) {
        low += sample.seconds();
      } else if (IsUsual(sample, usual)) {
        alike += sample.seconds();
        ++usual_ones;
      }
    }
    return usual >= kLeastUsual && usual_ones >= kLeastSamples && alike >= kLeastTime &&
           alike >= kSteady * (all - low) && low <= kMostLow * all;
  }

  std::optional<Finding> Judge(const CounterSeries& series, const std::vector<Sample>& all) const {
    double usual = 0;
    const std::vector<Sample> samples = Steady(all, usual);
    std::vector<Sample> best;
    double most = 0;
    std::vector<Sample> run;
    for (size_t i = 0; i <= samples.size(); ++i) {
      const bool joins = i < samples.size() && IsLess(samples[i], usual, 1 - kVaries) &&
                         (run.empty() || run.back().end == samples[i].begin);
      if (joins) {
        run.push_back(samples[i]);
        continue;
      }
      const bool held = std::any_of(run.begin(), run.end(), [&](const Sample& s) { return IsLess(s, usual, kLow); });
      const double lost = Lost(run, usual);
      if (held && lost > most) {
        most = lost;
        best = run;
      }
      run.clear();
      if (i < samples.size() && IsLess(samples[i], usual, 1 - kVaries)) run.push_back(samples[i]);
    }
    if (most < kLeastLost) return std::nullopt;
    Finding finding = Write(series, best, usual, most);
    if (OthersTook(samples, best) < kOthers * most) return finding;
    finding.false_alarm_probability = kMaybe;  // it may have waited for one that it started (a compiler)
    finding.explanation +=
        " Programs of which there are no counters used as much meanwhile: it may have waited for one.";
    return finding;
  }

  /// Processor time that uncounted programs took in `run` beyond what they usually take, s.
  static double OthersTook(const std::vector<Sample>& samples, const std::vector<Sample>& run) {
    std::vector<double> usual;
    for (const Sample& sample : samples) usual.push_back(sample.others);
    const double middle = ml::Quantile(usual, 0.5);
    double sum = 0;
    for (const Sample& sample : run) sum += (sample.others - middle) * sample.seconds();
    return sum;
  }

  static double Lost(const std::vector<Sample>& run, double usual) {
    double lost = 0;
    for (const Sample& sample : run) lost += (usual - sample.used) * sample.seconds();
    return lost;
  }

  /// One stop leaves next to nothing in the samples that it fills; a quota leaves a little in each.
  static bool IsQuota(const std::vector<Sample>& run, double usual) {
    if (run.size() < 3) return false;
    const auto nothing =
        std::count_if(run.begin() + 1, run.end() - 1, [&](const Sample& s) { return s.used <= kNothing * usual; });
    return 2 * static_cast<size_t>(nothing) < run.size() - 2;
  }

  trace::ProcessRow RowOf(const std::string& name) const {
    for (uint32_t p = 0; p < store_.processes.size(); ++p) {
      if (ProcessName(store_, trace::ProcessRow(p)) == name) return trace::ProcessRow(p);
    }
    return {};
  }

  Finding Write(const CounterSeries& series, const std::vector<Sample>& run, double usual, double lost) const {
    const bool quota = IsQuota(run, usual);
    double used = 0;
    double free = 0;
    for (const Sample& sample : run) {
      used += sample.used * sample.seconds();
      free += sample.free * sample.seconds();
    }
    const double time = static_cast<double>(run.back().end - run.front().begin) / 1e9;
    Finding finding;
    finding.fault = quota ? FaultClass::kCpuStarved : FaultClass::kRuntimePause;
    finding.alternatives = {{quota ? FaultClass::kRuntimePause : FaultClass::kCpuStarved, quota ? 0.1 : 0.3},
                            {FaultClass::kHostCpuBound, 0.1}};
    finding.view = "vertical";
    finding.culprit.process = series.process_name;
    finding.culprit.layer = quota ? "host" : "process";
    if (const trace::ProcessRow row = RowOf(series.process_name); row.valid())
      finding.culprit.rank = store_.processes[row.value()].rank;
    finding.onset = run.front().begin;
    finding.end = run.back().end;
    finding.cost = static_cast<Nanos>(lost / usual * 1e9);
    finding.score = 0.88;
    finding.false_alarm_probability = 0.003;
    CiteCounters(finding, series.file, finding.onset,
                 fmt::format("{} uses {:.2f} processors where {:.2f} are usual, for {}, while {:.2f} are idle",
                             series.process_name, used / time, usual, Ms(finding.end - finding.onset), free / time));
    finding.explanation = fmt::format(
        "{} has work but does not run: it uses {:.2f} processors for {}, {:.2f} whenever else requests are in the "
        "engine, and {:.2f} processors of the machine are idle meanwhile [E1]. {}",
        series.process_name, used / time, Ms(finding.end - finding.onset), usual, free / time,
        quota
            ? "It gets a little in every sample, as under a processor quota."
            : fmt::format("It stood still for about {} (stopped, frozen or waiting for something).", Ms(finding.cost)));
    return finding;
  }

  const trace::Store& store_;
  Coverage observed_;   ///< a profiler held up serving
  Coverage inside_;     ///< from admission to the last token of any request
  Coverage under_way_;  ///< from arrival to end of any request
};

}  // namespace

std::vector<Finding> FindUnusedProcessors(const trace::Store& store, const trace::Trees& trees,
                                          const std::vector<trace::Note>& notes) {
  return Search(store, trees, notes).Run();
}

}  // namespace teller::locate
