// NCCL Inspector: JSON lines with "header" (communicator, rank), "metadata" (host, pid, time of the dump) and one of
// "coll_perf", "p2p_perf". Format 4.3 writes header and metadata once a dump, in a "dump_stats" line before its
// records.
#include "ingest/nccl_inspector/nccl_inspector.hpp"

#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "ingest/common/decimal.hpp"
#include "ingest/common/drain.hpp"
#include "ingest/common/rank.hpp"
#include "ingest/common/text.hpp"
#include "ingest/log/line_splitter.hpp"

namespace teller::ingest {

namespace {

namespace sj = simdjson::dom;

constexpr size_t kMaxLine = 1u << 20;  // verbose records hold some events for each of 64 channels
constexpr size_t kMaxWord = 256;
constexpr int64_t kMaxRank = 1 << 20;
constexpr double kMaxGbs = 1e9;

constexpr base::DiagnosticKind kBadLine = {
    "nccl-inspector.bad-line", base::Severity::kDataLoss,
    "a line is no JSON object, or its record lacks the operation, its number or its time; it was left out"};
constexpr base::DiagnosticKind kNoContext = {
    "nccl-inspector.no-context", base::Severity::kDataLoss,
    "a record without a header behind no dump's first line; nothing tells whose it is, so it was left out"};
constexpr base::DiagnosticKind kUnquoted = {
    "nccl-inspector.unquoted-hex", base::Severity::kNotice,
    "hexadecimal numbers without quotes, which JSON does not have; they were read as text"};
constexpr base::DiagnosticKind kOtherRecord = {"nccl-inspector.other-record", base::Severity::kInfo,
                                               "records of a kind that is not used, such as proxy traces"};
constexpr base::DiagnosticKind kRingFull = {
    "nccl-inspector.ring-full", base::Severity::kNotice,
    "operations that the plugin itself had to drop between two dumps; a shorter dump interval keeps them"};
constexpr base::DiagnosticKind kDamaged = {"nccl-inspector.damaged", base::Severity::kDataLoss, "the file ends early"};

/// Puts quotes around 0x... outside of strings. False when there is none.
bool QuoteHex(std::string_view line, std::string& out) {
  out.clear();
  bool inside = false;
  bool any = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    out += c;
    if (inside && c == '\\' && i + 1 < line.size()) {
      out += line[++i];
    } else if (c == '"') {
      inside = !inside;
    } else if (!inside && c == '0' && i + 1 < line.size() && (line[i + 1] == 'x' || line[i + 1] == 'X')) {
      size_t end = i + 2;
      while (end < line.size() && std::isxdigit(static_cast<unsigned char>(line[end])) != 0) ++end;
      out.back() = '"';
      out += line.substr(i, end - i);
      out += '"';
      i = end - 1;
      any = true;
    }
  }
  return any;
}

std::string_view Text(sj::object object, std::string_view key) {
  std::string_view text;
  return object[key].get(text) == simdjson::SUCCESS ? text.substr(0, kMaxWord) : std::string_view();
}

std::optional<int64_t> Integer(sj::object object, std::string_view key) {
  sj::element element;
  if (object[key].get(element) != simdjson::SUCCESS) return std::nullopt;
  int64_t value = 0;
  if (element.get(value) == simdjson::SUCCESS) return value;
  std::string_view text;
  if (element.get(text) == simdjson::SUCCESS) return ParseInteger(text);
  return std::nullopt;
}

std::optional<double> Real(sj::object object, std::string_view key) {
  double value = 0;
  if (object[key].get(value) != simdjson::SUCCESS || !std::isfinite(value)) return std::nullopt;
  return value;
}

int32_t Small(sj::object object, std::string_view key) {
  const auto value = Integer(object, key);
  return value && *value >= 0 && *value <= kMaxRank ? static_cast<int32_t>(*value) : -1;
}

class Reader {
 public:
  Reader(trace::FileRow file, trace::Store& store) : file_(file), store_(store), row_(store.files[file.value()]) {}

  void Line(const log::Segment& segment) {
    if (segment.text.find_first_not_of(" \t\r") == std::string_view::npos) return;
    ++row_.records_read;
    line_ = segment.line;
    sj::object object;
    if (segment.cut > 0 || !Parse(segment.text, object)) return Drop(kBadLine);
    Record(object);
  }

  void Finish() { row_.rank = world_rank_ >= 0 ? std::optional(world_rank_) : RankFromPath(row_.path); }

 private:
  void Drop(const base::DiagnosticKind& kind) {
    store_.diagnostics.Report(kind, file_, "line " + std::to_string(line_));
    ++row_.dropped;
  }

  bool Parse(std::string_view text, sj::object& object) {
    if (parser_.parse(text.data(), text.size()).get(object) == simdjson::SUCCESS) return true;
    if (!QuoteHex(text, repaired_)) return false;
    if (parser_.parse(repaired_).get(object) != simdjson::SUCCESS) return false;
    store_.diagnostics.Report(kUnquoted, file_, "line " + std::to_string(line_));
    return true;
  }

  /// Who measured; from "header" and "metadata", or (flat variants) from the record itself.
  void ReadContext(sj::object record, trace::CommPerf& out) {
    sj::object header;
    if (record["header"].get(header) != simdjson::SUCCESS) header = record;
    sj::object metadata;
    if (record["metadata"].get(metadata) != simdjson::SUCCESS) metadata = record;
    out.comm = store_.strings.Intern(Text(header, "id"));
    out.rank = Small(header, "rank");
    out.nranks = Small(header, "n_ranks");
    out.nodes = Small(header, "nnodes");
    out.host = store_.strings.Intern(Text(metadata, "hostname"));
    out.pid = Integer(metadata, "pid").value_or(-1);
    const auto at = Integer(metadata, "dump_timestamp_us");
    if (at && *at > 0 && *at <= kMaxNanos / 1000) out.at = *at * 1000;
  }

  void Record(sj::object record) {
    sj::object stats;
    sj::object perf;
    const bool has_header =
        record["header"].error() == simdjson::SUCCESS || record["rank"].error() == simdjson::SUCCESS;
    if (record["dump_stats"].get(stats) == simdjson::SUCCESS) {
      context_ = trace::CommPerf();
      ReadContext(record, *context_);
      for (const auto* key : {"coll_dropped_since_last_dump", "p2p_dropped_since_last_dump"}) {
        const int64_t lost = Integer(stats, key).value_or(0);
        if (lost > 0)
          store_.diagnostics.Report(kRingFull, file_, "line " + std::to_string(line_), static_cast<uint64_t>(lost));
      }
      ++row_.metadata;
      return;
    }
    const bool collective = record["coll_perf"].get(perf) == simdjson::SUCCESS;
    if (!collective && record["p2p_perf"].get(perf) != simdjson::SUCCESS) {
      const bool other = has_header || record["proxy_trace"].error() == simdjson::SUCCESS;
      return Drop(other ? kOtherRecord : kBadLine);
    }
    if (!has_header && !context_) return Drop(kNoContext);
    trace::CommPerf out;
    if (has_header) {
      ReadContext(record, out);
    } else {
      out = *context_;
    }
    if (!ReadPerf(perf, collective ? "coll" : "p2p", out)) return Drop(kBadLine);
    NoteRank(out);
    ++row_.spans;
    store_.comm_perf.push_back(out);
  }

  bool ReadPerf(sj::object perf, const std::string& front, trace::CommPerf& out) {
    const std::string_view op = Text(perf, front);
    const auto sequence = Integer(perf, front + "_sn");
    const auto micros = Real(perf, front + "_exec_time_us");
    if (op.empty() || !sequence || *sequence < 0 || !micros || *micros < 0 || out.rank < 0) return false;
    if (*micros * 1000 > static_cast<double>(kMaxDuration)) return false;
    out.file = file_;
    out.line = line_;
    out.op = store_.strings.Intern(op);
    out.algo = store_.strings.Intern(Text(perf, front + "_algo"));
    out.timing = store_.strings.Intern(Text(perf, front + "_timing_source"));
    out.sequence = *sequence;
    out.duration = static_cast<trace::Nanos>(std::llround(*micros * 1000));
    out.bytes = std::max<int64_t>(-1, Integer(perf, front + "_msg_size_bytes").value_or(-1));
    out.algo_gbs = std::clamp(Real(perf, front + "_algobw_gbs").value_or(0), 0.0, kMaxGbs);
    out.bus_gbs = std::clamp(Real(perf, front + "_busbw_gbs").value_or(0), 0.0, kMaxGbs);
    if (front == "p2p") out.peer = Small(perf, "p2p_peer");
    return true;
  }

  /// The process's rank in the job is that in its largest communicator.
  void NoteRank(const trace::CommPerf& perf) {
    if (perf.nranks < world_) return;
    if (perf.nranks == world_ && perf.rank != world_rank_) world_rank_ = -1;
    if (perf.nranks > world_) world_rank_ = perf.rank;
    world_ = perf.nranks;
  }

  trace::FileRow file_;
  trace::Store& store_;
  trace::File& row_;
  sj::parser parser_;
  std::string repaired_;
  std::optional<trace::CommPerf> context_;
  uint32_t line_ = 0;
  int world_ = -1;
  int world_rank_ = -1;
};

}  // namespace

bool LooksLikeInspector(std::string_view head) {
  const size_t first = head.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (first == std::string_view::npos || head[first] != '{') return false;
  const std::string_view line = head.substr(first, head.find('\n', first) - first);
  const auto has = [&](std::string_view key) { return line.find(key) != std::string_view::npos; };
  return (has("\"coll_perf\"") && has("\"coll_sn\"")) || (has("\"p2p_perf\"") && has("\"p2p_sn\"")) ||
         (has("\"dump_stats\"") && has("\"inspector_output_format_version\""));
}

base::Status ReadInspector(base::ByteSource& source, trace::FileRow file, trace::Store& store,
                           const base::Limits& limits) {
  (void)limits;
  store.files[file.value()].kind = "nccl-inspector";
  Reader reader(file, store);
  log::LineSplitter splitter(kMaxLine, [&](const log::Segment& segment) { reader.Line(segment); });
  TELLER_TRY(Drain(source, splitter, store.files[file.value()].bytes));
  reader.Finish();
  if (!source.damage().empty()) store.diagnostics.Report(kDamaged, file, std::string(source.damage()));
  return {};
}

}  // namespace teller::ingest
