#include "ingest/common/sniff.hpp"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>

#include "ingest/common/tar.hpp"
#include "ingest/flight_recorder/flight_recorder.hpp"
#include "ingest/flight_recorder/notation.hpp"
#include "ingest/host_counters/host_counters.hpp"
#include "ingest/kineto/kineto.hpp"
#include "ingest/learned_graphs/learned_graphs.hpp"
#include "ingest/log/parsed_line.hpp"
#include "ingest/nccl_inspector/nccl_inspector.hpp"
#include "ingest/otlp/otlp.hpp"
#include "ingest/prometheus/prometheus.hpp"

namespace teller::ingest {

namespace {

constexpr size_t kMinArrivalDigits = 16;  // epoch microseconds have 16 digits, nanoseconds 19
constexpr size_t kMaxArrivalDigits = 20;

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}
bool StartsWith(std::string_view text, std::string_view front) {
  return text.substr(0, front.size()) == front;
}

std::string_view SkipSpace(std::string_view text) {
  const size_t at = text.find_first_not_of(" \t\r\n");
  return at == std::string_view::npos ? std::string_view() : text.substr(at);
}

std::string_view LineAt(std::string_view text) {
  return text.substr(0, text.find('\n'));
}

/// Every line of the head is a long integer.
bool LooksLikeArrivals(std::string_view head) {
  size_t lines = 0;
  while (!head.empty()) {
    const size_t end = head.find('\n');
    if (end == std::string_view::npos) break;  // may be cut off
    std::string_view line = head.substr(0, end);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    const bool digits = std::all_of(line.begin(), line.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    if (!digits || line.size() < kMinArrivalDigits || line.size() > kMaxArrivalDigits) return false;
    ++lines;
    head.remove_prefix(end + 1);
  }
  return lines > 0;
}

/// A complete object on the first line and another one on the second.
bool LooksLikeJsonLines(std::string_view head) {
  const std::string_view first = LineAt(head);
  if (first.size() == head.size() || first.size() < 2) return false;
  const std::string_view second = SkipSpace(head.substr(first.size()));
  const size_t last = first.find_last_not_of(" \t\r");
  return first.front() == '{' && first[last] == '}' && (second.empty() || second.front() == '{');
}

/// A JSON object with a text to read, and the time or level that makes it a log's: not a span, sample or request.
bool IsLogObject(std::string_view line, simdjson::dom::parser& parser) {
  simdjson::dom::object object;
  if (parser.parse(line.data(), line.size()).get(object) != simdjson::SUCCESS) return false;
  const auto has = [&object](std::initializer_list<std::string_view> keys) {
    return std::any_of(keys.begin(), keys.end(),
                       [&object](auto key) { return object[key].error() == simdjson::SUCCESS; });
  };
  std::string_view text;
  bool message = object["message"].get(text) == simdjson::SUCCESS || object["msg"].get(text) == simdjson::SUCCESS ||
                 object["fields"]["message"].get(text) == simdjson::SUCCESS;
  const bool level = has({"level", "severity", "lvl", "levelname"});
  // Other names for the text count only beside what else only logs have: structlog's level, a container's stream.
  if (!message) message = object["event"].get(text) == simdjson::SUCCESS && level;
  if (!message) message = object["log"].get(text) == simdjson::SUCCESS && has({"stream"});
  if (has({"MESSAGE"}) && has({"__REALTIME_TIMESTAMP"})) return true;  // journald
  return message && (level || has({"timestamp", "time", "ts", "@timestamp", "asctime"}));
}

/// Of the whole lines of the head that are objects, most are log records.
bool LooksLikeJsonLog(std::string_view text, bool whole) {
  constexpr size_t kLooked = 50;
  simdjson::dom::parser parser;
  size_t objects = 0;
  size_t records = 0;
  while (!text.empty() && objects < kLooked) {
    std::string_view line = LineAt(text);
    if (line.size() == text.size() && !whole) break;  // may be cut
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    if (line.empty() || line.front() != '{') continue;
    ++objects;
    if (line.back() == '}') records += IsLogObject(line, parser);
    if (records == 0) return false;  // the first line tells spans, samples and documents apart at once
  }
  return records * 2 > objects;
}

constexpr std::string_view kRocprofiler =
    "rocprofiler JSON, which holds records, not events; run rocprofv3 with --output-format pftrace and turn that into "
    "JSON with Perfetto's "
    "traceconv (traceconv json in.pftrace out.json), or record with torch.profiler";

Sniffed SniffJson(std::string_view head, bool whole, std::string_view text) {
  if (LooksLikeGraphs(text)) return {Kind::kGraphs, {}};
  if (LooksLikeFlightRecorder(head)) return {Kind::kFlightRecorder, {}};
  if (LooksLikeInspector(text)) return {Kind::kInspector, {}};
  if (text.front() == '{' && LooksLikeJsonLog(text, whole)) return {Kind::kLog, {}};
  if (LooksLikeOtlpJson(text)) return {Kind::kOtlpJson, {}};
  if (Has(text, "\"resourceMetrics\"") || Has(text, "\"resourceLogs\"")) {
    return {Kind::kOther, "OTLP metrics and logs are not read; give Prometheus scrapes and the service log"};
  }
  if (text.front() == '{' && (whole || LineAt(text).size() < text.size()) && LooksLikeHostCounters(LineAt(text))) {
    return {Kind::kHostCounters, {}};
  }
  if (LooksLikeJsonLines(text)) return {Kind::kOther, "JSON lines of a kind that is not read"};
  if (LooksLikeKineto(head)) return {Kind::kTrace, {}};
  if (Has(text, "\"rocprofiler-sdk-tool\"")) return {Kind::kOther, kRocprofiler};
  return {Kind::kJsonUnknown, "JSON, but not a trace"};
}

struct Magic {
  std::string_view bytes;
  std::string_view note;
};

constexpr std::string_view kSqlite("SQLite format 3\0", 16);

constexpr std::array<Magic, 8> kMagics = {{
    {"\x89PNG", "a picture"},
    {"\xFF\xD8\xFF", "a picture"},
    {"PK\x03\x04", "a zip archive; unpack it first"},
    {"\x28\xB5\x2F\xFD", "compressed twice; unpack it once"},
    {"\xFD"
     "7zXZ",
     "xz-compressed; unpack it first"},
    {"BZh", "bzip2-compressed; unpack it first"},
    {"\x7F"
     "ELF",
     "a program"},
    {"%PDF", "a PDF"},
}};

/// Extensions of text files that are no logs unless their lines show that they are.
constexpr std::array<std::string_view, 18> kNotLogs = {".md",   ".rst",  ".py",    ".sh",  ".yaml", ".yml",
                                                       ".toml", ".ini",  ".cfg",   ".csv", ".xml",  ".html",
                                                       ".js",   ".json", ".jsonl", ".cpp", ".hpp",  ".prom"};

std::string_view Extension(std::string_view path) {
  for (const std::string_view packed : {".gz", ".zst"}) {
    if (path.ends_with(packed)) path.remove_suffix(packed.size());
  }
  const size_t slash = path.rfind('/');
  const size_t dot = path.rfind('.');
  if (dot == std::string_view::npos || (slash != std::string_view::npos && dot < slash)) return {};
  return path.substr(dot);
}

/// The profiler's own file, which only its own tools read.
bool IsNsysReport(std::string_view path) {
  const auto extension = Extension(path);
  return extension == ".nsys-rep" || extension == ".qdrep";
}

/// Perfetto's protobuf: a chain of length-delimited fields with number 1. Short chains also occur in other data.
bool LooksLikePerfetto(std::string_view head) {
  constexpr size_t kPackets = 4;
  size_t packets = 0;
  size_t at = 0;
  for (; at < head.size() && head[at] == '\x0A'; ++packets) {
    uint64_t length = 0;
    unsigned shift = 0;
    bool more = true;
    for (++at; more && at < head.size() && shift < 35; ++at, shift += 7) {
      const auto byte = static_cast<unsigned char>(head[at]);
      length |= static_cast<uint64_t>(byte & 0x7F) << shift;
      more = (byte & 0x80) != 0;
    }
    if (more || length == 0) return false;
    at += static_cast<size_t>(std::min<uint64_t>(length, head.size()));
  }
  return packets >= kPackets && (at >= head.size() || head[at] == '\x0A');
}

/// What to do about traces in binary forms that are known and not read; empty for others.
std::string_view BinaryTrace(std::string_view head, std::string_view path) {
  if (path.ends_with(".xplane.pb")) {
    return "an XLA profile (xplane); give the perfetto_trace.json.gz that jax.profiler writes beside it with "
           "create_perfetto_trace=True";
  }
  if (LooksLikePerfetto(head)) {
    return "a Perfetto protobuf trace; turn it into JSON with Perfetto's traceconv (traceconv json in.pftrace "
           "out.json)";
  }
  return {};
}

/// A run of NULs, which a truncated log has where its writer went on, counts as one byte.
bool LooksBinary(std::string_view whole) {
  std::string head(whole);
  head.erase(std::unique(head.begin(), head.end(), [](char a, char b) { return a == '\0' && b == '\0'; }), head.end());
  const auto odd = static_cast<size_t>(std::count_if(head.begin(), head.end(), [](unsigned char c) {
    return c < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\x1b' && c != '\b' && c != '\f';
  }));
  return odd * 50 > head.size();  // logs hold stray control characters, never 2 % of them
}

/// Most lines of the head have the stamp and form of a log line.
bool LooksLikeLog(std::string_view head) {
  size_t lines = 0;
  size_t records = 0;
  while (!head.empty() && lines < 200) {
    std::string_view line = LineAt(head);
    head.remove_prefix(std::min(head.size(), line.size() + 1));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    ++lines;
    log::Origin origin;
    log::PeelPrefixes(line, origin);
    const auto parsed = log::ParseLine(line, origin);
    records += parsed.header && parsed.stamp.present && parsed.source != trace::LogSource::kUnknown;
  }
  return records * 2 > lines;
}

Sniffed SniffText(std::string_view head, bool whole, std::string_view path) {
  const std::string_view text = SkipSpace(head);
  if (LooksLikeArrivals(head)) return {Kind::kArrival, {}};
  if (LooksLikePrometheus(head, whole)) return {Kind::kPrometheus, {}};
  if (StartsWith(text, "<?xml") || StartsWith(text, "<system") || StartsWith(text, "<!DOCTYPE")) {
    return {Kind::kOther, "XML or HTML, not a log"};
  }
  const auto extension = Extension(path);
  if (std::find(kNotLogs.begin(), kNotLogs.end(), extension) != kNotLogs.end() && !LooksLikeLog(head)) {
    return {Kind::kOther, "text without log lines, and by its extension not a log"};
  }
  return {Kind::kLog, {}};
}

}  // namespace

std::string_view Name(Kind kind) {
  switch (kind) {
    case Kind::kTrace: return "kineto";
    case Kind::kFlightRecorder: return "flight-recorder";
    case Kind::kOtlpJson:
    case Kind::kOtlpProtobuf: return "otlp";
    case Kind::kPrometheus: return "prometheus";
    case Kind::kHostCounters: return "host-counters";
    case Kind::kNsys: return "nsys";
    case Kind::kInspector: return "nccl-inspector";
    case Kind::kGraphs: return "graphs";
    case Kind::kLog: return "log";
    case Kind::kArrival: return "log-arrival";
    case Kind::kEmpty:
    case Kind::kJsonUnknown:
    case Kind::kOther: break;
  }
  return "other";
}

bool IsRead(Kind kind) {
  return kind != Kind::kEmpty && kind != Kind::kJsonUnknown && kind != Kind::kOther;
}

Sniffed SniffKind(std::string_view head, bool whole, std::string_view path) {
  std::string_view text = SkipSpace(head);
  if (StartsWith(text, "\xEF\xBB\xBF")) text = SkipSpace(text.substr(3));
  if (text.empty())
    return whole ? Sniffed{Kind::kEmpty, "empty file"} : Sniffed{Kind::kOther, "nothing but white space"};
  if (StartsWith(head, kSqlite)) return {Kind::kNsys, {}};
  for (const auto& magic : kMagics) {
    if (StartsWith(head, magic.bytes)) return {Kind::kOther, magic.note};
  }
  if (LooksLikeTar(head)) return {Kind::kOther, "an archive inside of an archive; unpack the outer one"};
  if (flight_recorder::LooksLikePickle(head)) {
    if (LooksLikeFlightRecorder(head)) return {Kind::kFlightRecorder, {}};
    if (head[0] == '\x80') return {Kind::kOther, "a Python pickle, but no Flight Recorder dump"};
  }
  if (text.front() == '{' || text.front() == '[') {
    const Sniffed json = SniffJson(head, whole, text);
    // A log line may begin with a bracket: "[2026-...] ..." is no JSON.
    const std::string_view second = SkipSpace(text.substr(1));
    const bool document = text.front() == '{' ? (second.empty() || second.front() == '"' || second.front() == '}')
                                              : (second.empty() || second.front() == '{' || second.front() == ']');
    if (json.kind != Kind::kJsonUnknown || document) return json;
  }
  if (path.ends_with(".xplane.pb")) return {Kind::kOther, BinaryTrace(head, path)};
  if (LooksBinary(head) && IsNsysReport(path)) {
    return {Kind::kOther, "an Nsight Systems report; export it first: nsys export --type sqlite FILE"};
  }
  if (LooksLikeOtlpProtobuf(head)) return {Kind::kOtlpProtobuf, {}};
  if (LooksBinary(head)) {
    if (const auto known = BinaryTrace(head, path); !known.empty()) return {Kind::kOther, known};
  }
  if (LooksBinary(head)) return {Kind::kOther, kBinaryNote};
  return SniffText(head, whole, path);
}

}  // namespace teller::ingest
