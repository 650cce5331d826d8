#include "report/perfetto.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "report/printable.hpp"
#include "report/summary.hpp"

namespace teller::report {

namespace {

using base::Nanos;

constexpr size_t kFlushBytes = 1 << 16;
/// Process ids of the export: findings, then the recorded processes by row, then the logs.
constexpr uint32_t kFindingsPid = 0;
constexpr uint32_t kFirstPid = 1;

std::string Quoted(std::string_view text) {
  return nlohmann::json(std::string(text)).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

class Exporter {
 public:
  Exporter(const engine::Run& run, const trace::Diagnosis& diagnosis, const Sink& sink)
      : run_(run), store_(run.store), diagnosis_(diagnosis), sink_(sink), base_(Summarize(run).begin) {
    if (base_ == base::kNoTime) base_ = 0;
  }

  base::Status Write() {
    buffer_ = fmt::format("{{\"schemaVersion\":1,\"baseTimeNanoseconds\":{},\"traceEvents\":[", base_);
    Names();
    Findings();
    TELLER_TRY(Flush(0));
    TELLER_TRY(SpansAndLaunches());
    TELLER_TRY(Logs());
    buffer_ += "\n]}\n";
    return Flush(0);
  }

 private:
  /// Microseconds with three decimals; exact.
  static std::string Micros(Nanos ns) {
    return fmt::format("{}{}.{:03}", ns < 0 ? "-" : "", std::abs(ns) / 1000, std::abs(ns) % 1000);
  }
  std::string At(Nanos at) const { return Micros(at - base_); }

  void Event(std::string_view fields) {
    buffer_ += first_ ? "\n{" : ",\n{";
    first_ = false;
    buffer_.append(fields).append("}");
  }
  base::Status Flush(size_t above) {
    if (buffer_.size() <= above) return {};
    TELLER_TRY(sink_(buffer_));
    buffer_.clear();
    return {};
  }

  void Meta(std::string_view what, uint32_t pid, uint32_t tid, std::string_view name) {
    Event(fmt::format(R"("ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}})", what, pid, tid, Quoted(name)));
  }
  uint32_t LogsPid() const { return kFirstPid + static_cast<uint32_t>(store_.processes.size()); }

  void Names() {
    Meta("process_name", kFindingsPid, 0, "TELLER findings");
    Event(fmt::format(R"("ph":"M","name":"process_sort_index","pid":{},"tid":0,"args":{{"sort_index":-1}})",
                      kFindingsPid));
    for (uint32_t p = 0; p < store_.processes.size(); ++p) {
      Meta("process_name", kFirstPid + p, 0, ProcessLabel(store_, trace::ProcessRow(p)));
      Event(fmt::format(R"("ph":"M","name":"process_labels","pid":{},"tid":0,"args":{{"labels":{}}})", kFirstPid + p,
                        Quoted("pid " + store_.processes[p].pid)));
    }
    for (uint32_t t = 0; t < store_.tracks.size(); ++t) {
      Meta("thread_name", kFirstPid + store_.tracks[t].process.value(), t + 1, TrackLabel(store_.tracks[t]));
    }
    if (!store_.logs.empty()) Meta("process_name", LogsPid(), 0, "logs");
  }

  void Findings() {
    for (size_t i = 0; i < diagnosis_.findings.size(); ++i) {
      const trace::Finding& finding = diagnosis_.findings[i];
      const uint32_t tid = static_cast<uint32_t>(i + 1);
      Meta("thread_name", kFindingsPid, tid, fmt::format("{} {}", finding.id, Name(finding.fault)));
      for (const trace::AbnormalStep& step : finding.steps) {
        if (step.begin == base::kNoTime || step.end < step.begin) continue;
        const std::string rank = step.rank ? fmt::format("rank {} ", *step.rank) : "";
        Event(fmt::format(
            R"("ph":"X","cat":"teller","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{"explanation":{}}})",
            Quoted(fmt::format("{} {}step {} {}", finding.id, rank, step.index, step.name)), kFindingsPid, tid,
            At(step.begin), Micros(step.end - step.begin), Quoted(finding.explanation)));
      }
      for (const trace::Evidence& evidence : finding.evidence) {
        if (evidence.at == base::kNoTime) continue;
        Event(fmt::format(
            R"("ph":"i","s":"g","cat":"teller","name":{},"pid":{},"tid":{},"ts":{},"args":{{"text":{},"ref":{}}})",
            Quoted(evidence.id + " " + Shortened(evidence.text, 120)), kFindingsPid, tid, At(evidence.at),
            Quoted(evidence.text), Quoted(EvidenceRef(store_, evidence))));
      }
    }
  }

  base::Status SpansAndLaunches() {
    const trace::Spans& spans = store_.spans;
    for (size_t row = 0; row < spans.size(); ++row) {
      const uint32_t track = spans.track[row].value();
      Event(
          fmt::format(R"("ph":"X","cat":{},"name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{"teller_span":{}{}}})",
                      Quoted(store_.categories[spans.category[row]].name), Quoted(store_.name(row)), Pid(row),
                      track + 1, At(spans.begin[row]), Micros(spans.duration[row]), row, Origin(row)));
      TELLER_TRY(Flush(kFlushBytes));
    }
    size_t id = 0;
    for (const trace::LaunchLink& link : run_.trees.launches) {
      ++id;
      for (const auto& [phase, row] : {std::pair("\"s\"", link.launch), std::pair("\"f\",\"bp\":\"e\"", link.work)}) {
        Event(fmt::format(R"("ph":{},"cat":"launch","name":"launch","id":{},"pid":{},"tid":{},"ts":{})", phase, id,
                          Pid(row.value()), spans.track[row.value()].value() + 1, At(spans.begin[row.value()])));
      }
      TELLER_TRY(Flush(kFlushBytes));
    }
    return {};
  }
  /// What alignment says about a replayed kernel; trace viewers show it beside the kernel.
  std::string Origin(size_t row) const {
    if (run_.trees.graph_origins.empty() || !trace::IsGpuWork(store_.kind(row))) return {};
    const trace::GraphOrigin* origin = run_.trees.OriginOf(trace::SpanRow(static_cast<uint32_t>(row)));
    if (origin == nullptr) return {};
    std::string text;
    if (origin->module.valid()) text += R"(,"module":)" + Quoted(store_.text(origin->module));
    if (origin->op.valid()) text += R"(,"op":)" + Quoted(store_.text(origin->op));
    if (origin->origin.valid()) text += fmt::format(R"(,"aligned_to":{})", origin->origin.value());
    if (origin->learned.valid()) text += R"(,"learned_in":)" + Quoted(store_.files[origin->learned.value()].path);
    return text + fmt::format(R"(,"aligned_by":"{}","confidence":{:.2f})", Name(origin->source), origin->confidence);
  }
  uint32_t Pid(size_t row) const { return kFirstPid + store_.track_of(row).process.value(); }

  base::Status Logs() {
    for (const trace::LogRecord& log : store_.logs) {
      if (log.at == base::kNoTime) continue;
      const bool traced = log.trace_process.valid();
      Event(fmt::format(
          R"("ph":"i","s":"p","cat":"log","name":{},"pid":{},"tid":0,"ts":{},"args":{{"level":"{}","line":{},"file":{}}})",
          Quoted(Shortened(log.message, 200)), traced ? kFirstPid + log.trace_process.value() : LogsPid(), At(log.at),
          Name(log.level), log.line, Quoted(FilePath(store_, log.file))));
      TELLER_TRY(Flush(kFlushBytes));
    }
    return {};
  }

  const engine::Run& run_;
  const trace::Store& store_;
  const trace::Diagnosis& diagnosis_;
  const Sink& sink_;
  Nanos base_;
  std::string buffer_;
  bool first_ = true;
};

}  // namespace

base::Status WritePerfetto(const engine::Run& run, const trace::Diagnosis& diagnosis, const Sink& sink) {
  return Exporter(run, diagnosis, sink).Write();
}

}  // namespace teller::report
