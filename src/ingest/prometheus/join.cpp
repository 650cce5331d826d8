#include "ingest/prometheus/join.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "ingest/common/epoch.hpp"
#include "ingest/common/rank.hpp"

namespace teller::ingest {

namespace {

using trace::CounterKind;
using trace::CounterRow;
using trace::CounterSample;
using trace::CounterSeries;
using trace::Nanos;

constexpr base::DiagnosticKind kJoined = {
    "prometheus.joined", base::Severity::kInfo,
    "files of one scrape each are of the same target; their samples were joined in order of their times"};

constexpr std::string_view kStart = "process_start_time_seconds";
constexpr size_t kFewestOrdinals = 3;  // two files whose counters happen to grow prove nothing

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

/// A file that holds one scrape with one time.
struct Scrape {
  trace::FileRow file;
  Nanos at = trace::kNoTime;
  std::vector<uint32_t> series;  // rows
};

/// The path with its time, or else the last number of its name, left out.
struct Shape {
  std::string rest;
  bool stamped = false;

  auto operator<=>(const Shape&) const = default;
};

std::optional<Shape> ShapeOf(const std::string& path) {
  const size_t name = path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1;
  const bool stamped = EpochFromFileName(path).has_value();
  std::optional<std::pair<size_t, size_t>> number;
  for (size_t i = name; i < path.size();) {
    size_t end = i;
    while (end < path.size() && IsDigit(path[end])) ++end;
    if (end == i) {
      ++i;
      continue;
    }
    // Of a stamped name the run of digits that is the time; it is the only one of such a length that is a date.
    if (!stamped || EpochFromFileName(path.substr(i, end - i)).has_value()) number = {i, end};
    i = end;
  }
  if (!number) return std::nullopt;
  return Shape{path.substr(0, number->first) + '\0' + path.substr(number->second), stamped};
}

class Joiner {
 public:
  explicit Joiner(trace::Store& store) : store_(store), value_(store.counter_series.size()) {}

  void Run() {
    std::map<Shape, std::vector<Scrape>> groups;
    for (Scrape& scrape : SingleScrapes()) {
      if (const auto shape = ShapeOf(store_.files[scrape.file.value()].path))
        groups[*shape].push_back(std::move(scrape));
    }
    for (auto& [shape, scrapes] : groups) {
      std::sort(scrapes.begin(), scrapes.end(),
                [](const Scrape& a, const Scrape& b) { return std::tie(a.at, a.file) < std::tie(b.at, b.file); });
      if (scrapes.size() > 1 && Distinct(scrapes) && (shape.stamped || OneProcess(scrapes))) Join(scrapes);
    }
    if (!moved_.empty()) Apply();
  }

 private:
  struct Move {
    uint32_t series;
    uint32_t scrape;
  };

  std::vector<Scrape> SingleScrapes() {
    struct Facts {
      bool single = true;
      Nanos at = trace::kNoTime;
      std::vector<uint32_t> series;
    };
    std::map<trace::FileRow, Facts> files;
    for (uint32_t row = 0; row < store_.counter_series.size(); ++row) {
      const trace::FileRow file = store_.counter_series[row].file;
      if (file.valid() && store_.files[file.value()].kind == "prometheus") files[file].series.push_back(row);
    }
    for (const CounterSample& sample : store_.counters) {
      const auto found = files.find(store_.counter_series[sample.series.value()].file);
      if (found == files.end()) continue;
      Facts& facts = found->second;
      facts.single = facts.single && sample.scrape == 0 && sample.at != trace::kNoTime;
      facts.at = facts.at == trace::kNoTime ? sample.at : std::min(facts.at, sample.at);
      value_[sample.series.value()] = sample.value;
    }
    std::vector<Scrape> out;
    for (auto& [file, facts] : files) {
      if (facts.single && facts.at != trace::kNoTime) out.push_back({file, facts.at, std::move(facts.series)});
    }
    return out;
  }

  static bool Distinct(const std::vector<Scrape>& scrapes) {
    return std::adjacent_find(scrapes.begin(), scrapes.end(),
                              [](const Scrape& a, const Scrape& b) { return a.at == b.at; }) == scrapes.end();
  }

  static std::string Key(const CounterSeries& series) {
    std::string key = series.name;
    for (const auto& [label, value] : series.labels) key += '\x1f' + label + '\x1e' + value;
    return key;
  }

  /// Files that only a number tells apart may as well be those of replicas. They are one process's when all state the
  /// same start, or, where none does, when nothing that counts up ever falls.
  bool OneProcess(const std::vector<Scrape>& scrapes) const {
    std::map<std::string, double> last;
    std::optional<double> start;
    size_t starts = 0;
    for (const Scrape& scrape : scrapes) {
      if (RankFromPath(FileName(store_.files[scrape.file.value()].path))) return false;
      for (const uint32_t row : scrape.series) {
        const CounterSeries& series = store_.counter_series[row];
        if (series.name == kStart) {
          ++starts;
          if (start && *start != value_[row]) return false;
          start = value_[row];
        }
        if (series.kind != CounterKind::kCumulative) continue;
        const auto [it, fresh] = last.try_emplace(Key(series), value_[row]);
        if (!fresh && value_[row] < it->second) return false;
        it->second = value_[row];
      }
    }
    return starts == scrapes.size() || (starts == 0 && !last.empty() && scrapes.size() >= kFewestOrdinals);
  }

  void Join(const std::vector<Scrape>& scrapes) {
    std::map<std::string, uint32_t> known;
    for (uint32_t s = 0; s < scrapes.size(); ++s) {
      for (const uint32_t row : scrapes[s].series) {
        const uint32_t into = known.try_emplace(Key(store_.counter_series[row]), row).first->second;
        CounterSeries& series = store_.counter_series[into];
        series.file = scrapes.front().file;
        if (store_.counter_series[row].kind == CounterKind::kCumulative) series.kind = CounterKind::kCumulative;
        moved_[row] = {into, s};
      }
    }
    store_.diagnostics.Report(kJoined, scrapes.front().file, "with " + std::to_string(scrapes.size() - 1) + " more",
                              scrapes.size());
  }

  /// Moves samples and takes out the series that lost theirs.
  void Apply() {
    std::vector<uint32_t> number(store_.counter_series.size());
    std::vector<CounterSeries> kept;
    for (uint32_t row = 0; row < number.size(); ++row) {
      const auto move = moved_.find(row);
      number[row] = static_cast<uint32_t>(kept.size());
      if (move == moved_.end() || move->second.series == row) kept.push_back(std::move(store_.counter_series[row]));
    }
    for (CounterSample& sample : store_.counters) {
      uint32_t row = sample.series.value();
      if (const auto move = moved_.find(row); move != moved_.end()) {
        row = move->second.series;
        sample.scrape = move->second.scrape;
      }
      sample.series = CounterRow(number[row]);
    }
    store_.counter_series = std::move(kept);
  }

  trace::Store& store_;
  std::vector<double> value_;  // of each series' sample, where it has one
  std::map<uint32_t, Move> moved_;
};

}  // namespace

void JoinScrapes(trace::Store& store) {
  Joiner(store).Run();
}

}  // namespace teller::ingest
