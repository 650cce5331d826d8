#include "report/summary.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "report/units.hpp"

namespace teller::report {

namespace {

constexpr size_t kMaxFindings = 20;  // of the JSON contract

void Widen(Summary& summary, base::Nanos begin, base::Nanos end) {
  if (begin == base::kNoTime || end == base::kNoTime) return;
  if (summary.begin == base::kNoTime || begin < summary.begin) summary.begin = begin;
  if (summary.end == base::kNoTime || end > summary.end) summary.end = end;
}

void CountFiles(const trace::Store& store, Summary& summary) {
  for (const trace::File& file : store.files) {
    summary.log_records += file.log_records;
    summary.counter_samples += file.counters;
    if (file.kind == "log") {
      ++summary.log_files;
    } else if (file.kind == "kineto" || file.kind == "nsys" || file.kind == "flight-recorder" ||
               file.kind == "nccl-inspector" || file.kind == "otlp") {
      ++summary.trace_files;
    } else if (file.kind == "prometheus" || file.kind == "host-counters") {
      ++summary.counter_files;
    } else if (file.kind == "graphs") {
      ++summary.graph_files;
    } else if (file.kind != "log-arrival") {
      ++summary.unused_files;
    }
    if (file.rank) summary.ranks.push_back(*file.rank);
  }
}

}  // namespace

Summary Summarize(const engine::Run& run) {
  const trace::Store& store = run.store;
  Summary summary;
  CountFiles(store, summary);
  summary.spans = store.spans.size();
  summary.steps = run.trees.steps.size();
  summary.requests = run.trees.requests.size();
  for (const trace::Process& process : store.processes) {
    if (process.rank) summary.ranks.push_back(*process.rank);
  }
  std::sort(summary.ranks.begin(), summary.ranks.end());
  summary.ranks.erase(std::unique(summary.ranks.begin(), summary.ranks.end()), summary.ranks.end());
  for (size_t i = 0; i < store.spans.size(); ++i) Widen(summary, store.spans.begin[i], store.spans.end(i));
  for (const trace::LogRecord& log : store.logs) Widen(summary, log.at, log.at);
  if (summary.begin != base::kNoTime) summary.clock_domain = IsEpoch(summary.begin) ? "epoch" : "relative";
  return summary;
}

std::string ProcessLabel(const trace::Store& store, trace::ProcessRow row) {
  if (!row.valid() || row.value() >= store.processes.size()) return "";
  const trace::Process& process = store.processes[row.value()];
  if (process.rank) {
    const std::string rank = fmt::format("rank {}", *process.rank);
    const bool says_more = !process.name.empty() && process.name != fmt::format("rank{}", *process.rank);
    return says_more ? rank + " (" + process.name + ")" : rank;
  }
  return process.name.empty() ? "pid " + process.pid : process.name;
}

std::string TrackLabel(const trace::Track& track) {
  if (track.is_stream && track.stream >= 0) return fmt::format("stream {}", track.stream);
  if (track.name.empty()) return "thread " + track.tid;
  return track.name;
}

std::string FilePath(const trace::Store& store, trace::FileRow row) {
  return row.valid() && row.value() < store.files.size() ? store.files[row.value()].path : "";
}

std::string EvidenceRef(const trace::Store& store, const trace::Evidence& evidence) {
  if (!evidence.ref.empty()) return evidence.ref;
  if (evidence.span.valid()) return fmt::format("span:{}", evidence.span.value());
  if (evidence.log.valid() && evidence.log.value() < store.logs.size()) {
    return fmt::format("line:{}", store.logs[evidence.log.value()].line);
  }
  return "";
}

size_t ShownFindings(const trace::Diagnosis& diagnosis, bool all) {
  return all ? diagnosis.findings.size() : std::min(diagnosis.findings.size(), kMaxFindings);
}

}  // namespace teller::report
