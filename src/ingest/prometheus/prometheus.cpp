#include "ingest/prometheus/prometheus.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ingest/common/drain.hpp"
#include "ingest/common/epoch.hpp"
#include "ingest/common/text.hpp"
#include "ingest/log/line_splitter.hpp"
#include "ingest/prometheus/exposition.hpp"

namespace teller::ingest {

namespace {

using prometheus::LineKind;
using trace::CounterKind;
using trace::CounterRow;

constexpr size_t kMaxSeries = 1u << 20;  // of one file; the largest server seen has 6,000
constexpr size_t kMaxTypes = 1u << 16;

constexpr base::DiagnosticKind kBadLine = {"prometheus.bad-line", base::Severity::kDataLoss,
                                           "a line is no sample of the text format; it was left out"};
constexpr base::DiagnosticKind kLongLine = {"prometheus.long-line", base::Severity::kDataLoss,
                                            "a line is longer than the limit; it was left out"};
constexpr base::DiagnosticKind kTwice = {"prometheus.twice", base::Severity::kNotice,
                                         "a series stands twice in one scrape; the first value was kept"};
constexpr base::DiagnosticKind kBadTime = {"prometheus.bad-time", base::Severity::kNotice,
                                           "a timestamp is no date; the sample was kept without it"};
constexpr base::DiagnosticKind kManySeries = {"prometheus.many-series", base::Severity::kDataLoss,
                                              "the file has more series than are believed; the rest was left out"};
constexpr base::DiagnosticKind kDamaged = {"prometheus.damaged", base::Severity::kDataLoss,
                                           "the file's compression is damaged; what came before was read"};
constexpr base::DiagnosticKind kNoTimes = {"prometheus.no-times", base::Severity::kInfo,
                                           "scrapes without a time: only differences between them are known"};

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() > end.size() && text.substr(text.size() - end.size()) == end;
}

/// Suffixes that a family's samples add to its name.
constexpr std::array<std::string_view, 5> kSuffixes = {"_total", "_bucket", "_count", "_sum", "_created"};

std::string_view WithoutSuffix(std::string_view name) {
  for (const auto suffix : kSuffixes) {
    if (EndsWith(name, suffix)) return name.substr(0, name.size() - suffix.size());
  }
  return name;
}

class Reader {
 public:
  Reader(trace::FileRow file, trace::Store& store) : file_(file), store_(store) {}

  void Add(const log::Segment& segment) {
    std::string_view text = segment.text;
    if (segment.line == 1 && text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
    if (text.find_first_not_of(" \t") == std::string_view::npos) return;
    trace::File& row = store_.files[file_.value()];
    ++row.records_read;
    place_ = "line " + std::to_string(segment.line);
    if (segment.cut > 0) return Drop(kLongLine, text);
    const prometheus::Line line = prometheus::ParseLine(text);
    switch (line.kind) {
      case LineKind::kSample: return AddSample(line, text);
      case LineKind::kBroken: return Drop(kBadLine, text);
      case LineKind::kType:
        if (types_.size() < kMaxTypes) types_.insert_or_assign(std::string(line.name), std::string(line.type));
        break;
      case LineKind::kMark: Mark(line); break;
      case LineKind::kEnd: ended_ = true; break;
      case LineKind::kOther:
      case LineKind::kBlank: break;
    }
    ++row.metadata;
  }

  /// Kinds and times that only the whole file tells. False when it held no sample.
  bool Finish() {
    if (samples_ == 0) return false;
    std::unordered_set<std::string_view> names;
    const auto& series = store_.counter_series;
    for (size_t i = first_series_; i < series.size(); ++i) names.insert(series[i].name);
    for (size_t i = first_series_; i < series.size(); ++i) {
      store_.counter_series[i].kind = KindOf(series[i], names);
    }
    if (scrape_ == 0 && timeless_ == samples_) {
      const auto at = EpochFromFileName(store_.files[file_.value()].path);
      for (size_t i = first_sample_; at && i < store_.counters.size(); ++i) store_.counters[i].at = *at;
      if (at) timeless_ = 0;
    }
    if (timeless_ > 0) store_.diagnostics.Report(kNoTimes, file_, std::to_string(scrape_ + 1) + " scrapes");
    return true;
  }

 private:
  struct Seen {
    uint32_t series = 0;
    uint32_t samples = 0;
    int64_t scrape = -1;  ///< of its last sample
  };

  void Drop(const base::DiagnosticKind& kind, std::string_view text) {
    ++store_.files[file_.value()].dropped;
    store_.diagnostics.Report(kind, file_, place_ + ": " + Snippet(text));
  }

  void NextScrape() {
    if (in_scrape_ > 0) ++scrape_;
    in_scrape_ = 0;
    ended_ = false;
    at_ = trace::kNoTime;
  }

  void Mark(const prometheus::Line& line) {
    NextScrape();
    marked_ = true;
    if (line.timestamp.empty()) return;
    at_ = EpochFromDecimal(line.timestamp).value_or(trace::kNoTime);
    if (at_ == trace::kNoTime) store_.diagnostics.Report(kBadTime, file_, place_);
  }

  /// Series of a sample's name and labels as written; null when there are too many or they are malformed.
  Seen* Find(const prometheus::Line& line) {
    key_.assign(line.name);
    key_ += '{';
    key_ += line.labels;
    const auto known = seen_.find(key_);
    if (known != seen_.end()) return &all_[known->second];
    trace::CounterSeries series;
    std::string quoted_name;
    if (!prometheus::ParseLabels(line.labels, series.labels, quoted_name)) return nullptr;
    series.name = line.name.empty() ? quoted_name : std::string(line.name);
    if (series.name.empty() || (!line.name.empty() && !quoted_name.empty())) return nullptr;
    // The same labels in another order are the same series.
    std::string canonical = series.name;
    for (const auto& [label, value] : series.labels) canonical += '\x1f' + label + '\x1e' + value;
    const auto [it, fresh] = canonical_.emplace(std::move(canonical), static_cast<uint32_t>(all_.size()));
    if (fresh) {
      if (all_.size() >= kMaxSeries) {
        canonical_.erase(it);
        return nullptr;
      }
      series.file = file_;
      all_.push_back({static_cast<uint32_t>(store_.counter_series.size())});
      store_.counter_series.push_back(std::move(series));
    }
    if (seen_.size() < 2 * kMaxSeries) seen_.emplace(key_, it->second);
    return &all_[it->second];
  }

  void AddSample(const prometheus::Line& line, std::string_view text) {
    Seen* seen = Find(line);
    if (seen == nullptr) return Drop(all_.size() >= kMaxSeries ? kManySeries : kBadLine, text);
    if (ended_) {
      NextScrape();
      marked_ = false;
    }
    trace::CounterSample sample;
    sample.series = CounterRow(seen->series);
    sample.value = line.value;
    sample.at = at_;
    if (!line.timestamp.empty()) {
      const auto own = EpochFromDecimal(line.timestamp);
      if (own) {
        sample.at = *own;
      } else {
        store_.diagnostics.Report(kBadTime, file_, place_);
      }
    }
    const bool again = seen->scrape == static_cast<int64_t>(scrape_);
    const bool history = !line.timestamp.empty();  // a file may hold the history of one series after the other
    if (again && !history) {
      if (marked_) return Drop(kTwice, text);
      NextScrape();  // scrapes were put together without a mark
      sample.at = trace::kNoTime;
    }
    sample.scrape = again && history ? seen->samples : scrape_;
    seen->scrape = static_cast<int64_t>(scrape_);
    ++seen->samples;
    ++in_scrape_;
    ++samples_;
    timeless_ += sample.at == trace::kNoTime;
    store_.counters.push_back(sample);
    ++store_.files[file_.value()].counters;
  }

  CounterKind KindOf(const trace::CounterSeries& series, const std::unordered_set<std::string_view>& names) const {
    const std::string_view name = series.name;
    const std::string_view family = WithoutSuffix(name);
    auto type = types_.find(std::string(name));
    if (type == types_.end()) type = types_.find(std::string(family));
    const bool part = EndsWith(name, "_bucket") || EndsWith(name, "_count") || EndsWith(name, "_sum");
    if (type != types_.end() && type->second != "untyped" && type->second != "unknown") {
      if (EndsWith(name, "_created") && type->first != name) return CounterKind::kGauge;
      if (type->second == "counter") return CounterKind::kCumulative;
      if (type->second == "histogram" || type->second == "summary") {
        return part ? CounterKind::kCumulative : CounterKind::kGauge;
      }
      return CounterKind::kGauge;
    }
    if (EndsWith(name, "_total")) return CounterKind::kCumulative;
    if (!part) return CounterKind::kGauge;
    // "_count" alone also ends the names of levels ("worker_count"): a histogram has at least two of the three.
    size_t parts = 0;
    for (const std::string_view end : {"_bucket", "_count", "_sum"}) {
      parts += names.count(std::string(family) + std::string(end));
    }
    return parts > 1 ? CounterKind::kCumulative : CounterKind::kGauge;
  }

  trace::FileRow file_;
  trace::Store& store_;
  const size_t first_series_ = store_.counter_series.size();
  const size_t first_sample_ = store_.counters.size();
  std::unordered_map<std::string, std::string> types_;
  std::unordered_map<std::string, uint32_t> seen_;       // as written -> index into all_
  std::unordered_map<std::string, uint32_t> canonical_;  // name and ordered labels -> index into all_
  std::vector<Seen> all_;
  std::string key_;
  std::string place_;
  trace::Nanos at_ = trace::kNoTime;  // of the scrape
  uint32_t scrape_ = 0;
  uint64_t in_scrape_ = 0;
  uint64_t samples_ = 0;
  uint64_t timeless_ = 0;
  bool marked_ = false;
  bool ended_ = false;
};

}  // namespace

bool LooksLikePrometheus(std::string_view head, bool whole) {
  size_t lines = 0;
  size_t samples = 0;
  bool declared = false;
  while (!head.empty() && lines < 50) {
    const size_t end = head.find('\n');
    if (end == std::string_view::npos && !whole) break;  // the last line may be cut
    const std::string_view text = head.substr(0, end);
    head.remove_prefix(end == std::string_view::npos ? head.size() : end + 1);
    if (lines == 0 && (text.substr(0, 7) == "# HELP " || text.substr(0, 7) == "# TYPE ")) declared = true;
    const auto kind = prometheus::ParseLine(text).kind;
    if (kind != LineKind::kSample && kind != LineKind::kBroken) continue;
    ++lines;
    samples += kind == LineKind::kSample;
  }
  return lines > 0 ? samples * 10 >= lines * 9 : declared;
}

base::Status ReadPrometheus(base::ByteSource& source, trace::FileRow file, trace::Store& store,
                            const base::Limits& limits) {
  store.files[file.value()].kind = "prometheus";
  Reader reader(file, store);
  log::LineSplitter splitter(limits.max_log_line_bytes, [&](const log::Segment& segment) { reader.Add(segment); });
  TELLER_TRY(Drain(source, splitter, store.files[file.value()].bytes));
  if (!source.damage().empty()) store.diagnostics.Report(kDamaged, file, std::string(source.damage()));
  if (!reader.Finish()) {
    return base::Error{base::Code::kBadFormat, "no line is a sample of the Prometheus text format",
                       store.files[file.value()].path};
  }
  return {};
}

}  // namespace teller::ingest
