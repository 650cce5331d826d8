// Gives log records times on the trace clock. Source: docs/reference/log-grammars.md, section 5.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "ingest/log/cursor.hpp"
#include "ingest/log/diagnostics.hpp"
#include "ingest/log/log_reader.hpp"
#include "ingest/log/request_facts.hpp"
#include "ingest/log/stamp.hpp"

namespace teller::ingest {

namespace {

using base::kSecond;
using trace::LogRecord;
using trace::Nanos;
using trace::TimeBasis;

constexpr Nanos kDay = 86'400 * kSecond;
constexpr Nanos kQuarter = 900 * kSecond;     // zones are whole quarters of an hour from UTC
constexpr int kMinQuarters = -48;             // UTC-12
constexpr int kMaxQuarters = 56;              // UTC+14
constexpr Nanos kSlack = 60 * kSecond;        // a log may end a little before the trace begins and still belong to it
constexpr Nanos kAnchorNear = 300 * kSecond;  // the profiler's start line stands close to the trace's begin
constexpr Nanos kLent = 60 * kSecond;         // a line without a stamp is thought to follow its neighbour this soon
constexpr int64_t kNoYear = 0;
constexpr int64_t kYearWhenUnknown = 2004;             // any leap year would do; the diagnostic says that it is none
constexpr Nanos kOldestEpoch = 946'684'800 * kSecond;  // 2000-01-01: smaller times are no epoch times

struct Window {
  Nanos begin = trace::kNoTime;
  Nanos end = trace::kNoTime;
  bool valid() const { return begin != trace::kNoTime; }
};

/// Request spans cover a service's whole life: they stand in only where nothing was traced.
Window TraceWindow(trace::Store& store) {
  Window window;
  uint64_t old = 0;
  const bool traced = std::any_of(store.processes.begin(), store.processes.end(),
                                  [](const trace::Process& process) { return !process.service; });
  for (size_t i = 0; i < store.spans.size(); ++i) {
    if (traced && store.kind(i) == trace::SpanKind::kService) continue;
    const Nanos begin = store.spans.begin[i];
    if (begin < kOldestEpoch) {  // no epoch time: nothing can be compared with it
      ++old;
      continue;
    }
    if (!window.valid() || begin < window.begin) window.begin = begin;
    if (window.end == trace::kNoTime || store.spans.end(i) > window.end) window.end = store.spans.end(i);
  }
  if (old > 0 && !store.logs.empty()) {
    store.diagnostics.Report(log::kNoEpoch, {}, window.valid() ? "the other spans are used" : "no span is left", old);
  }
  return window;
}

/// The same month, day and time of day in another year.
Nanos InYear(Nanos in_1972, int64_t year) {
  static constexpr std::array<int, 12> kLengths = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  int64_t day = (in_1972 - log::BeginOfYear(1972)) / kDay;
  const Nanos time = (in_1972 - log::BeginOfYear(1972)) % kDay;
  size_t month = 0;
  while (month < 11 && day >= kLengths[month]) day -= kLengths[month++];
  return log::DaysFromCivil(year, static_cast<int64_t>(month) + 1, 1 + day) * kDay + time;
}

/// A date such as 2026-08-04 in some message, when no stamp has a year.
int64_t YearInText(const LogRecord& record) {
  const std::string_view text = record.message;
  for (size_t at = text.find("20"); at != std::string_view::npos && at < 4096; at = text.find("20", at + 1)) {
    log::Cursor c(text.substr(at));
    int64_t year = 0;
    int64_t part = 0;
    if (at > 0 && log::IsAlnum(text[at - 1])) continue;
    if (c.Number(4, 4, year) && c.Eat('-') && c.Number(2, 2, part) && part >= 1 && part <= 12 && c.Eat('-') &&
        c.Number(2, 2, part) && part >= 1 && part <= 31) {
      return year;
    }
  }
  return kNoYear;
}

bool IsProfilerStart(const LogRecord& record) {
  return record.message.find("profiler_start") != std::string::npos ||
         record.message.find("Starting profiler") != std::string::npos ||
         record.message.find("Profiling starts") != std::string::npos;
}

/// The records of one file, and what is chosen for them.
class FileTimes {
 public:
  FileTimes(trace::Store& store, trace::FileRow file, std::vector<size_t> rows)
      : store_(store), file_(file), rows_(std::move(rows)) {}

  int64_t KnownYear() const {
    for (const size_t row : rows_) {
      const LogRecord& r = store_.logs[row];
      if (r.at != trace::kNoTime && (r.stamp_open & (trace::kYearOpen | trace::kDateOpen | trace::kStartOpen)) == 0) {
        return log::YearOf(r.at);
      }
    }
    for (const size_t row : rows_) {
      if (const int64_t year = YearInText(store_.logs[row]); year != kNoYear) return year;
    }
    return kNoYear;
  }

  void Resolve(const Window& window, int64_t year_elsewhere, bool absolute_elsewhere) {
    SettleDates(window, year_elsewhere);
    SettleZone(window);
    SettleStart(window.valid() || absolute_elsewhere);
    Center();
    TightenCoarse();
    LendNeighbours();
    for (const size_t row : rows_) store_.logs[row].stamp_open = trace::kNothingOpen;
  }

 private:
  bool Open(const LogRecord& r, unsigned bits) const { return r.at != trace::kNoTime && (r.stamp_open & bits) != 0; }

  void SettleDates(const Window& window, int64_t year_elsewhere) {
    uint64_t open = 0;
    for (const size_t row : rows_) open += Open(store_.logs[row], trace::kYearOpen | trace::kDateOpen) ? 1 : 0;
    if (open == 0) return;
    int64_t year = KnownYear();
    std::string basis = "from other lines of this file";
    if (year == kNoYear && window.valid()) {
      year = log::YearOf(window.begin);
      basis = "from the traces";
      // A log that begins in December and is traced in January began the year before.
      if (InYear(FirstMonthDay(), year) - window.begin > 183 * kDay) --year;
    } else if (year == kNoYear && year_elsewhere != kNoYear) {
      year = year_elsewhere;
      basis = "from other logs of this run";
    } else if (year == kNoYear) {
      year = kYearWhenUnknown;
      basis = "unknown; nothing in the run tells it";
    }
    ApplyYear(year, window);
    store_.diagnostics.Report(log::kYearChosen, file_, "year " + std::to_string(year) + ", " + basis, open);
  }

  /// First stamp without a year, as written in 1972.
  Nanos FirstMonthDay() const {
    for (const size_t row : rows_) {
      if (Open(store_.logs[row], trace::kYearOpen)) return store_.logs[row].at;
    }
    return log::BeginOfYear(1972);
  }

  void ApplyYear(int64_t year, const Window& window) {
    Nanos previous = trace::kNoTime;
    Nanos day = window.valid() ? window.begin / kDay * kDay : log::BeginOfYear(year);
    Nanos previous_time = trace::kNoTime;
    for (const size_t row : rows_) {
      LogRecord& r = store_.logs[row];
      if (Open(r, trace::kYearOpen)) {
        Nanos at = InYear(r.at, year);
        if (previous != trace::kNoTime && previous - at > 183 * kDay) at = InYear(r.at, ++year);
        r.at = previous = at;
      } else if (Open(r, trace::kDateOpen)) {
        const Nanos time = r.at;
        if (previous_time != trace::kNoTime && previous_time - time > kDay / 2) day += kDay;
        previous_time = time;
        r.at = day + time;
      }
    }
  }

  void SettleZone(const Window& window) {
    uint64_t open = 0;
    Nanos first = trace::kNoTime;
    Nanos last = trace::kNoTime;
    std::vector<Nanos> anchors;
    for (const size_t row : rows_) {
      const LogRecord& r = store_.logs[row];
      if (!Open(r, trace::kZoneOpen)) continue;
      ++open;
      if (first == trace::kNoTime || r.at < first) first = r.at;
      if (last == trace::kNoTime || r.at > last) last = r.at;
      if (IsProfilerStart(r)) anchors.push_back(r.at);
    }
    if (open == 0) return;
    if (!window.valid()) {
      store_.diagnostics.Report(log::kZoneChosen, file_, "UTC, as no trace tells", open);
      return;
    }
    std::string basis;
    const int quarters = ChooseQuarters(window, first, last, anchors, basis);
    for (const size_t row : rows_) {
      LogRecord& r = store_.logs[row];
      if (Open(r, trace::kZoneOpen)) r.at -= quarters * kQuarter;
    }
    const int minutes = std::abs(quarters) * 15;
    std::string text = quarters == 0 ? "UTC"
                                     : std::string("UTC") + (quarters < 0 ? "-" : "+") + std::to_string(minutes / 60) +
                                           ":" + (minutes % 60 < 10 ? "0" : "") + std::to_string(minutes % 60);
    store_.diagnostics.Report(log::kZoneChosen, file_, text + ", " + basis, open);
  }

  /// Offsets nearest to UTC first, whole hours before quarters.
  static std::vector<int> Candidates() {
    std::vector<int> out;
    for (int q = kMinQuarters; q <= kMaxQuarters; ++q) out.push_back(q);
    std::stable_sort(out.begin(), out.end(), [](int a, int b) {
      return std::tuple(a % 4 != 0, std::abs(a), a) < std::tuple(b % 4 != 0, std::abs(b), b);
    });
    return out;
  }

  static int ChooseQuarters(const Window& window, Nanos first, Nanos last, const std::vector<Nanos>& anchors,
                            std::string& basis) {
    const auto candidates = Candidates();
    if (!anchors.empty()) {
      int best = 0;
      Nanos nearest = kAnchorNear;
      for (const int q : candidates) {
        for (const Nanos anchor : anchors) {
          const Nanos distance = std::abs(anchor - q * kQuarter - window.begin);
          if (distance < nearest) {
            nearest = distance;
            best = q;
          }
        }
      }
      if (nearest < kAnchorNear) {
        basis = "as the profiler's start line falls on the begin of the traces";
        return best;
      }
    }
    const auto overlap = [&](int q) {
      return std::min(last - q * kQuarter + kSlack, window.end) - std::max(first - q * kQuarter - kSlack, window.begin);
    };
    if (overlap(0) >= 0) {
      basis = "as it overlaps the traces";
      return 0;
    }
    // Nearly equal overlaps differ by the slack only: the simpler offset wins.
    Nanos largest = 0;
    for (const int q : candidates) largest = std::max(largest, overlap(q));
    for (const int q : candidates) {
      if (largest > 0 && overlap(q) >= largest - largest / 20) {
        basis = "as only then it overlaps the traces";
        return q;
      }
    }
    basis = "although it overlaps no trace";
    return 0;
  }

  void SettleStart(bool has_absolute) {
    uint64_t open = 0;
    for (const size_t row : rows_) {
      LogRecord& r = store_.logs[row];
      if (!Open(r, trace::kStartOpen)) continue;
      ++open;
      if (has_absolute) {
        r.at = trace::kNoTime;
        r.basis = TimeBasis::kNone;
      }
    }
    if (open > 0)
      store_.diagnostics.Report(log::kNoAnchor, file_,
                                has_absolute ? "its records have no time" : "its times count from 0", open);
  }

  /// A stamp is cut, not rounded: the moment lies behind it.
  void Center() {
    for (const size_t row : rows_) {
      LogRecord& r = store_.logs[row];
      if (r.basis == TimeBasis::kStamp && r.at != trace::kNoTime && r.at_error >= base::kMilli) r.at += r.at_error;
    }
  }

  /// An exact time of the nearest neighbour of `k` in direction `step` that the same process wrote; kNoTime when none
  /// is near.
  Nanos ExactNeighbour(size_t k, int step) const {
    constexpr Nanos kExact = 100 * base::kMilli;
    constexpr int kReach = 8;  // further neighbours say nothing that the nearest do not
    const LogRecord& own = store_.logs[rows_[k]];
    for (int i = 1; i <= kReach; ++i) {
      const auto at = static_cast<int64_t>(k) + step * i;
      if (at < 0 || at >= static_cast<int64_t>(rows_.size())) break;
      const LogRecord& other = store_.logs[rows_[static_cast<size_t>(at)]];
      const bool tagged = own.rank || !own.process.empty();  // an untagged line can only be placed among all others
      if (other.at == trace::kNoTime || other.at_error >= kExact) continue;
      if (!tagged || (other.process == own.process && other.rank == own.rank)) return other.at;
    }
    return trace::kNoTime;
  }

  /// Lines of c10 know only their second; exact neighbours say where in it they were written.
  void TightenCoarse() {
    for (size_t k = 0; k < rows_.size(); ++k) {
      LogRecord& r = store_.logs[rows_[k]];
      if ((r.stamp_open & trace::kFractionOpen) == 0 || r.at == trace::kNoTime) continue;
      const Nanos before = ExactNeighbour(k, -1);
      const Nanos after = ExactNeighbour(k, 1);
      const Nanos low = std::max(r.at - r.at_error, before == trace::kNoTime ? r.at - r.at_error : before);
      const Nanos high = std::min(r.at + r.at_error, after == trace::kNoTime ? r.at + r.at_error : after);
      if (low > high) continue;  // the lines are out of order: keep the whole second
      r.at = low + (high - low) / 2;
      r.at_error = (high - low) / 2;
    }
  }

  void LendNeighbours() {
    uint64_t far = 0;
    std::vector<size_t> next(rows_.size(), static_cast<size_t>(-1));
    size_t following = static_cast<size_t>(-1);
    for (size_t k = rows_.size(); k-- > 0;) {
      next[k] = following;
      if (store_.logs[rows_[k]].at != trace::kNoTime) following = rows_[k];
    }
    size_t before = static_cast<size_t>(-1);
    for (size_t k = 0; k < rows_.size(); ++k) {
      LogRecord& r = store_.logs[rows_[k]];
      if (r.at != trace::kNoTime) {
        before = rows_[k];
        continue;
      }
      const size_t lender = before != static_cast<size_t>(-1) ? before : next[k];
      if (lender == static_cast<size_t>(-1)) continue;
      const LogRecord& from = store_.logs[lender];
      r.at = from.at;
      r.at_error = from.at_error;
      if (lender == before && next[k] != static_cast<size_t>(-1)) {
        const Nanos gap = store_.logs[next[k]].at - from.at;
        far += gap > kLent ? 1 : 0;
        r.at_error = std::max(r.at_error, std::min(gap, kLent));
      }
      r.basis = TimeBasis::kNeighbour;
    }
    if (far > 0) store_.diagnostics.Report(log::kLentFar, file_, "error bounded to 60 s", far);
  }

  trace::Store& store_;
  trace::FileRow file_;
  std::vector<size_t> rows_;
};

}  // namespace

void ResolveLogTimes(trace::Store& store) {
  const Window window = TraceWindow(store);
  std::map<uint32_t, std::vector<size_t>> rows;
  for (size_t i = 0; i < store.logs.size(); ++i) rows[store.logs[i].file.value()].push_back(i);
  std::vector<FileTimes> files;
  int64_t year = kNoYear;
  bool absolute = false;
  for (auto& [file, of_file] : rows) {
    for (const size_t row : of_file) {
      const LogRecord& r = store.logs[row];
      absolute = absolute || (r.at != trace::kNoTime && (r.stamp_open & trace::kStartOpen) == 0);
    }
    files.emplace_back(store, trace::FileRow(file), std::move(of_file));
    if (year == kNoYear) year = files.back().KnownYear();
  }
  for (auto& file : files) file.Resolve(window, year, absolute);
  log::FinishRequestTimes(store);
}

}  // namespace teller::ingest
