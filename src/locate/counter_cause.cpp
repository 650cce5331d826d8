#include "locate/counter_cause.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "locate/coverage.hpp"
#include "locate/naming.hpp"
#include "locate/observed.hpp"
#include "locate/own_use.hpp"
#include "locate/proof.hpp"
#include "ml/robust.hpp"

namespace teller::locate {

namespace {

bool IsThrownBack(const std::string& name) {
  return (name.find("preempt") != std::string::npos || name.find("retracted_req") != std::string::npos) &&
         name.ends_with("_total");
}

using trace::CounterSample;
using trace::CounterSeries;
using trace::FaultClass;
using trace::Finding;
using trace::kNoTime;
using trace::Nanos;

constexpr Nanos kLeastTime = 400'000'000;  // a shorter shortage is the scheduler's daily life
constexpr Nanos kLeastFull = 900'000'000;  // the same where the machine as a whole is short
constexpr double kWaits = 0.45;            // share of the time it wants to run that a process waits
constexpr double kWants = 0.25;            // processors that it wants at least
constexpr double kThrottled = 0.2;         // share of the time
constexpr double kOthers = 0.65;           // share of the machine's processors that others take
constexpr double kServed = 0.9;            // of the time in which requests must be under way
constexpr double kWorks = 0.1;             // processors that a working service takes at least
constexpr size_t kLeastRates = 5;          // intervals in which it works, to know what is usual
constexpr double kLessThanUsual = 0.5;     // of that, where others have its processors
constexpr double kStillGets = 0.08;        // of the usual: one that gets less is not waiting for a processor
constexpr double kNoIdle = 0.05;           // share of the machine that is idle when it is full
constexpr double kFull = 0.85;             // KV usage
constexpr double kLeastThrownBack = 2;
constexpr double kMostThrownBack = 1e7;   // between two scrapes: more is no count
constexpr Nanos kScrape = 2'000'000'000;  // counters are read so often at least, or nothing is known in between
constexpr double kMostUsage = 1.01;       // a share
constexpr double kFaultRate = 10;         // major page faults a second that slow a process
constexpr double kLeastFaults = 20;       // of one shortage
constexpr double kFaultsApart = 10;       // times as many a second as in the rest of the time

/// Samples of one counter in order of time; those without a time come in order of their scrape.
using Samples = std::vector<const CounterSample*>;

/// Interval between two samples of one file.
struct Interval {
  Nanos begin = 0;
  Nanos end = 0;
  double value = 0;  ///< what the search is about
};

double Seconds(Nanos ns) {
  return static_cast<double>(ns) / 1e9;
}

class Search {
 public:
  Search(const trace::Store& store, const trace::Trees& trees, const std::vector<trace::Note>& notes)
      : store_(store), observed_(ObservedTimes(notes)) {
    std::vector<std::pair<Nanos, Nanos>> served;
    for (const trace::Request& request : trees.requests) {
      if (request.arrival != kNoTime && request.finished != kNoTime)
        served.emplace_back(request.arrival, request.finished);
    }
    served_ = Coverage(std::move(served));
    for (const CounterSample& sample : store.counters) {
      if (sample.series.valid() && std::isfinite(sample.value)) samples_[sample.series.value()].push_back(&sample);
    }
    for (auto& [series, list] : samples_) {
      std::stable_sort(list.begin(), list.end(), [](const CounterSample* a, const CounterSample* b) {
        return std::tie(a->at, a->scrape) < std::tie(b->at, b->scrape);
      });
    }
    for (const auto& [series, list] : samples_) {
      const CounterSeries& s = store.counter_series[series];
      by_name_[{s.file.value(), s.process_name, s.name}] = series;
    }
  }

  std::vector<Finding> Run() {
    for (const auto& [key, series] : by_name_) {
      const auto& [file, process, name] = key;
      if (name == "wait_ns") RunQueue(file, process);
      if (name == "throttled_time") Throttled(file, process);
      if (name == "busy_s") Machine(file);
      if (name == "majflt" || name == "major_faults") PageFaults(file, process, name);
    }
    ThrownBack();
    return std::move(findings_);
  }

 private:
  const Samples* Find(uint32_t file, const std::string& process, const std::string& name) const {
    const auto found = by_name_.find({file, process, name});
    return found == by_name_.end() ? nullptr : &samples_.at(found->second);
  }

  /// The change of a counter between two times of its own samples; none at a restart.
  static std::optional<double> Change(const Samples& samples, Nanos from, Nanos to) {
    const auto at = [&](Nanos t) -> const CounterSample* {
      const auto it = std::lower_bound(samples.begin(), samples.end(), t,
                                       [](const CounterSample* s, Nanos u) { return s->at < u; });
      return it != samples.end() && (*it)->at == t ? *it : nullptr;
    };
    const CounterSample* a = at(from);
    const CounterSample* b = at(to);
    if (a == nullptr || b == nullptr || b->value < a->value) return std::nullopt;
    return b->value - a->value;
  }

  /// Joins neighbouring intervals that pass and keeps the longest run. `of` gives an interval's value, or nothing.
  template <class Of>
  std::optional<Interval> LongestRun(const Samples& samples, Of of, Nanos least = kLeastTime) const {
    std::optional<Interval> best;
    std::optional<Interval> run;
    for (size_t i = 1; i < samples.size(); ++i) {
      const Nanos begin = samples[i - 1]->at;
      const Nanos end = samples[i]->at;
      if (begin == kNoTime || end <= begin) continue;
      const std::optional<double> value = of(begin, end);
      if (!value.has_value()) {
        run.reset();
        continue;
      }
      if (!run.has_value()) run = Interval{begin, end, 0};
      run->end = end;
      run->value += *value * Seconds(end - begin);
      if (!best.has_value() || run->end - run->begin > best->end - best->begin) best = run;
    }
    if (!best.has_value() || best->end - best->begin < least) return std::nullopt;
    best->value /= Seconds(best->end - best->begin);
    return best;
  }

  std::string OnlyProcess() const {
    std::string name;
    for (uint32_t p = 0; p < store_.processes.size(); ++p) {
      const std::string own = ProcessName(store_, trace::ProcessRow(p));
      if (own.empty() || own == name) continue;
      if (!name.empty()) return {};
      name = own;
    }
    return name;
  }

  Finding& Add(FaultClass fault, uint32_t file, std::string process, const char* layer, const Interval& when,
               const std::string& text) {
    Finding& finding = findings_.emplace_back();
    finding.fault = fault;
    finding.view = "vertical";
    finding.culprit.rank = RankOf(process);
    finding.culprit.process = std::move(process);
    finding.culprit.layer = layer;
    finding.onset = when.begin;
    finding.end = when.end;
    finding.score = 0.9;
    finding.false_alarm_probability = 0.002;
    CiteCounters(finding, trace::FileRow(file), when.begin, text);
    return finding;
  }

  /// Of a worker that traces, or else logs, know by the same name; nothing where several ranks have it.
  std::optional<int> RankOf(const std::string& process) const {
    std::set<int> ranks;
    if (process.empty()) return std::nullopt;
    for (uint32_t p = 0; p < store_.processes.size(); ++p) {
      const auto& rank = store_.processes[p].rank;
      if (rank && ProcessName(store_, trace::ProcessRow(p)) == process) ranks.insert(*rank);
    }
    if (ranks.empty()) {
      for (size_t row = 0; row < store_.logs.size(); ++row) {
        if (store_.logs[row].rank && store_.logs[row].process == process) ranks.insert(*store_.logs[row].rank);
      }
    }
    return ranks.size() == 1 ? std::optional(*ranks.begin()) : std::nullopt;
  }

  void RunQueue(uint32_t file, const std::string& process) {
    const Samples* waits = Find(file, process, "wait_ns");
    const Samples* runs = Find(file, process, "run_ns");
    if (waits == nullptr || runs == nullptr) return;
    const auto run = LongestRun(*waits, [&](Nanos begin, Nanos end) -> std::optional<double> {
      const auto wait = Change(*waits, begin, end);
      const auto ran = Change(*runs, begin, end);
      if (!wait.has_value() || !ran.has_value()) return std::nullopt;
      const double wanted = (*wait + *ran) / static_cast<double>(end - begin);
      if (wanted < kWants || *wait < kWaits * (*wait + *ran)) return std::nullopt;
      return *wait / (*wait + *ran);
    });
    if (!run.has_value()) return;
    const std::string who = process.empty() ? OnlyProcess() : process;
    const std::string text =
        fmt::format("{} waits for a processor {:.0f} % of the time that it wants to run, for {}",
                    who.empty() ? "the process" : who, 100 * run->value, Ms(run->end - run->begin));
    Finding& finding = Add(FaultClass::kCpuStarved, file, who, "host", *run, text);
    finding.alternatives = {{FaultClass::kHostCpuBound, 0.1}};
    finding.cost = static_cast<Nanos>(run->value * static_cast<double>(run->end - run->begin));
    finding.explanation = fmt::format(
        "{} wants to run but {:.0f} % of that time it stands in the run queue, for {} [E1]: other work has the "
        "processors.",
        who.empty() ? std::string("The process") : who, 100 * run->value, Ms(run->end - run->begin));
  }

  void Throttled(uint32_t file, const std::string& process) {
    const Samples* throttled = Find(file, process, "throttled_time");
    const auto run = LongestRun(*throttled, [&](Nanos begin, Nanos end) -> std::optional<double> {
      const auto time = Change(*throttled, begin, end);
      if (!time.has_value() || *time < kThrottled * static_cast<double>(end - begin)) return std::nullopt;
      return *time / static_cast<double>(end - begin);
    });
    if (!run.has_value()) return;
    const std::string who = process.empty() ? OnlyProcess() : process;
    const std::string text = fmt::format("the control group of {} is throttled {:.2f} s in a second, for {}",
                                         who.empty() ? "the process" : who, run->value, Ms(run->end - run->begin));
    Finding& finding = Add(FaultClass::kCpuStarved, file, who, "host", *run, text);
    finding.explanation =
        fmt::format("The processor quota of {}'s control group is used up: it was throttled for {} [E1].",
                    who.empty() ? std::string("the process") : who, Ms(run->end - run->begin));
  }

  /// True when some request is being served for nearly all of [begin, end): the service wants to run.
  bool Serves(Nanos begin, Nanos end) const {
    return static_cast<double>(served_.Of(begin, end)) >= kServed * static_cast<double>(end - begin);
  }

  bool Observed(Nanos begin, Nanos end) const { return observed_.Of(begin, end) > 0; }

  /// A full machine of which the service's own processes have little, although it serves requests.
  void Machine(uint32_t file) {
    const Samples* busy = Find(file, "", "busy_s");
    const Samples* idle = Find(file, "", "idle_s");
    if (busy == nullptr || idle == nullptr) return;
    std::vector<const Samples*> own;
    for (const auto& [key, series] : by_name_) {
      if (std::get<0>(key) == file && std::get<2>(key) == "cpu_s" && !std::get<1>(key).empty())
        own.push_back(&samples_.at(series));
    }
    if (own.empty()) return;
    const auto mine_in = [&](Nanos begin, Nanos end) -> std::optional<double> {
      double mine = 0;
      for (const Samples* samples : own) {
        const auto part = Change(*samples, begin, end);
        if (!part.has_value()) return std::nullopt;
        mine += *part;
      }
      return mine / Seconds(end - begin);
    };
    // What the service takes when it works: others have its processors only where it gets much less than that.
    std::vector<double> rates;
    for (size_t i = 1; i < busy->size(); ++i) {
      const Nanos begin = (*busy)[i - 1]->at;
      const Nanos end = (*busy)[i]->at;
      if (begin == kNoTime || end <= begin) continue;
      if (const auto rate = mine_in(begin, end); rate.has_value() && *rate > kWorks) rates.push_back(*rate);
    }
    if (rates.size() < kLeastRates) return;
    const double usual = ml::Quantile(rates, 0.7);
    const auto shortage = [&](Nanos begin, Nanos end) -> std::optional<double> {
      const auto used = Change(*busy, begin, end);
      const auto free = Change(*idle, begin, end);
      const auto mine = mine_in(begin, end);
      if (!used.has_value() || !free.has_value() || !mine.has_value() || *used + *free <= 0) return std::nullopt;
      if (!Serves(begin, end) || Observed(begin, end)) return std::nullopt;
      const double all = *used + *free;
      const double others = (*used - *mine * Seconds(end - begin)) / all;
      if (*free > kNoIdle * all || others < kOthers || *mine > kLessThanUsual * usual) return std::nullopt;
      // Whoever wants to run gets a share, however small: a stopped service gets none, and a busy machine is no reason.
      if (*mine < kStillGets * usual) return std::nullopt;
      return others;
    };
    const auto run = LongestRun(*busy, shortage, kLeastFull);
    if (!run.has_value()) return;
    const std::string text = fmt::format("other programs take {:.0f} % of all processors and nothing is idle, for {}",
                                         100 * run->value, Ms(run->end - run->begin));
    Finding& finding = Add(FaultClass::kCpuStarved, file, {}, "host", *run, text);
    finding.explanation = fmt::format(
        "The machine is full and {:.0f} % of its processors work for other programs than this service, for {} [E1].",
        100 * run->value, Ms(run->end - run->begin));
  }

  /// A process that serves and has to read its own pages from disk again: it, or the machine, is short of memory. Pages
  /// that are read once at the start, or while nobody waits, are none.
  void PageFaults(uint32_t file, const std::string& process, const std::string& name) {
    const Samples* faults = Find(file, process, name);
    const auto run = LongestRun(
        *faults,
        [&](Nanos begin, Nanos end) -> std::optional<double> {
          const auto count = Change(*faults, begin, end);
          if (!count.has_value() || !Serves(begin, end)) return std::nullopt;
          const double rate = *count / Seconds(end - begin);
          return rate < kFaultRate ? std::nullopt : std::optional(rate);
        },
        kLeastFull);
    if (!run.has_value()) return;
    const double inside = run->value * Seconds(run->end - run->begin);
    double outside = 0;
    Nanos rest = 0;
    for (size_t i = 1; i < faults->size(); ++i) {
      const Nanos begin = (*faults)[i - 1]->at;
      const Nanos end = (*faults)[i]->at;
      if (begin == kNoTime || end <= begin || (begin >= run->begin && end <= run->end)) continue;
      outside += std::max(0.0, (*faults)[i]->value - (*faults)[i - 1]->value);
      rest += end - begin;
    }
    if (inside < kLeastFaults || rest <= 0 || run->value < kFaultsApart * outside / Seconds(rest)) return;
    const std::string who = process.empty() ? OnlyProcess() : process;
    const std::string text = fmt::format(
        "{} has {:.0f} major page faults in {} ({:.0f} a second, {:.1f} in the rest of the time)",
        who.empty() ? "the process" : who, inside, Ms(run->end - run->begin), run->value, outside / Seconds(rest));
    Finding& finding = Add(FaultClass::kHostMemPressure, file, who, "host", *run, text);
    finding.alternatives = {{FaultClass::kStorageSlow, 0.1}};
    finding.explanation = fmt::format(
        "{} had to read pages of its own from disk again and again while it served, {:.0f} times in {} [E1]: its "
        "control group or the machine is short of memory.",
        who.empty() ? std::string("The process") : who, inside, Ms(run->end - run->begin));
  }

  /// The fullest that any KV usage gauge of the file was; -1 when none tells.
  double FullestCache(trace::FileRow file) const {
    double most = -1;
    for (const auto& [series, list] : samples_) {
      const CounterSeries& s = store_.counter_series[series];
      const bool usage = s.name.ends_with("cache_usage_perc") || s.name.ends_with("token_usage") ||
                         s.name.ends_with("kv_cache_usage_ratio");
      if (s.file != file || !usage) continue;
      for (const CounterSample* sample : list) {
        if (sample->value >= 0 && sample->value <= kMostUsage) most = std::max(most, sample->value);
      }
    }
    return most;
  }

  void ThrownBack() {
    for (const auto& [series, list] : samples_) {
      const CounterSeries& s = store_.counter_series[series];
      if (!IsThrownBack(s.name) || list.size() < 2) continue;
      double thrown = 0;
      Interval when{kNoTime, kNoTime, 0};
      for (size_t i = 1; i < list.size(); ++i) {
        const double more = list[i]->value - list[i - 1]->value;
        if (more <= 0 || list[i - 1]->value < 0 || more > kMostThrownBack) continue;
        thrown += more;
        if (when.begin == kNoTime) when.begin = list[i - 1]->at;
        when.end = list[i]->at;
      }
      const double fullest = FullestCache(s.file);
      if (thrown < kLeastThrownBack || (fullest >= 0 && fullest < kFull)) continue;
      const bool vllm = s.name.starts_with("vllm");
      const std::string process = vllm ? "EngineCore" : s.name.starts_with("sglang") ? "scheduler" : std::string();
      std::string text = fmt::format("{} grows by {:.0f}", s.name, thrown);
      if (fullest >= 0) text += fmt::format("; the KV cache is up to {:.0f} % full", 100 * fullest);
      Finding& finding = Add(FaultClass::kKvPressure, s.file.value(), process, "scheduler", when, text);
      finding.explanation = fmt::format(
          "The engine threw running requests back {:.0f} times because its KV cache had no room [E1]; each has to be "
          "computed again.",
          thrown);
    }
  }

  const trace::Store& store_;
  Coverage served_;    ///< from arrival to end of any request
  Coverage observed_;  ///< a profiler held up serving
  std::map<uint32_t, Samples> samples_;
  std::map<std::tuple<uint32_t, std::string, std::string>, uint32_t> by_name_;  ///< (file, process, name)
  std::vector<Finding> findings_;
};

bool Overlap(const Finding& a, const Finding& b) {
  if (a.onset == kNoTime || b.onset == kNoTime) return true;  // nobody says that they are apart
  return a.onset < b.end && b.onset < a.end;
}

/// A finding without a process speaks of the whole machine.
bool SameProcess(const Finding& a, const Finding& b) {
  return a.culprit.process.empty() || b.culprit.process.empty() || a.culprit.process == b.culprit.process;
}

/// True when a process of the service stands still for most of `counter`'s time, and no step is stretched in it.
bool IsStandStill(const Finding& counter, const std::vector<Finding>& findings) {
  bool still = false;
  for (const Finding& f : findings) {
    if (!Overlap(f, counter)) continue;
    if (f.fault == FaultClass::kCpuStarved) return false;
    const Nanos common = std::min(f.end, counter.end) - std::max(f.onset, counter.onset);
    const bool stopped = f.fault == FaultClass::kRuntimePause && f.culprit.layer == "process";
    still = still || (stopped && f.onset != kNoTime && 2 * common >= counter.end - counter.onset);
  }
  return still;
}

void TakeEvidence(const Finding& from, Finding& into) {
  for (const trace::Evidence& evidence : from.evidence)
    into.explanation += fmt::format(" Counters say so too: {} {}.", evidence.text, Cite(into, evidence));
  into.score = std::max(into.score, from.score);
  into.false_alarm_probability = std::min(into.false_alarm_probability, from.false_alarm_probability);
}

}  // namespace

std::vector<Finding> FindCounterCauses(const trace::Store& store, const trace::Trees& trees,
                                       const std::vector<trace::Note>& notes) {
  std::vector<Finding> findings = Search(store, trees, notes).Run();
  for (Finding& finding : FindUnusedProcessors(store, trees, notes)) findings.push_back(std::move(finding));
  return findings;
}

bool CountsNobodyThrownBack(const trace::Store& store, Nanos begin, Nanos end) {
  struct Seen {
    bool before = false;
    bool after = false;
    double least = std::numeric_limits<double>::infinity();
    double most = -std::numeric_limits<double>::infinity();
  };
  std::map<uint32_t, Seen> seen;
  for (const CounterSample& sample : store.counters) {
    if (sample.at == kNoTime || !sample.series.valid()) continue;
    if (!IsThrownBack(store.counter_series[sample.series.value()].name)) continue;
    Seen& s = seen[sample.series.value()];
    s.before = s.before || sample.at <= begin + kScrape;
    s.after = s.after || sample.at >= end - kScrape;
    s.least = std::min(s.least, sample.value);
    s.most = std::max(s.most, sample.value);
  }
  return !seen.empty() && std::all_of(seen.begin(), seen.end(), [](const auto& entry) {
    return entry.second.before && entry.second.after && entry.second.least == entry.second.most;
  });
}

std::string OnlyCountedProcess(const trace::Store& store) {
  std::string only;
  for (const CounterSeries& series : store.counter_series) {
    if (series.name != "cpu_s" || series.process_name.empty() || series.process_name == only) continue;
    if (!only.empty()) return {};
    only = series.process_name;
  }
  return only;
}

void JoinCounterCauses(std::vector<Finding> counters, std::vector<Finding>& findings, const std::string& only) {
  for (Finding& counter : counters) {
    if (counter.fault == FaultClass::kCpuStarved) {
      if (counter.culprit.process.empty() && IsStandStill(counter, findings)) continue;
      if (counter.culprit.process.empty()) counter.culprit.process = only;
      std::erase_if(findings, [&](const Finding& f) {
        const bool front_end = f.culprit.layer == "python" && !f.victims.empty() && f.steps.empty();
        const Nanos common = std::min(f.end, counter.end) - std::max(f.onset, counter.onset);
        const bool most = f.onset != kNoTime && counter.onset != kNoTime && 2 * common > f.end - f.onset;
        return front_end && f.fault == FaultClass::kHostCpuBound && most && SameProcess(f, counter);
      });
    }
    const auto same = std::find_if(findings.begin(), findings.end(), [&](const Finding& f) {
      return f.fault == counter.fault && Overlap(f, counter) && SameProcess(f, counter);
    });
    if (same != findings.end()) {
      TakeEvidence(counter, *same);
    } else {
      findings.push_back(std::move(counter));
    }
  }
}

}  // namespace teller::locate
