#include "locate/vanished.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "locate/log_signal.hpp"

namespace teller::locate {

namespace {

using trace::Evidence;
using trace::FaultClass;
using trace::Finding;
using trace::kNoTime;
using trace::Nanos;

constexpr Nanos kOrderly = 60 * base::kSecond;  // an asked-for end may take so long to wait for running requests

constexpr Nanos kBusyUntil = base::kSecond;     // lines about a request that was being computed are no older

/// When a process was last seen in a file of counters, and when the file first has samples without it.
struct LastSeen {
  uint32_t file = 0;
  std::string process;
  Nanos at = kNoTime;
  Nanos gone = kNoTime;  ///< none where the file ends with the process
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
    if (seen.at != kNoTime && sample.at <= seen.at) continue;
    seen = {series.file.value(), series.process_name, sample.at, kNoTime};
  }
  std::vector<LastSeen> ends;
  for (auto& [file, times] : samples) std::sort(times.begin(), times.end());
  for (auto& [key, seen] : last) {
    const std::vector<Nanos>& times = samples[seen.file];
    const auto after = std::upper_bound(times.begin(), times.end(), seen.at);
    if (after == times.end()) continue;
    seen.gone = *after;
    ends.push_back(seen);
  }
  return ends;
}

/// True when somebody asked the service to end around then.
bool EndWasAskedFor(const trace::Store& store, const LastSeen& end) {
  for (size_t row = 0; row < store.logs.size(); ++row) {
    const trace::LogRecord& record = store.logs[row];
    if (record.at != kNoTime && record.at < end.at - kOrderly) continue;
    if (const auto signal = ReadSignal(record, row); signal && signal->role == SignalRole::kShutdown) return true;
  }
  return false;
}

/// Requests that had arrived when the process was last seen, and that no source says the end of.
size_t LeftBehind(const trace::Store& store, const trace::Trees& trees, const LastSeen& end) {
  size_t count = 0;
  for (const trace::Request& request : trees.requests) {
    if (request.arrival == kNoTime || request.arrival > end.gone) continue;
    // Of one that is known from lines about it alone, the last line is the end of what is known.
    if (request.records.empty() && (request.finished == kNoTime || request.finished < end.at - kBusyUntil)) continue;
    const bool ended = std::any_of(request.records.begin(), request.records.end(), [&](uint32_t record) {
      const trace::RequestRecord& r = store.request_records[record];
      return r.finished != kNoTime || r.e2e >= 0 || !r.finish_reason.empty();
    });
    if (!ended) ++count;
  }
  return count;
}

/// Requests that ended after the process was gone: whoever served them lives.
bool ServedAfter(const trace::Trees& trees, const LastSeen& end) {
  return std::any_of(trees.requests.begin(), trees.requests.end(), [&](const trace::Request& request) {
    return request.finished != kNoTime && request.finished > end.gone && request.e2e >= 0 && !request.failed;
  });
}

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
  Evidence evidence;
  evidence.id = "E1";
  evidence.kind = Evidence::Kind::kStatistic;
  evidence.file = trace::FileRow(end.file);
  evidence.ref = "counters";
  evidence.at = end.at;
  evidence.text = fmt::format("the host's counters go on, but tell of no {} any more; {} requests never ended",
                              end.process, left);
  finding.evidence.push_back(std::move(evidence));
  finding.explanation = fmt::format(
      "{} is gone from the host's counters while {} requests were under way that never ended, and no log tells that it "
      "was asked to end [E1]: it was killed from outside or crashed without a word. The kernel's log says whether memory "
      "ran out.",
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
  // The first one took the others with it.
  std::sort(ends.begin(), ends.end(), [](const LastSeen& a, const LastSeen& b) {
    return std::tie(a.at, a.process, a.file) < std::tie(b.at, b.process, b.file);
  });
  for (const LastSeen& end : ends) {
    const size_t left = LeftBehind(store, trees, end);
    if (left > 0 && !ServedAfter(trees, end) && !EndWasAskedFor(store, end)) return {Death(end, left)};
  }
  return {};
}

}  // namespace teller::locate
