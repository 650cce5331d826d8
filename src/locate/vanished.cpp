#include "locate/vanished.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "locate/log_signal.hpp"
#include "locate/proof.hpp"

namespace teller::locate {

namespace {

using trace::FaultClass;
using trace::Finding;
using trace::kNoTime;
using trace::Nanos;

constexpr Nanos kOrderly = 60 * base::kSecond;  // an asked-for end may take so long to wait for running requests
constexpr Nanos kBusyUntil = base::kSecond;     // lines about a request that was being computed are no older
// That logs and counters may be apart; who is asked later is asked because of the death.
constexpr Nanos kClocks = 5 * base::kSecond;
constexpr double kMissed = 1.5;  // times its usual distance between samples: one of its own is missing

/// When a process was last seen in a file of counters, and when the file first has samples without it.
struct LastSeen {
  uint32_t file = 0;
  std::string process;
  Nanos first = kNoTime;
  Nanos at = kNoTime;
  Nanos gone = kNoTime;  ///< none where the file ends with the process
  size_t times = 0;      ///< that it was seen
};

std::vector<LastSeen> Ends(const trace::Store& store) {
  std::map<std::pair<uint32_t, std::string>, LastSeen> last;
  std::map<uint32_t, std::vector<Nanos>> samples;  // of a file
  for (const trace::CounterSample& sample : store.counters) {
    if (!sample.series.valid() || sample.at == kNoTime) continue;
    const trace::CounterSeries& series = store.counter_series[sample.series.value()];
    samples[series.file.value()].push_back(sample.at);
    if (series.process_name.empty() || (series.name != "cpu_s" && series.name != "run_ns")) continue;
    LastSeen& seen = last[{series.file.value(), series.process_name}];
    if (seen.times++ == 0) {
      seen.file = series.file.value();
      seen.process = series.process_name;
      seen.first = sample.at;
      seen.at = sample.at;
    }
    seen.first = std::min(seen.first, sample.at);
    seen.at = std::max(seen.at, sample.at);
  }
  std::vector<LastSeen> ends;
  for (auto& [file, times] : samples) std::sort(times.begin(), times.end());
  for (auto& [key, seen] : last) {
    const std::vector<Nanos>& times = samples[seen.file];
    const auto after = std::upper_bound(times.begin(), times.end(), seen.at);
    if (after == times.end() || seen.times < 2) continue;
    // A file that tells of one process after the other ends with one of them.
    const double usual = static_cast<double>(seen.at - seen.first) / static_cast<double>(seen.times - 1);
    if (static_cast<double>(times.back() - seen.at) <= kMissed * usual) continue;
    seen.gone = *after;
    ends.push_back(seen);
  }
  return ends;
}

/// When somebody asked the service to end. A line without a time may be of any time.
class AskedToEnd {
 public:
  explicit AskedToEnd(const trace::Store& store) {
    for (size_t row = 0; row < store.logs.size(); ++row) {
      const auto signal = ReadSignal(store.logs[row], row);
      if (!signal || signal->role != SignalRole::kShutdown) continue;
      any_time_ = any_time_ || store.logs[row].at == kNoTime;
      times_.push_back(store.logs[row].at);
    }
    std::sort(times_.begin(), times_.end());
  }

  /// That it explains why this process is gone: it was asked before, or so soon after that clocks may be to blame.
  bool Explains(const LastSeen& end) const {
    const auto first = std::lower_bound(times_.begin(), times_.end(), end.at - kOrderly);
    return any_time_ || (first != times_.end() && *first <= end.gone + kClocks);
  }

 private:
  bool any_time_ = false;
  std::vector<Nanos> times_;
};

/// What became of the requests. They are read once: processes that are gone may be as many as requests.
class Fates {
 public:
  Fates(const trace::Store& store, const trace::Trees& trees) {
    for (const trace::Request& request : trees.requests) {
      if (request.finished != kNoTime && request.e2e >= 0 && !request.failed)
        last_served_ = std::max(last_served_, request.finished);
      if (request.arrival == kNoTime || Ended(store, request)) continue;
      if (!request.records.empty()) {
        arrivals_.push_back(request.arrival);
      } else if (request.finished != kNoTime) {
        arrivals_.push_back(std::min(request.arrival, request.finished));
        last_lines_.push_back(request.finished);
      }
    }
    std::sort(arrivals_.begin(), arrivals_.end());
    std::sort(last_lines_.begin(), last_lines_.end());
  }

  /// Requests that had arrived when the process was last seen, and that no source says the end of. Of one that is known
  /// from lines about it alone, the last line is the end of what is known.
  size_t LeftBehind(const LastSeen& end) const {
    const auto arrived = std::upper_bound(arrivals_.begin(), arrivals_.end(), end.gone) - arrivals_.begin();
    const auto quiet =
        std::lower_bound(last_lines_.begin(), last_lines_.end(), end.at - kBusyUntil) - last_lines_.begin();
    return static_cast<size_t>(arrived - quiet);
  }

  /// Requests that ended well although the process was gone: whoever served them lives.
  bool ServedAfter(const LastSeen& end) const { return last_served_ > end.gone; }

 private:
  static bool Ended(const trace::Store& store, const trace::Request& request) {
    return std::any_of(request.records.begin(), request.records.end(), [&](uint32_t record) {
      const trace::RequestRecord& r = store.request_records[record];
      return r.finished != kNoTime || r.e2e >= 0 || !r.finish_reason.empty();
    });
  }

  std::vector<Nanos> arrivals_;    ///< of those that never ended, in order
  std::vector<Nanos> last_lines_;  ///< of those among them that only lines tell of, in order
  Nanos last_served_ = kNoTime;
};

Finding Death(const LastSeen& end, size_t left) {
  Finding finding;
  finding.fault = FaultClass::kProcDeath;
  finding.view = "vertical";
  finding.culprit.process = end.process;
  finding.culprit.layer = "process";
  finding.onset = end.at;
  finding.end = end.gone;
  finding.score = 0.8;
  finding.false_alarm_probability = 0.004;
  finding.alternatives = {{FaultClass::kHostMemPressure, 0.3}};
  CiteCounters(
      finding, trace::FileRow(end.file), end.at,
      fmt::format("the host's counters go on, but tell of no {} any more; {} requests never ended", end.process, left));
  finding.explanation = fmt::format(
      "{} is gone from the host's counters while {} requests were under way that never ended, and no log tells that it "
      "was asked to end [E1]: it was killed from outside or crashed without a word. The kernel's log says whether "
      "memory ran out.",
      end.process, left);
  return finding;
}

}  // namespace

std::vector<Finding> FindVanished(const trace::Store& store, const trace::Trees& trees,
                                  const std::vector<Finding>& told) {
  const bool known =
      std::any_of(told.begin(), told.end(), [](const Finding& f) { return f.fault == FaultClass::kProcDeath; });
  // Without a log nobody could have told of an orderly end.
  if (known || store.counters.empty() || store.logs.empty()) return {};
  std::vector<LastSeen> ends = Ends(store);
  if (ends.empty()) return {};
  // The first one took the others with it.
  std::sort(ends.begin(), ends.end(), [](const LastSeen& a, const LastSeen& b) {
    return std::tie(a.at, a.process, a.file) < std::tie(b.at, b.process, b.file);
  });
  const Fates fates(store, trees);
  std::optional<AskedToEnd> asked;  // logs are read only where they matter
  for (const LastSeen& end : ends) {
    const size_t left = fates.LeftBehind(end);
    if (left == 0 || fates.ServedAfter(end)) continue;
    if (!asked) asked.emplace(store);
    if (!asked->Explains(end)) return {Death(end, left)};
  }
  return {};
}

}  // namespace teller::locate
