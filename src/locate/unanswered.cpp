#include "locate/unanswered.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
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

constexpr Nanos kLeast = 400 * base::kMilli;  // a scrape that is answered later by less is a busy machine
constexpr size_t kLeastScrapes = 6;           // to know how they come
constexpr double kRegular = 0.1;              // of the time between two, by which most of them differ at most
constexpr double kMostServed = 0.9;           // of the stretch in which requests must be under way
constexpr double kLeastUse = 0.025;  // s that it would have used in what samples cover: CPU times come in ticks
constexpr double kOneFalse = 0.004;  // chance that a late scrape looks like it for another reason
constexpr size_t kLeastRates = 4;    // other times with requests under way

/// The process that answers scrapes with counters of this name.
std::string FrontEndOf(const std::string& counter) {
  if (counter.starts_with("vllm:")) return "APIServer";
  if (counter.starts_with("sglang:")) return "tokenizer_manager";
  if (counter.starts_with("llamacpp:")) return "llama-server";
  return {};
}

class Search {
 public:
  Search(const trace::Store& store, const trace::Trees& trees, const CpuWitness& witness,
         const std::vector<trace::Note>& notes)
      : witness_(witness), observed_(ObservedTimes(notes)) {
    std::vector<std::pair<Nanos, Nanos>> under_way;
    for (const trace::Request& request : trees.requests) {
      if (request.arrival != kNoTime && request.finished != kNoTime)
        under_way.emplace_back(request.arrival, request.finished);
    }
    under_way_ = Coverage(std::move(under_way));
    std::vector<std::set<Nanos>*> times(store.counter_series.size());  // of scrapes, by series; null for other counters
    for (size_t s = 0; s < times.size(); ++s) {
      const trace::CounterSeries& series = store.counter_series[s];
      const std::string process = FrontEndOf(series.name);
      if (!process.empty()) times[s] = &scrapes_[{series.file.value(), process}];
    }
    for (const trace::CounterSample& sample : store.counters) {
      if (!sample.series.valid() || sample.at == kNoTime) continue;
      if (std::set<Nanos>* of_series = times[sample.series.value()]) of_series->insert(sample.at);
    }
  }

  std::vector<Finding> Run() const {
    std::vector<Finding> findings;
    for (const auto& [process, still] : Find()) {
      if (still.found == 0) continue;
      findings.push_back(Write(process, still));
    }
    return findings;
  }

 private:
  static constexpr Nanos kLongest = 60;  // times the usual: a collector that was away

  /// The time between two scrapes; 0 where they do not come regularly.
  static Nanos UsualDistance(const std::vector<Nanos>& scrapes) {
    if (scrapes.size() < kLeastScrapes) return 0;
    std::vector<double> distances;
    for (size_t i = 1; i < scrapes.size(); ++i) distances.push_back(static_cast<double>(scrapes[i] - scrapes[i - 1]));
    const double usual = ml::Quantile(distances, 0.5);
    const auto regular = std::count_if(distances.begin(), distances.end(),
                                       [&](double d) { return std::abs(d - usual) <= kRegular * usual; });
    return 4 * static_cast<size_t>(regular) >= 3 * distances.size() ? static_cast<Nanos>(usual) : 0;
  }

  bool Serves(Nanos begin, Nanos end) const {
    return static_cast<double>(under_way_.Of(begin, end)) >= kMostServed * static_cast<double>(end - begin);
  }

  /// What the late scrapes of a process tell.
  struct Still {
    trace::FileRow file;  ///< of the longest
    Nanos begin = 0;
    Nanos end = 0;
    Nanos usual = 0;    ///< between two scrapes
    size_t tested = 0;  ///< late ones while it had to serve
    size_t found = 0;   ///< of these, those in which it stood still
  };

  std::map<std::string, Still> Find() const {
    std::map<std::string, Still> of_process;
    for (const auto& [source, times] : scrapes_) {
      const std::vector<Nanos> scrapes(times.begin(), times.end());
      const Nanos usual = UsualDistance(scrapes);
      if (usual <= 0) continue;
      Still& still = of_process[source.second];
      for (size_t i = 1; i < scrapes.size(); ++i) {
        const Nanos late = scrapes[i] - scrapes[i - 1] - usual;
        const Nanos begin = scrapes[i] - late;
        if (late < kLeast || late > kLongest * usual || !Serves(begin, scrapes[i]) ||
            observed_.Of(begin, scrapes[i]) > 0)
          continue;
        ++still.tested;
        if (!StoodStill(source.second, begin, scrapes[i], scrapes)) continue;
        ++still.found;
        if (late <= still.end - still.begin) continue;
        still.file = trace::FileRow(source.first);
        still.begin = begin;
        still.end = scrapes[i];
        still.usual = usual;
      }
    }
    return of_process;
  }

  bool StoodStill(const std::string& process, Nanos begin, Nanos end, const std::vector<Nanos>& scrapes) const {
    const auto window = witness_.UsedNothing(process, begin, end);
    if (!window) return false;
    // Whether it had to serve beside the stretch is not known.
    const Nanos seen = std::min(end, window->second) - std::max(begin, window->first);
    std::vector<double> rates;
    for (size_t i = 1; i < scrapes.size(); ++i) {
      const bool beside = scrapes[i] <= begin || scrapes[i - 1] >= end;
      if (!beside || !Serves(scrapes[i - 1], scrapes[i])) continue;
      if (const double used = witness_.Used(process, scrapes[i - 1], scrapes[i]); used >= 0) rates.push_back(used);
    }
    return rates.size() >= kLeastRates && ml::Quantile(rates, 0.3) * static_cast<double>(seen) / 1e9 >= kLeastUse;
  }

  static Finding Write(const std::string& process, const Still& still) {
    Finding finding;
    finding.fault = FaultClass::kRuntimePause;
    finding.alternatives = {{FaultClass::kHostCpuBound, 0.25}, {FaultClass::kCpuStarved, 0.1}};
    finding.view = "vertical";
    finding.culprit.process = process;
    finding.culprit.layer = "process";
    finding.onset = still.begin;
    finding.end = still.end;
    finding.cost = still.end - still.begin;
    finding.score = 0.85;
    // Each late scrape is a chance to be wrong; so many in one run are less likely (Markov's inequality).
    finding.false_alarm_probability =
        std::min(1.0, kOneFalse * static_cast<double>(still.tested) / static_cast<double>(still.found));
    CiteCounters(finding, still.file, still.begin,
                 fmt::format("a scrape of {} is answered {} late, where one comes every {}, and it uses no processor",
                             process, Ms(finding.cost), Ms(still.usual)));
    finding.explanation = fmt::format(
        "{} stands still{}: it leaves a scrape of its counters unanswered for {} and uses no processor meanwhile, "
        "although requests are under way whose tokens it passes on and a processor is free [E1]. It is stopped, or a "
        "call of its own blocks all of it.",
        process, still.found > 1 ? fmt::format(" {} times, this the longest", still.found) : std::string(),
        Ms(finding.cost));
    return finding;
  }

  const CpuWitness& witness_;
  Coverage observed_;                                                    ///< a profiler held up serving
  Coverage under_way_;                                                   ///< requests, from arrival to end
  std::map<std::pair<uint32_t, std::string>, std::set<Nanos>> scrapes_;  ///< file, who answers -> when
};

}  // namespace

std::vector<Finding> FindUnanswered(const trace::Store& store, const trace::Trees& trees, const CpuWitness& witness,
                                    const std::vector<trace::Note>& notes) {
  return Search(store, trees, witness, notes).Run();
}

void JoinUnanswered(std::vector<Finding> unanswered, std::vector<Finding>& findings) {
  for (Finding& one : unanswered) {
    const bool known = std::any_of(findings.begin(), findings.end(), [&](const Finding& other) {
      return other.culprit.process == one.culprit.process && other.onset < one.end && one.onset < other.end;
    });
    if (!known) findings.push_back(std::move(one));
  }
}

}  // namespace teller::locate
