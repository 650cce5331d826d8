#include "report/logs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/diagnosis_json.hpp"
#include "report/diagnosis_text.hpp"
#include "report/json_stream.hpp"
#include "report/log_coverage.hpp"
#include "report/summary.hpp"
#include "report/units.hpp"

namespace teller::report {

using Json = nlohmann::ordered_json;
using trace::LogLevel;
using trace::LogRecord;
using trace::TimeBasis;

namespace {

constexpr size_t kShownRecords = 200;
constexpr size_t kShownTemplates = 40;

std::string_view FirstLine(std::string_view text) {
  return text.substr(0, text.find('\n'));
}

std::string_view BasisName(TimeBasis basis) {
  switch (basis) {
    case TimeBasis::kNone: return "none";
    case TimeBasis::kArrival: return "arrival";
    case TimeBasis::kStamp: return "stamp";
    case TimeBasis::kRelative: return "relative";
    case TimeBasis::kNeighbour: return "neighbour";
  }
  return "none";
}

/// Order: most frequent first, then by id.
std::vector<logs::Template> ByFrequency(const engine::Run& run) {
  std::vector<logs::Template> templates = run.templates.templates;
  std::sort(templates.begin(), templates.end(), [](const logs::Template& a, const logs::Template& b) {
    return std::pair(b.count, a.id) < std::pair(a.count, b.id);
  });
  return templates;
}

Ink InkOf(LogLevel level) {
  if (level >= LogLevel::kError) return Ink::kRed;
  return level == LogLevel::kWarning ? Ink::kYellow : Ink::kPlain;
}

std::string Who(const LogRecord& log) {
  std::string who = log.process;
  if (log.rank) who += fmt::format("{}rank {}", who.empty() ? "" : " ", *log.rank);
  if (who.empty() && log.pid) who = fmt::format("pid {}", *log.pid);
  return who.empty() ? log.logger : who;
}

void AddRecords(const trace::Store& store, Page& page) {
  page.Gap();
  const size_t shown = page.options().all ? store.logs.size() : std::min(store.logs.size(), kShownRecords);
  page.Head(Count(store.logs.size(), "record"));
  trace::FileRow file;
  for (size_t i = 0; i < shown; ++i) {
    const LogRecord& log = store.logs[i];
    if (log.file != file) page.Line(2, FilePath(store, log.file), Ink::kBold);
    file = log.file;
    // "~" marks a time that is not the record's own.
    const std::string time = log.at == trace::kNoTime ? std::string(12, '-') : TimeOfDay(log.at);
    page.Line(2,
              fmt::format("{}{} {:<7} {:<14} {}", log.basis == TimeBasis::kNeighbour ? "~" : " ", time, Name(log.level),
                          Who(log), FirstLine(log.message)),
              InkOf(log.level));
  }
  if (shown < store.logs.size()) page.Line(2, fmt::format("and {} more (--all)", store.logs.size() - shown), Ink::kDim);
}

void AddTemplates(const engine::Run& run, Page& page) {
  const std::vector<logs::Template> templates = ByFrequency(run);
  if (templates.empty()) return;
  page.Gap();
  page.Head(Count(templates.size(), "template"));
  const size_t shown = page.options().all ? templates.size() : std::min(templates.size(), kShownTemplates);
  for (size_t i = 0; i < shown; ++i) {
    const logs::Template& t = templates[i];
    page.Line(2, fmt::format("{:>7}  #{:<4} {:<7} {}", Count(t.count), t.id, Name(t.level), t.text), InkOf(t.level));
  }
  if (shown < templates.size()) page.Line(2, fmt::format("and {} more (--all)", templates.size() - shown), Ink::kDim);
}

void AddCoverage(const trace::Store& store, Page& page) {
  const std::vector<LogCoverage> files = LogCoverages(store);
  if (files.empty()) return;
  const LogCoverage total = TotalCoverage(files);
  const auto text = [](const LogCoverage& c) {
    return fmt::format("{} ({:.2f} %) in no known grammar, {} printed by programs without a logger", Count(c.unknown),
                       100 * c.unknown_share(), Count(c.printed));
  };
  page.Gap();
  page.Head(fmt::format("{}: {}", Count(total.lines, "line"), text(total)));
  if (files.size() == 1) return;
  for (const LogCoverage& file : files) {
    if (file.unknown == 0 && !page.options().all) continue;
    page.Line(2, fmt::format("{}: {}: {}", FilePath(store, file.file), Count(file.lines, "line"), text(file)));
  }
}

void AddStatistics(const trace::Store& store, Page& page) {
  const std::vector<StatisticRange> ranges = StatisticRanges(store);
  if (ranges.empty()) return;
  page.Gap();
  page.Head("Statistics lines");
  page.Line(2,
            fmt::format("{:<24} {:>6} {:>10} {:>10} {:>10} {:>10}", "value", "lines", "smallest", "median", "largest",
                        "last"),
            Ink::kDim);
  for (const StatisticRange& r : ranges) {
    page.Line(2, fmt::format("{:<24} {:>6} {:>10.4g} {:>10.4g} {:>10.4g} {:>10.4g}", r.key, r.count, r.smallest,
                             r.median, r.largest, r.last));
  }
}

constexpr uint32_t kNoRequest = UINT32_MAX;

/// Row of Trees::requests of each record; kNoRequest for records about none.
std::vector<uint32_t> RequestOfRecord(const engine::Run& run) {
  std::vector<uint32_t> rows(run.store.logs.size(), kNoRequest);
  for (uint32_t r = 0; r < run.trees.requests.size(); ++r) {
    for (const trace::LogRow log : run.trees.requests[r].logs) rows[log.value()] = r;
  }
  return rows;
}

Json CoverageToJson(const LogCoverage& coverage) {
  return {{"lines", coverage.lines},
          {"unknown", coverage.unknown},
          {"program_output", coverage.printed},
          {"unknown_share", coverage.unknown_share()}};
}

Json CoveragesToJson(const trace::Store& store) {
  const std::vector<LogCoverage> coverages = LogCoverages(store);
  Json coverage = CoverageToJson(TotalCoverage(coverages));
  coverage["files"] = Json::array();
  for (const LogCoverage& file : coverages) {
    Json entry = {{"path", std::string(FilePath(store, file.file))}};
    entry.update(CoverageToJson(file));
    coverage["files"].push_back(std::move(entry));
  }
  return coverage;
}

Json RecordToJson(const LogRecord& log) {
  Json parameters = Json::array();
  for (const trace::LogParameter& p : log.parameters) parameters.push_back(p.text);
  Json statistics = Json::object();
  for (const auto& [key, value] : log.statistics) statistics[key] = value;
  return {{"file", log.file.valid() ? Json(log.file.value()) : Json(nullptr)},
          {"line", log.line},
          {"lines", log.lines},
          {"at_ns", JsonTime(log.at)},
          {"at_error_ns", log.at_error},
          {"time_from", BasisName(log.basis)},
          {"source", Name(log.source)},
          {"level", Name(log.level)},
          {"process", log.process},
          {"pid", log.pid ? Json(*log.pid) : Json(nullptr)},
          {"rank", log.rank ? Json(*log.rank) : Json(nullptr)},
          {"request_id", log.request},
          {"logger", log.logger},
          {"message", log.message},
          {"exception", log.exception},
          {"template", log.template_id == 0 ? Json(nullptr) : Json(log.template_id)},
          {"parameters", parameters},
          {"statistics", statistics},
          {"step", log.step.valid() ? Json(log.step.value()) : Json(nullptr)},
          {"align_confidence", log.align_confidence},
          {"align_reason", log.align_reason}};
}

}  // namespace

std::vector<StatisticRange> StatisticRanges(const trace::Store& store) {
  std::map<std::string, std::vector<double>> values;
  for (const LogRecord& log : store.logs) {
    for (const auto& [key, value] : log.statistics) values[key].push_back(value);
  }
  std::vector<StatisticRange> out;
  for (auto& [key, list] : values) {
    StatisticRange range{.key = key, .count = list.size(), .last = list.back()};
    std::sort(list.begin(), list.end());
    range.smallest = list.front();
    range.median = list[list.size() / 2];
    range.largest = list.back();
    out.push_back(std::move(range));
  }
  return out;
}

std::string LogsToText(const engine::Run& run, const TextOptions& options) {
  Page page(options);
  AddWhatWasRead(run, page);
  AddUnusedFiles(run.store, page);
  AddCoverage(run.store, page);
  AddRecords(run.store, page);
  AddTemplates(run, page);
  AddStatistics(run.store, page);
  AddDiagnostics(run.store, page);
  return page.Take();
}

base::Status WriteLogsJson(const engine::Run& run, const Sink& sink) {
  const trace::Store& store = run.store;
  JsonObjectStream out(sink);
  out.Field("schema", "teller.logs/1");
  out.BeginArray("files");
  for (const trace::File& file : store.files) out.Item({{"path", file.path}, {"kind", file.kind}});
  out.EndArray();
  out.Field("coverage", CoveragesToJson(store));
  const std::vector<uint32_t> requests = RequestOfRecord(run);
  out.BeginArray("records");
  for (uint32_t i = 0; i < store.logs.size() && out.ok(); ++i) {
    Json record = RecordToJson(store.logs[i]);
    record["request"] = requests[i] == kNoRequest ? Json(nullptr) : Json(run.trees.requests[requests[i]].id);
    out.Item(record);
  }
  out.EndArray();
  out.BeginArray("templates");
  for (const logs::Template& t : ByFrequency(run))
    out.Item({{"id", t.id}, {"count", t.count}, {"level", Name(t.level)}, {"text", t.text}});
  out.EndArray();
  out.BeginArray("statistics");
  for (const StatisticRange& r : StatisticRanges(store)) {
    out.Item({{"key", r.key},
              {"count", r.count},
              {"smallest", r.smallest},
              {"median", r.median},
              {"largest", r.largest},
              {"last", r.last}});
  }
  out.EndArray();
  out.Field("diagnostics", DiagnosticsToJson(store));
  return out.End();
}

}  // namespace teller::report
