#include "ingest/log/record_builder.hpp"

#include <algorithm>
#include <array>

#include "ingest/log/diagnostics.hpp"
#include "ingest/log/request_facts.hpp"
#include "ingest/log/request_id.hpp"
#include "ingest/log/statistics.hpp"

namespace teller::ingest::log {

using trace::LogLevel;
using trace::LogRecord;
using trace::LogSource;

namespace {

constexpr size_t kMaxStreams = 4096;    // processes of one log; a hostile file must not grow the table for ever
constexpr size_t kMaxException = 4096;  // the final line of a traceback
constexpr std::string_view kTracebackHead = "Traceback (most recent call last):";

bool IsTracebackHead(std::string_view text) {
  return StartsWith(text, kTracebackHead) || StartsWith(text, "  + Exception Group Traceback");
}

bool IsChainMark(std::string_view text) {
  return StartsWith(text, "During handling of the above exception") ||
         StartsWith(text, "The above exception was the direct cause");
}

/// Lines that torch and CUDA add below the exception.
bool IsExceptionTail(std::string_view text) {
  static constexpr std::array<std::string_view, 9> kHeads = {"CUDA kernel errors might",
                                                             "HIP kernel errors might",
                                                             "For debugging consider",
                                                             "Compile with `TORCH_USE",
                                                             "Search for `",
                                                             "Exception raised from",
                                                             "frame #",
                                                             "Device-side assertion",
                                                             "Last error:"};
  for (const auto head : kHeads) {
    if (StartsWith(text, head)) return true;
  }
  return false;
}

/// "pkg.module.Error: text", "KeyboardInterrupt": an identifier path, alone or before a colon.
bool LooksLikeException(std::string_view text) {
  Cursor c(text);
  const std::string_view name = c.Word("_.");
  if (name.empty() || !(IsAlpha(name.front()) || name.front() == '_')) return false;
  return c.done() || (c.peek() == ':' && (c.peek(1) == ' ' || c.peek(1) == '\0'));
}

/// "world_size=2 rank=1 ...": the pid that says so is that rank.
std::optional<int> RankStatement(std::string_view message) {
  const size_t at = message.find("world_size=");
  if (at == std::string_view::npos) return std::nullopt;
  Cursor c(message.substr(at + 11));
  int64_t world = 0;
  int64_t rank = 0;
  if (!c.Number(1, 6, world) || !c.Eat(" rank=") || !c.Number(1, 6, rank)) return std::nullopt;
  return static_cast<int>(rank);
}

}  // namespace

std::string RecordBuilder::Place(uint32_t line) const {
  return "line " + std::to_string(line);
}

RecordBuilder::Stream& RecordBuilder::StreamOf(const Origin& origin) {
  if (streams_.size() > kMaxStreams) streams_.clear();
  std::string key = origin.host + '|' + origin.process;
  if (origin.pid) key += '#' + std::to_string(*origin.pid);
  if (origin.rank) key += '@' + std::to_string(*origin.rank);
  return streams_[key];
}

void RecordBuilder::Add(const Segment& segment) {
  ++segments_;
  bytes_ += segment.text.size() + segment.cut + 1;
  if (first_record_ == static_cast<size_t>(-1)) first_record_ = store_.logs.size();
  if (segment.cut > 0) store_.diagnostics.Report(kLineCut, file_, Place(segment.line));
  if (const uint64_t bad = InvalidUtf8(segment.text))
    store_.diagnostics.Report(kNotUtf8, file_, Place(segment.line), bad);
  tail_ = segment.tail;
  StripEscapes(segment.text, clean_);
  if (!segment.same_line) line_origin_ = {};
  std::string_view text = clean_;
  PeelPrefixes(text, line_origin_);
  text = TrimRight(text);
  if (text.empty()) {
    ++joined_;
    return;
  }
  // A bar has no line end of its own: whatever was printed next stands behind it.
  while (const auto bar = ParseProgressBar(text)) {
    Stream& stream = StreamOf(line_origin_);
    AddBar(stream, text.substr(0, bar->length), *bar, line_origin_, segment.line);
    text = TrimLeft(text.substr(bar->length));
    if (text.empty()) return;
    ++segments_;
    PeelPrefixes(text, line_origin_);
  }
  AddText(text, line_origin_, segment.line);
}

void RecordBuilder::AddText(std::string_view text, const Origin& origin, uint32_t line) {
  const ParsedLine parsed = ParseLine(text, origin);
  Stream& stream = StreamOf(origin);
  if (parsed.header) {
    AddHeader(stream, parsed, origin, line);
  } else {
    AddBare(stream, text, origin, line);
  }
}

void RecordBuilder::AddHeader(Stream& stream, const ParsedLine& parsed, const Origin& origin, uint32_t line) {
  if (stream.record < store_.logs.size()) {
    LogRecord& open = store_.logs[stream.record];
    // Loggers that repeat their prefix on every line of one message: same place, same level, same moment.
    const bool same = open.source == parsed.source && open.level == parsed.level && open.logger == parsed.logger &&
                      !parsed.logger.empty() && stream.stamp.present == parsed.stamp.present &&
                      parsed.stamp.at - stream.stamp.at <= base::kSecond && parsed.stamp.at >= stream.stamp.at;
    const std::string_view m = parsed.message;
    // llama.cpp's older timing block: three bare lines under "slot print_timing: id 0 | task 0 |".
    if (!parsed.stamp.present && StartsWith(m, "prompt eval time") && line <= stream.last_line + 1 &&
        Contains(open.message, "print_timing")) {
      return Extend(stream, m, line);
    }
    const bool more = m.empty() || IsSpace(m.front()) || IsTracebackHead(m);
    if (same && (stream.mode != Mode::kPlain || more)) {
      if (stream.mode != Mode::kPlain || IsTracebackHead(m)) NoteTracebackLine(stream, m);
      Extend(stream, m, line);
      return;
    }
  }
  Begin(stream, parsed, origin, line);
  if (EndsWith(parsed.message, kTracebackHead)) stream.mode = Mode::kFrames;
}

bool RecordBuilder::ContinuesTraceback(Stream& stream, std::string_view text) {
  if (IsSpace(text.front()) || IsTracebackHead(text) || IsChainMark(text)) return true;
  if (stream.mode == Mode::kFrames) return LooksLikeException(text);
  return IsExceptionTail(text);
}

void RecordBuilder::NoteTracebackLine(Stream& stream, std::string_view text) {
  if (IsTracebackHead(text) || IsChainMark(text)) {
    stream.mode = Mode::kFrames;
  } else if (stream.mode == Mode::kFrames && !text.empty() && !IsSpace(text.front())) {
    store_.logs[stream.record].exception = std::string(text.substr(0, kMaxException));
    stream.mode = Mode::kAfterException;
  }
}

void RecordBuilder::AddBare(Stream& stream, std::string_view text, const Origin& origin, uint32_t line) {
  const bool open = stream.record < store_.logs.size();
  if (open && stream.mode != Mode::kPlain && ContinuesTraceback(stream, text)) {
    NoteTracebackLine(stream, text);
    return Extend(stream, text, line);
  }
  // Without a prefix every process shares one stream; only the very next line can belong to the record before.
  const bool adjacent = open && (origin.any() || line <= stream.last_line + 1);
  const bool head = IsTracebackHead(text);
  if (adjacent && head) {
    const LogLevel level = store_.logs[stream.record].level;
    if (level == LogLevel::kUnknown || level >= LogLevel::kWarning) {
      NoteTracebackLine(stream, text);
      return Extend(stream, text, line);
    }
  }
  const bool closes = text == "}" || text == ")" || text == "]";
  if (adjacent && stream.bar_total < 0 && (IsSpace(text.front()) || closes)) return Extend(stream, text, line);

  ParsedLine bare;
  bare.message = text;
  bare.source = head ? LogSource::kTraceback : LogSource::kUnknown;
  if (head) bare.level = LogLevel::kError;
  if (!head) store_.diagnostics.Report(kNoGrammar, file_, Place(line));
  Begin(stream, bare, origin, line);
  if (head) stream.mode = Mode::kFrames;
}

void RecordBuilder::AddBar(Stream& stream, std::string_view text, const ProgressBar& bar, const Origin& origin,
                           uint32_t line) {
  const bool update =
      stream.record < store_.logs.size() && stream.bar_total == bar.total && bar.done >= stream.bar_done;
  if (update) {
    ++joined_;
    LogRecord& record = store_.logs[stream.record];
    record.message = std::string(text);
    record.lines = std::max(record.lines, line - record.line + 1);
    record.statistics.clear();
  } else {
    ParsedLine parsed;
    parsed.message = text;
    parsed.source = LogSource::kProgress;
    parsed.level = LogLevel::kInfo;
    Begin(stream, parsed, origin, line);
  }
  stream.bar_total = bar.total;
  stream.bar_done = bar.done;
  stream.last_line = line;
  LogRecord& record = store_.logs[stream.record];
  record.statistics.emplace_back("done", static_cast<double>(bar.done));
  record.statistics.emplace_back("total", static_cast<double>(bar.total));
  if (bar.elapsed_s >= 0) record.statistics.emplace_back("elapsed_s", bar.elapsed_s);
  if (bar.seconds_per_item > 0) record.statistics.emplace_back("seconds_per_item", bar.seconds_per_item);
}

void RecordBuilder::Begin(Stream& stream, const ParsedLine& parsed, const Origin& origin, uint32_t line) {
  LogRecord record;
  record.file = file_;
  record.line = line;
  if (parsed.stamp.present) {
    record.at = parsed.stamp.at;
    record.at_error = parsed.stamp.error;
    record.stamp_open = parsed.stamp.open;
    record.basis =
        (parsed.stamp.open & trace::kStartOpen) != 0 ? trace::TimeBasis::kRelative : trace::TimeBasis::kStamp;
  }
  record.source = parsed.source;
  record.level = parsed.level;
  record.process = origin.process.empty() ? parsed.process : origin.process;
  record.pid = origin.pid ? origin.pid : parsed.pid;
  record.rank = parsed.rank ? parsed.rank : origin.rank;
  record.logger = std::string(parsed.logger);
  record.message = std::string(parsed.message.substr(0, limits_.max_log_record_bytes));
  record.request = parsed.request.empty() ? RequestId(parsed.source, parsed.message) : parsed.request;
  if (parsed.source == LogSource::kUvicorn) {
    if (const int status = HttpStatus(parsed.message)) record.statistics.emplace_back("http_status", status);
  } else {
    record.statistics = ParseStatistics(parsed.message);
  }
  record.statistics.insert(record.statistics.end(), parsed.statistics.begin(), parsed.statistics.end());
  stream = {};
  stream.record = store_.logs.size();
  stream.last_line = line;
  stream.stamp = parsed.stamp;
  if (!tail_.empty() && StartsWith(record.message, "Finish: obj=")) tails_[stream.record] = tail_;
  store_.logs.push_back(std::move(record));
  ++records_;
}

void RecordBuilder::Extend(Stream& stream, std::string_view text, uint32_t line) {
  ++joined_;
  LogRecord& record = store_.logs[stream.record];
  record.lines = std::max(record.lines, line - record.line + 1);
  stream.last_line = line;
  if (record.message.size() + text.size() + 1 > limits_.max_log_record_bytes) {
    store_.diagnostics.Report(kRecordCut, file_, Place(line));
    return;
  }
  record.message += '\n';
  record.message += text;
  // llama.cpp's older three-line timing block: the numbers are on the lines below the record's own.
  if (record.source == LogSource::kLlamaCpp && Contains(text, "time ="))
    record.statistics = ParseStatistics(record.message);
}

void RecordBuilder::Finish() {
  if (first_record_ == static_cast<size_t>(-1)) first_record_ = store_.logs.size();
  std::map<int64_t, int> ranks;
  for (size_t i = first_record_; i < store_.logs.size(); ++i) {
    const LogRecord& record = store_.logs[i];
    if (!record.pid) continue;
    if (const auto rank = RankStatement(record.message)) ranks[*record.pid] = *rank;
  }
  for (size_t i = first_record_; i < store_.logs.size(); ++i) {
    LogRecord& record = store_.logs[i];
    if (!record.pid) continue;
    // What the process said about itself is global; a tag in its prefix may count one parallel dimension only.
    if (const auto it = ranks.find(*record.pid); it != ranks.end()) record.rank = it->second;
  }
  RequestFacts facts(file_, store_);
  for (size_t i = first_record_; i < store_.logs.size(); ++i) {
    const auto tail = tails_.find(i);
    facts.Add(store_.logs[i], tail == tails_.end() ? std::string_view() : std::string_view(tail->second));
  }
  trace::File& row = store_.files[file_.value()];
  row.kind = "log";
  row.bytes = bytes_;
  row.records_read = segments_;
  row.log_records = records_;
  row.repaired_away = joined_;
}

}  // namespace teller::ingest::log
