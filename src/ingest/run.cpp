#include "ingest/run.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <set>

#include "base/byte_source.hpp"
#include "ingest/common/discover.hpp"
#include "ingest/common/rank.hpp"
#include "ingest/common/sniff.hpp"
#include "ingest/common/unpack.hpp"
#include "ingest/flight_recorder/flight_recorder.hpp"
#include "ingest/host_counters/host_counters.hpp"
#include "ingest/kineto/kineto.hpp"
#include "ingest/kineto/top_level.hpp"
#include "ingest/learned_graphs/learned_graphs.hpp"
#include "ingest/log/log_reader.hpp"
#include "ingest/log/nccl_topology.hpp"
#include "ingest/nccl_inspector/nccl_inspector.hpp"
#include "ingest/nsys/nsys.hpp"
#include "ingest/otlp/otlp.hpp"
#include "ingest/prometheus/join.hpp"
#include "ingest/prometheus/prometheus.hpp"

namespace teller::ingest {

namespace {

using base::DiagnosticKind;
using base::Severity;

constexpr DiagnosticKind kNotUsed = {"input.not_used", Severity::kInfo,
                                     "a file of a kind that is not read; the file list says why"};
constexpr DiagnosticKind kNamedNotUsed = {"input.named_not_used", Severity::kDataLoss,
                                          "a file that was named is of a kind that is not read"};
constexpr DiagnosticKind kDamaged = {"input.damaged", Severity::kDataLoss,
                                     "a compressed file is damaged from its first byte on; nothing of it was read"};
constexpr DiagnosticKind kDamagedDatabase = {"input.damaged_database", Severity::kDataLoss,
                                             "the tables of an SQLite database cannot be listed; nothing was read"};
constexpr DiagnosticKind kDamagedJson = {"input.damaged_json", Severity::kDataLoss,
                                         "a JSON document is broken or cut off before any event; nothing was read"};
constexpr DiagnosticKind kEmptyTrace = {"input.empty_file", Severity::kDataLoss,
                                        "a file that should hold a trace is empty; the writer probably died"};
constexpr DiagnosticKind kEmptyFile = {"input.empty_log", Severity::kInfo, "an empty file"};
constexpr DiagnosticKind kLonelyArrival = {
    "input.arrival_without_log", Severity::kNotice,
    "arrival times that belong to no log, or to one of several of equal length; not used"};

constexpr std::string_view kExpected =
    "expected Chrome-trace JSON (torch.profiler), an SQLite export of Nsight Systems, Flight Recorder dumps, NCCL "
    "Inspector lines, OTLP spans, Prometheus metrics, host counters, or text logs";
constexpr std::string_view kDamagedNote = "damaged from its first byte on";
constexpr std::string_view kDamagedDatabaseNote = "a damaged or cut off SQLite database; export it again";
constexpr std::string_view kDamagedJsonNote = "JSON that is broken or cut off before any event";
constexpr uint64_t kLostLines = 1;        // by which a log and its arrival times may differ
constexpr uint64_t kMaxHead = 64u << 20;  // how far into a JSON document its event array is looked for

/// The reader of a kind of file that stands for itself: bytes in, records of one File row out.
/// An error means that nothing of the file can be used; what was lost of it is a diagnostic.
struct Reader {
  Kind kind;
  base::Status (*read)(base::ByteSource& source, trace::FileRow file, trace::Store& store, const base::Limits& limits);
};

constexpr std::array kReaders = {
    Reader{Kind::kFlightRecorder, ReadFlightRecorder}, Reader{Kind::kOtlpJson, ReadOtlpJson},
    Reader{Kind::kOtlpProtobuf, ReadOtlpProtobuf},     Reader{Kind::kPrometheus, ReadPrometheus},
    Reader{Kind::kHostCounters, ReadHostCounters},     Reader{Kind::kInspector, ReadInspector},
};

/// A file and what it turned out to be.
struct Input {
  Found found;
  Sniffed sniffed;
  trace::FileRow row;
};

std::string Folder(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

/// What a JSON document without events in its head is.
enum class Document { kEvents, kWhole, kBroken, kUnknown };

/// Looks for an event array behind a long head, and for the document's end.
Document LookThrough(const std::string& path) {
  auto source = base::OpenFile(path);
  if (!source) return Document::kUnknown;
  TopLevelScanner scanner;
  std::string chunk(kSniffBytes, '\0');
  for (uint64_t read = 0; read < kMaxHead;) {
    auto got = (*source)->Read(chunk.data(), chunk.size());
    if (!got) return Document::kUnknown;
    if (*got == 0) return Document::kBroken;
    read += *got;
    std::string_view text(chunk.data(), *got);
    switch (scanner.Feed(text)) {
      case TopLevelScanner::Stop::kNeedMore: break;
      case TopLevelScanner::Stop::kEvents: return scanner.bare_array() ? Document::kUnknown : Document::kEvents;
      case TopLevelScanner::Stop::kEnd: return Document::kWhole;
      case TopLevelScanner::Stop::kBroken: return Document::kBroken;
    }
  }
  return Document::kUnknown;
}

/// What an SQLite file is. SQLite reads files where they lie, so a compressed one is of no use.
Sniffed SniffSqlite(const std::string& path) {
  char magic = 0;
  if (!std::ifstream(path, std::ios::binary).get(magic) || magic != 'S')
    return {Kind::kOther, "a compressed SQLite database; unpack it first"};
  switch (KindOfDatabase(path)) {
    case DatabaseKind::kExport: return {Kind::kNsys, {}};
    case DatabaseKind::kDamaged: return {Kind::kOther, kDamagedDatabaseNote};
    case DatabaseKind::kOther: break;
  }
  return {Kind::kOther, "an SQLite database, but no export of Nsight Systems"};
}

base::Result<Sniffed> SniffFile(const Found& found) {
  if (!found.special.empty()) return Sniffed{Kind::kOther, found.special};
  const std::string& path = found.path;
  auto source = base::OpenFile(path);
  if (!source) return source.error();
  std::string head(kSniffBytes, '\0');
  auto got = (*source)->Read(head.data(), head.size());
  if (!got) return got.error();
  head.resize(*got);
  // A log that was truncated while its writer went on begins with NULs: what it is, tells what stands behind them.
  for (uint64_t skipped = 0;
       *got == kSniffBytes && head.find_first_not_of('\0') == std::string::npos && skipped < kMaxHead;
       skipped += *got) {
    head.assign(kSniffBytes, '\0');
    got = (*source)->Read(head.data(), head.size());
    if (!got) return got.error();
    head.resize(*got);
  }
  head.erase(0, std::min(head.find_first_not_of('\0'), head.size()));
  if (head.empty() && !(*source)->damage().empty()) return Sniffed{Kind::kOther, kDamagedNote};
  Sniffed sniffed = SniffKind(head, *got < kSniffBytes, found.place());
  if (sniffed.kind == Kind::kJsonUnknown) {
    const Document document = LookThrough(path);
    if (document == Document::kEvents) sniffed.kind = Kind::kTrace;
    if (document == Document::kBroken) sniffed.note = kDamagedJsonNote;
  }
  if (sniffed.kind == Kind::kNsys && !found.name.empty()) {
    return Sniffed{Kind::kOther, "an SQLite database in an archive or on standard input; give it as a file of its own"};
  }
  if (sniffed.kind == Kind::kNsys) sniffed = SniffSqlite(path);
  return sniffed;
}

/// Physical lines of a file, a last one without its end too; 0 when it cannot be read.
uint64_t CountLines(const std::string& path) {
  auto source = base::OpenFile(path);
  if (!source) return 0;
  std::string chunk(kSniffBytes, '\0');
  uint64_t lines = 0;
  char last = '\n';
  while (true) {
    auto got = (*source)->Read(chunk.data(), chunk.size());
    if (!got || *got == 0) return lines + (last == '\n' ? 0 : 1);
    lines += static_cast<uint64_t>(std::count(chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(*got), '\n'));
    last = chunk[*got - 1];
  }
}

class RunReader {
 public:
  explicit RunReader(const RunOptions& options) : options_(options) {}

  base::Result<trace::Store> Read(const RunInputs& inputs) {
    RunInputs files = inputs;
    const bool in_paths = std::erase(files.paths, kStandardInput) > 0;
    const bool in_logs = std::erase(files.logs, kStandardInput) > 0;
    Discovered discovered = Discover(files.paths, files.logs);
    TELLER_TRY(AddGraphs(inputs.graphs, discovered));
    if (in_paths || in_logs) {
      auto stream = unpacker_.ReadStandardInput(in_logs);
      if (!stream) return stream.error();
      discovered.files.push_back(std::move(*stream));
    }
    for (auto& found : discovered.files) {
      for (auto& file : unpacker_.Unpack(std::move(found), store_)) Classify(std::move(file), discovered.problems);
    }
    for (const auto& [kind, error] : discovered.problems) store_.diagnostics.Report(*kind, {}, error.Text());
    if (!AnyUsable()) return NothingUsable(inputs, discovered.problems);
    for (const auto& input : inputs_) NoteUnused(input);
    TELLER_TRY(ReadTraces());
    TELLER_TRY(ReadLearned());
    for (const auto& reader : kReaders) ReadAll(reader);
    JoinScrapes(store_);
    KeepLatestDumps(store_);
    ReadLogs();
    if (Cancelled()) return base::Error{base::Code::kCancelled, "stopped while reading"};
    return std::move(store_);
  }

 private:
  bool Cancelled() const { return options_.progress != nullptr && options_.progress->cancelled(); }

  /// What --graphs names; a file that the paths hold as well is read once.
  base::Status AddGraphs(const std::vector<std::string>& graphs, Discovered& discovered) {
    Discovered named = Discover(graphs, {});
    if (!named.problems.empty()) return named.problems.front().error;
    for (Found& file : named.files) {
      required_.insert(file.path);
      const bool known = std::any_of(discovered.files.begin(), discovered.files.end(),
                                     [&](const Found& other) { return other.path == file.path; });
      if (!known) discovered.files.push_back(std::move(file));
    }
    return {};
  }

  /// Those that were asked for must be read; a damaged one that only lies there is a diagnostic.
  base::Status ReadLearned() {
    for (const auto& input : inputs_) {
      const bool required = required_.count(input.found.path) > 0;
      if (required && input.sniffed.kind != Kind::kGraphs) {
        return base::Error{base::Code::kBadFormat,
                           "is no file of learned graphs; \"teller graphs learn RUN -o FILE\" makes one",
                           input.found.shown};
      }
      if (input.sniffed.kind != Kind::kGraphs || Cancelled()) continue;
      auto source = base::OpenFile(input.found.path);
      base::Status status =
          source ? ReadGraphs(**source, input.row, store_, options_.limits) : base::Status(source.error());
      if (status) continue;
      base::Error error = status.error();
      if (!required) {
        Refuse(input, error);
        continue;
      }
      error.path = input.found.shown;
      return error;
    }
    return {};
  }

  void Classify(Found found, std::vector<DiscoverProblem>& problems) {
    Input input;
    input.found = std::move(found);
    trace::File file;
    file.path = input.found.shown;
    auto sniffed = SniffFile(input.found);
    if (sniffed) {
      input.sniffed = *sniffed;
      const bool readable = input.sniffed.kind != Kind::kEmpty && input.found.special.empty();
      if (input.found.as_log && readable) input.sniffed = {Kind::kLog, {}};
    } else {
      problems.push_back({&kUnreadableInput, sniffed.error()});
      file.note = sniffed.error().message;
    }
    file.kind = Name(input.sniffed.kind);
    if (!IsRead(input.sniffed.kind) && file.note.empty()) file.note = input.sniffed.note;
    input.row = trace::FileRow(static_cast<uint32_t>(store_.files.size()));
    store_.files.push_back(std::move(file));
    inputs_.push_back(std::move(input));
  }

  bool AnyUsable() const {
    return std::any_of(inputs_.begin(), inputs_.end(), [](const Input& input) {
      return IsRead(input.sniffed.kind) && input.sniffed.kind != Kind::kArrival;
    });
  }

  base::Error NothingUsable(const RunInputs& inputs, const std::vector<DiscoverProblem>& problems) const {
    for (const auto& problem : problems) {
      if (problem.kind->severity >= Severity::kDataLoss) return problem.error;
    }
    if (const auto& damage = unpacker_.damage()) {
      return {damage->code,
              "a damaged archive: " + damage->message + "; what stands before holds neither traces nor logs",
              damage->path};
    }
    for (const auto& input : inputs_) {
      const DiagnosticKind* damage = Damage(input);
      if (damage == nullptr) continue;
      return {base::Code::kBadFormat, "not usable: " + store_.files[input.row.value()].note, input.found.shown};
    }
    const std::string& first = inputs.paths.empty() ? inputs.logs.front() : inputs.paths.front();
    if (inputs_.size() == 1) return NotUsable(inputs_.front());
    return {base::Code::kNotFound, "neither traces nor logs in here; " + std::string(kExpected), first};
  }

  base::Error NotUsable(const Input& input) const {
    const std::string& note = store_.files[input.row.value()].note;
    if (!input.found.special.empty()) return {base::Code::kUnreadable, note, input.found.shown};
    return {base::Code::kNotFound, "not usable: " + note + "; " + std::string(kExpected), input.found.shown};
  }

  /// What was lost with a file that is not read; null when it held nothing that would have been.
  static const DiagnosticKind* Damage(const Input& input) {
    if (IsRead(input.sniffed.kind)) return nullptr;
    if (input.sniffed.kind == Kind::kEmpty) {
      const bool trace = EndsWith(input.found.place(), ".json") || EndsWith(input.found.place(), ".gz") ||
                         EndsWith(input.found.place(), ".zst");
      return trace ? &kEmptyTrace : nullptr;
    }
    if (input.sniffed.note == kDamagedNote) return &kDamaged;
    // What is called a trace and is no text was one before its first bytes were lost.
    if (input.sniffed.note == kBinaryNote) {
      if (EndsWith(input.found.place(), ".gz") || EndsWith(input.found.place(), ".zst")) return &kDamaged;
      if (EndsWith(input.found.place(), ".json")) return &kDamagedJson;
    }
    if (input.sniffed.note == kDamagedDatabaseNote) return &kDamagedDatabase;
    return input.sniffed.note == kDamagedJsonNote ? &kDamagedJson : nullptr;
  }

  void NoteUnused(const Input& input) {
    const auto& file = store_.files[input.row.value()];
    if (IsRead(input.sniffed.kind)) return;
    if (const DiagnosticKind* damage = Damage(input)) {
      store_.diagnostics.Report(*damage, input.row, {});
    } else if (input.sniffed.kind == Kind::kEmpty) {
      store_.diagnostics.Report(kEmptyFile, input.row, {});
    } else if (!input.sniffed.note.empty()) {
      store_.diagnostics.Report(input.found.named ? kNamedNotUsed : kNotUsed, input.row, file.note);
    }
  }

  base::Status ReadTraces() {
    std::vector<KinetoInput> traces;
    for (const auto& input : inputs_) {
      if (input.sniffed.kind == Kind::kTrace) traces.push_back({input.row, input.found.path});
    }
    TELLER_TRY(ReadKineto(traces, store_, options_));
    std::vector<NsysInput> exports;
    for (const auto& input : inputs_) {
      if (input.sniffed.kind == Kind::kNsys) exports.push_back({input.row, input.found.path});
    }
    return ReadNsys(exports, store_, options_);
  }

  /// Opens a file for a reader; a refusal becomes a diagnostic.
  std::unique_ptr<base::ByteSource> Open(const Input& input) {
    auto source = base::OpenFile(input.found.path);
    if (source) return std::move(*source);
    Refuse(input, source.error());
    return nullptr;
  }

  void Refuse(const Input& input, const base::Error& error) {
    store_.files[input.row.value()].note = error.message;
    store_.diagnostics.Report(kUnreadableInput, input.row, error.message);
  }

  /// Gives every file of one kind to its reader.
  void ReadAll(const Reader& reader) {
    for (const auto& input : inputs_) {
      if (input.sniffed.kind != reader.kind || Cancelled()) continue;
      if (auto source = Open(input); source != nullptr) {
        const auto status = reader.read(*source, input.row, store_, options_.limits);
        if (!status) Refuse(input, status.error());
      }
    }
  }

  void ReadLogs() {
    for (const auto& input : inputs_) {
      if (input.sniffed.kind != Kind::kLog || Cancelled()) continue;
      // What the run's own folder is called tells nothing of a file in it.
      store_.files[input.row.value()].rank =
          RankFromPath(input.found.name.empty() ? input.found.shown : input.found.name);
      if (auto source = Open(input); source != nullptr) {
        const auto status = ReadLog(*source, input.row, store_, options_.limits);
        if (!status) Refuse(input, status.error());
      }
    }
    for (const auto& input : inputs_) {
      if (input.sniffed.kind == Kind::kArrival && !Cancelled()) ReadArrivals(input);
    }
    ResolveLogTimes(store_);
    BuildCommunicators(store_);
  }

  /// The log that arrival times belong to: the one in the same folder, or of several the one with as many lines (a
  /// collector that is stopped may lose a last one). Null when none is, or more than one could be.
  const Input* LogOfArrivals(const Input& arrivals, std::string& why) const {
    std::vector<const Input*> logs;
    for (const auto& input : inputs_) {
      if (input.sniffed.kind == Kind::kLog && Folder(input.found.place()) == Folder(arrivals.found.place()))
        logs.push_back(&input);
    }
    if (logs.size() == 1) return logs.front();
    if (logs.empty()) {
      why = "no log beside it";
      return nullptr;
    }
    const uint64_t times = CountLines(arrivals.found.path);
    std::vector<const Input*> nearest;
    uint64_t distance = kLostLines;
    for (const Input* log : logs) {
      const uint64_t lines = CountLines(log->found.path);
      const uint64_t off = lines > times ? lines - times : times - lines;
      if (off > distance) continue;
      if (off < distance) nearest.clear();
      distance = off;
      nearest.push_back(log);
    }
    if (nearest.size() == 1) return nearest.front();
    why = std::to_string(nearest.size()) + " of " + std::to_string(logs.size()) + " logs beside it have its " +
          std::to_string(times) + " lines";
    return nullptr;
  }

  void ReadArrivals(const Input& arrivals) {
    std::string why;
    const Input* log = LogOfArrivals(arrivals, why);
    if (log == nullptr) {
      store_.files[arrivals.row.value()].note = why;
      store_.diagnostics.Report(kLonelyArrival, arrivals.row, why);
      return;
    }
    if (auto source = Open(arrivals); source != nullptr) {
      const auto status = ReadLogArrivals(*source, arrivals.row, log->row, store_);
      if (!status) Refuse(arrivals, status.error());
    }
  }

  const RunOptions& options_;
  Unpacker unpacker_;
  trace::Store store_;
  std::vector<Input> inputs_;
  std::set<std::string> required_;  // paths that must be learned graphs
};

}  // namespace

base::Result<trace::Store> ReadRun(const RunInputs& inputs, const RunOptions& options) {
  if (inputs.paths.empty() && inputs.logs.empty()) {
    return base::Error{base::Code::kUsage, "no input named; " + std::string(kExpected)};
  }
  return RunReader(options).Read(inputs);
}

}  // namespace teller::ingest
