// Host counters as JSON lines. The form is this project's own (docs/reference/host-counters.md); the numbers are those
// of /proc/stat, /proc/<pid>/schedstat, /proc/<pid>/stat and a control group's cpu.stat.
#include "ingest/host_counters/host_counters.hpp"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "ingest/common/drain.hpp"
#include "ingest/common/epoch.hpp"
#include "ingest/common/text.hpp"
#include "ingest/log/line_splitter.hpp"

namespace teller::ingest {

namespace {

namespace sj = simdjson::dom;
using trace::CounterKind;

constexpr size_t kMaxSeries = 1u << 18;  // of one file
constexpr size_t kMaxName = 256;

constexpr base::DiagnosticKind kBadLine = {"host.bad-line", base::Severity::kDataLoss,
                                           "a line is no JSON object with a time; it was left out"};
constexpr base::DiagnosticKind kBadField = {
    "host.bad-field", base::Severity::kNotice,
    "a field is neither a number nor an object of numbers nor a name; it was left out"};
constexpr base::DiagnosticKind kManySeries = {"host.many-series", base::Severity::kDataLoss,
                                              "the file has more counters than are believed; the rest was left out"};
constexpr base::DiagnosticKind kDamaged = {"host.damaged", base::Severity::kDataLoss,
                                           "the file's compression is damaged; what came before was read"};

constexpr std::array<std::string_view, 7> kTimeKeys = {"t_ns",      "ts_ns", "time_ns", "timestamp_ns",
                                                       "timestamp", "ts",    "time"};
constexpr std::array<std::string_view, 4> kProcessKeys = {"process", "process_name", "proc", "comm"};
constexpr std::array<std::string_view, 8> kTextKeys = {"state",       "host",   "hostname",  "thread",
                                                       "thread_name", "cgroup", "container", "node"};
constexpr std::array<std::string_view, 3> kNumberKeys = {"pid", "tid", "ppid"};  // name something, count nothing

/// Counters that grow from the start of the process or of the machine.
constexpr std::array<std::string_view, 34> kCumulative = {"cpu_s",
                                                          "busy_s",
                                                          "idle_s",
                                                          "iowait_s",
                                                          "steal_s",
                                                          "user_s",
                                                          "system_s",
                                                          "sys_s",
                                                          "nice_s",
                                                          "irq_s",
                                                          "softirq_s",
                                                          "guest_s",
                                                          "run_ns",
                                                          "wait_ns",
                                                          "timeslices",
                                                          "major_faults",
                                                          "minor_faults",
                                                          "majflt",
                                                          "minflt",
                                                          "nr_periods",
                                                          "nr_throttled",
                                                          "throttled_time",
                                                          "throttled_usec",
                                                          "nr_bursts",
                                                          "burst_time",
                                                          "usage_usec",
                                                          "user_usec",
                                                          "system_usec",
                                                          "read_bytes",
                                                          "write_bytes",
                                                          "ctxt",
                                                          "voluntary_ctxt_switches",
                                                          "nonvoluntary_ctxt_switches",
                                                          "processes"};
constexpr std::array<std::string_view, 15> kGauge = {
    "state", "procs_running", "procs_blocked", "rss_pages", "rss_bytes", "rss_kb",  "threads",      "num_threads",
    "load1", "load5",         "load15",        "mem_free",  "fds",       "cpu_mhz", "mem_available"};

template <size_t N>
bool Among(const std::array<std::string_view, N>& keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

bool Number(sj::element element, double& out) {
  if (element.get(out) != simdjson::SUCCESS) {
    bool truth = false;
    if (element.get(truth) != simdjson::SUCCESS) return false;
    out = truth ? 1 : 0;
  }
  return std::isfinite(out);
}

/// The line's time, by the first key that holds one; `key` is that key.
trace::Nanos TimeOf(sj::object object, std::string_view& key) {
  for (const auto candidate : kTimeKeys) {
    sj::element element;
    if (object[candidate].get(element) != simdjson::SUCCESS) continue;
    int64_t whole = 0;
    double real = 0;
    std::string_view text;
    std::optional<trace::Nanos> at;
    if (element.get(whole) == simdjson::SUCCESS) {
      at = EpochFromDecimal(std::to_string(whole));
    } else if (element.get(real) == simdjson::SUCCESS) {
      at = EpochFromDecimal(std::to_string(real));
    } else if (element.get(text) == simdjson::SUCCESS) {
      at = EpochFromDecimal(text);
    }
    if (!at) continue;
    key = candidate;
    return *at;
  }
  return trace::kNoTime;
}

class Reader {
 public:
  Reader(trace::FileRow file, trace::Store& store) : file_(file), store_(store) {}

  void Add(const log::Segment& segment) {
    std::string_view text = segment.text;
    if (segment.line == 1 && text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
    if (text.find_first_not_of(" \t") == std::string_view::npos) return;
    line_ = segment.line;
    sj::object object;
    std::string_view time_key;
    const bool parsed = segment.cut == 0 && parser_.parse(text.data(), text.size()).get(object) == simdjson::SUCCESS;
    at_ = parsed ? TimeOf(object, time_key) : trace::kNoTime;
    if (at_ == trace::kNoTime) {
      trace::File& row = store_.files[file_.value()];
      ++row.records_read;
      ++row.dropped;
      store_.diagnostics.Report(kBadLine, file_, "line " + std::to_string(line_) + ": " + Snippet(text));
      return;
    }
    const std::string process = ProcessOf(object);
    for (const auto field : object) {
      if (field.key != time_key) AddField(field.key, field.value, process);
    }
    ++lines_;
  }

  /// Settles the kinds. False when no line could be used.
  bool Finish() {
    for (const auto& state : series_) {
      auto& series = store_.counter_series[state.row];
      if (Among(kCumulative, series.name) || (series.name.size() > 6 && series.name.ends_with("_total"))) {
        series.kind = CounterKind::kCumulative;
      } else if (!Among(kGauge, series.name)) {
        series.kind = state.grew && !state.fell ? CounterKind::kCumulative : CounterKind::kGauge;
      }
    }
    return lines_ > 0;
  }

 private:
  struct State {
    uint32_t row = 0;
    uint32_t samples = 0;
    double last = 0;
    bool grew = false;
    bool fell = false;
  };

  static std::string ProcessOf(sj::object object) {
    for (const auto key : kProcessKeys) {
      std::string_view text;
      if (object[key].get(text) == simdjson::SUCCESS) return std::string(text.substr(0, kMaxName));
    }
    return {};
  }

  void AddField(std::string_view key, sj::element value, const std::string& process) {
    trace::File& row = store_.files[file_.value()];
    ++row.records_read;
    double number = 0;
    sj::object inner;
    std::string_view text;
    if (Among(kProcessKeys, key) || Among(kNumberKeys, key) || value.is_null()) {
      ++row.metadata;
    } else if (Number(value, number)) {
      AddSample(key, process, number);
    } else if (value.get(inner) == simdjson::SUCCESS) {
      --row.records_read;  // its members are the records
      AddMembers(key, inner, process);
    } else if (value.get(text) == simdjson::SUCCESS) {
      // A process state is a letter of /proc/<pid>/stat: T (stopped) and D (disk) are worth a track.
      if (key == "state" && text.size() == 1) {
        AddSample(key, process, static_cast<double>(static_cast<unsigned char>(text.front())));
      } else {
        ++row.metadata;
      }
    } else {
      ++row.dropped;
      store_.diagnostics.Report(kBadField, file_, "line " + std::to_string(line_) + ": " + Snippet(key));
    }
  }

  /// {"cpu_s": {"EngineCore": 1.5}}: one counter a process. Under a process of its own the members are counters of it.
  void AddMembers(std::string_view key, sj::object members, const std::string& process) {
    trace::File& row = store_.files[file_.value()];
    for (const auto member : members) {
      ++row.records_read;
      double number = 0;
      if (member.value.is_null()) {
        ++row.metadata;
      } else if (Number(member.value, number)) {
        if (process.empty()) {
          AddSample(key, std::string(member.key.substr(0, kMaxName)), number);
        } else {
          AddSample(std::string(key) + "." + std::string(member.key), process, number);
        }
      } else {
        ++row.dropped;
        store_.diagnostics.Report(kBadField, file_,
                                  "line " + std::to_string(line_) + ": " + Snippet(key) + "." + Snippet(member.key));
      }
    }
  }

  void AddSample(std::string_view name, const std::string& process, double value) {
    trace::File& row = store_.files[file_.value()];
    const auto found = index_.find(std::tuple(process, std::string(name.substr(0, kMaxName))));
    size_t at = 0;
    if (found != index_.end()) {
      at = found->second;
    } else {
      if (series_.size() >= kMaxSeries) {
        ++row.dropped;
        store_.diagnostics.Report(kManySeries, file_, "line " + std::to_string(line_));
        return;
      }
      at = series_.size();
      index_.emplace(std::tuple(process, std::string(name.substr(0, kMaxName))), at);
      series_.push_back({static_cast<uint32_t>(store_.counter_series.size())});
      trace::CounterSeries series;
      series.file = file_;
      series.process_name = process;
      series.name = std::string(name.substr(0, kMaxName));
      store_.counter_series.push_back(std::move(series));
    }
    State& state = series_[at];
    if (state.samples > 0) {
      state.grew = state.grew || value > state.last;
      state.fell = state.fell || value < state.last;
    }
    state.last = value;
    store_.counters.push_back({at_, trace::CounterRow(state.row), state.samples++, value});
    ++row.counters;
  }

  trace::FileRow file_;
  trace::Store& store_;
  sj::parser parser_;
  std::map<std::tuple<std::string, std::string>, size_t> index_;  // (process, name) -> series_
  std::vector<State> series_;
  trace::Nanos at_ = trace::kNoTime;
  uint32_t line_ = 0;
  uint64_t lines_ = 0;
};

}  // namespace

bool LooksLikeHostCounters(std::string_view line) {
  sj::parser parser;
  sj::object object;
  if (parser.parse(line.data(), line.size()).get(object) != simdjson::SUCCESS) return false;
  std::string_view time_key;
  if (TimeOf(object, time_key) == trace::kNoTime) return false;
  size_t counters = 0;
  for (const auto field : object) {
    double number = 0;
    sj::object inner;
    std::string_view text;
    if (field.key == time_key || field.value.is_null() || Among(kNumberKeys, field.key)) continue;
    if (Number(field.value, number)) {
      ++counters;
    } else if (field.value.get(inner) == simdjson::SUCCESS) {
      for (const auto member : inner) {
        if (!member.value.is_null() && !Number(member.value, number)) return false;
        ++counters;
      }
    } else if (field.value.get(text) != simdjson::SUCCESS ||
               (!Among(kProcessKeys, field.key) && !Among(kTextKeys, field.key))) {
      return false;
    }
  }
  return counters > 0;
}

base::Status ReadHostCounters(base::ByteSource& source, trace::FileRow file, trace::Store& store,
                              const base::Limits& limits) {
  store.files[file.value()].kind = "host-counters";
  Reader reader(file, store);
  log::LineSplitter splitter(limits.max_log_line_bytes, [&](const log::Segment& segment) { reader.Add(segment); });
  TELLER_TRY(Drain(source, splitter, store.files[file.value()].bytes));
  if (!source.damage().empty()) store.diagnostics.Report(kDamaged, file, std::string(source.damage()));
  if (!reader.Finish()) {
    return base::Error{base::Code::kBadFormat, "no line is a JSON object of counters with a time",
                       store.files[file.value()].path};
  }
  return {};
}

}  // namespace teller::ingest
