#include "ingest/log/record_builder.hpp"

#include <algorithm>
#include <set>

#include "ingest/log/continuation.hpp"
#include "ingest/log/diagnostics.hpp"
#include "ingest/log/grammar.hpp"
#include "ingest/log/json_fields.hpp"
#include "ingest/log/request_facts.hpp"
#include "ingest/log/request_id.hpp"
#include "ingest/log/request_list.hpp"
#include "ingest/log/statistics.hpp"

namespace teller::ingest::log {

using trace::LogLevel;
using trace::LogRecord;
using trace::LogSource;

namespace {

constexpr size_t kMaxStreams = 4096;    // processes of one log; a hostile file must not grow the table for ever
constexpr size_t kMaxException = 4096;  // the final line of a traceback
constexpr uint32_t kMaxQuoted = 500;    // lines of a quotation that a record leaves open

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
  last_line_ = segment.line;
  if (store_.logs.size() >= limits_.max_log_records) {
    ++dropped_;
    store_.diagnostics.Report(kTooManyRecords, file_, Place(segment.line));
    return;
  }
  if (first_record_ == static_cast<size_t>(-1)) first_record_ = store_.logs.size();
  if (segment.cut > 0) store_.diagnostics.Report(kLineCut, file_, Place(segment.line));
  if (const uint64_t bad = InvalidUtf8(segment.text))
    store_.diagnostics.Report(kNotUtf8, file_, Place(segment.line), bad);
  tail_ = segment.tail;
  StripEscapes(segment.text, clean_);
  if (!segment.same_line) line_origin_ = {};
  const auto unwrapped = unwrapper_.Unwrap(clean_, line_origin_);
  if (unwrapper_.TakeCut() > 0) store_.diagnostics.Report(kLineCut, file_, Place(segment.line));
  switch (unwrapped) {
    case Unwrapper::Result::kPlain: return AddLine(clean_, segment.line);
    case Unwrapper::Result::kPiece: ++joined_; return;
    case Unwrapper::Result::kWhole: return AddInner(segment.line);
  }
}

/// The line or lines that were wrapped. Each further one counts as read.
void RecordBuilder::AddInner(uint32_t line) {
  StripEscapes(unwrapper_.text(), clean_);
  std::string_view text = clean_;
  Origin origin = line_origin_;
  while (true) {
    const size_t end = text.find('\n');
    line_origin_ = origin;
    AddLine(text.substr(0, end), line);
    origin.stamp = {};  // further lines of one entry begin nothing
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
    ++segments_;
  }
}

void RecordBuilder::AddLine(std::string_view text, uint32_t line) {
  PeelPrefixes(text, line_origin_);
  text = TrimRight(text);
  if (text.empty()) {
    ++joined_;
    return;
  }
  // A bar has no line end of its own: whatever was printed next stands behind it.
  while (const auto bar = ParseProgressBar(text)) {
    Stream& stream = StreamOf(line_origin_);
    AddBar(stream, text.substr(0, bar->length), *bar, line_origin_, line);
    text = TrimLeft(text.substr(bar->length));
    if (text.empty()) return;
    ++segments_;
    PeelPrefixes(text, line_origin_);
  }
  // Several processes write to one pipe: a record may be cut by another one's.
  for (size_t glued = GluedRecord(text); glued != std::string_view::npos; glued = GluedRecord(text)) {
    JsonFields whole;
    if (text.front() == '{' && ReadJsonFields(text, whole)) break;  // an object inside an object
    AddText(text.substr(0, glued), line_origin_, line);
    text.remove_prefix(glued);
    ++segments_;
  }
  AddText(text, line_origin_, line);
}

void RecordBuilder::AddText(std::string_view text, const Origin& origin, uint32_t line) {
  while (true) {
    nccl_ = FindNcclHeader(text, 0, nccl_hosts_);
    ParsedLine parsed = ParseLine(text, origin);
    const bool json = parsed.header && text.front() == '{';
    // What stands inside a JSON record is that record's text, or a quotation in it.
    if (json && nccl_ && parsed.message.data() != text.data() + nccl_->begin) nccl_.reset();
    if (!nccl_) return AddWhole(text, parsed, origin, line);
    const char* const begin = text.data() + nccl_->begin;
    const bool front = parsed.source == LogSource::kNccl && parsed.message.data() == text.data() + nccl_->message;
    const bool wrapped = !front && parsed.header && parsed.message.data() == begin;  // another logger passes it on
    if (!front && !wrapped) {
      if (nccl_->begin == 0) {  // another grammar claims the whole line: nothing stands before that could be cut off
        nccl_.reset();
        return AddWhole(text, parsed, origin, line);
      }
      // NCCL wrote into the middle of somebody else's line.
      const std::string_view before = TrimRight(text.substr(0, nccl_->begin));
      text.remove_prefix(nccl_->begin);
      nccl_.reset();
      AddWhole(before, ParseLine(before, origin), origin, line);
      ++segments_;
      continue;
    }
    if (nccl_hosts_.size() < kMaxStreams) nccl_hosts_.insert(std::string(nccl_->host));
    // A line that was cut by another NCCL line ends where that one begins.
    const auto next = json ? std::nullopt : FindNcclHeader(text, nccl_->message, nccl_hosts_);
    const std::string_view own = next ? TrimRight(text.substr(0, next->begin)) : text;
    if (next) parsed = ParseLine(own, origin);
    if (wrapped) {
      parsed.source = LogSource::kNccl;
      parsed.level = NcclLevel(nccl_->kind);
      parsed.logger = nccl_->logger;
      parsed.pid = nccl_->pid;
      parsed.message.remove_prefix(std::min(parsed.message.size(), nccl_->message - nccl_->begin));
    }
    AddWhole(own, parsed, origin, line);
    if (!next) return;
    text.remove_prefix(next->begin);
    ++segments_;
  }
}

/// A kernel message may tell only how long after the one before it came. Nothing is known of the first ones of a log
/// that was cut at its front.
void RecordBuilder::SettleKernelStamp(Stamp& stamp) {
  if (stamp.since_previous) {
    Stamp settled = kernel_;
    if (__builtin_add_overflow(settled.at, stamp.at, &settled.at)) settled = {};
    stamp = settled;
  }
  kernel_ = stamp;
}

void RecordBuilder::AddWhole(std::string_view text, ParsedLine parsed, const Origin& origin, uint32_t line) {
  if (text.empty()) {
    ++joined_;
    return;
  }
  if (parsed.source == LogSource::kKernel && parsed.stamp.present) SettleKernelStamp(parsed.stamp);
  Stream& stream = StreamOf(origin);
  if (!parsed.header && !seen_llama_) {
    // Nothing says whose bare lines these are.
  } else if (!parsed.header && LooksLikeFunctionLine(text) && stream.mode == Mode::kPlain && !origin.any()) {
    parsed.header = true;
    parsed.source = LogSource::kLlamaCpp;
    parsed.process = "llama-server";
  }
  seen_llama_ = seen_llama_ || parsed.source == LogSource::kLlamaCpp;
  if (parsed.header && !(stream.quote_left > 0 && parsed.stamp.present == false)) {
    AddHeader(stream, parsed, origin, line);
  } else {
    AddBare(stream, text, parsed.stamp, origin, line);
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

void RecordBuilder::AddBare(Stream& stream, std::string_view text, const Stamp& stamp, const Origin& origin,
                            uint32_t line) {
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
  if (adjacent && Continues(stream, text)) return Extend(stream, text, line);

  ParsedLine bare;
  bare.message = text;
  bare.stamp = stamp;
  bare.level = origin.level;
  if (head || IsProcessHead(text)) {
    bare.source = LogSource::kTraceback;
    bare.level = LogLevel::kError;
  } else if (IsProgramOutput(text)) {
    bare.source = LogSource::kProgramOutput;
  } else {
    store_.diagnostics.Report(kNoGrammar, file_, Place(line));
  }
  Begin(stream, bare, origin, line);
  if (head) stream.mode = Mode::kFrames;
}

/// Whether the bare line right behind the open record belongs to it.
bool RecordBuilder::Continues(Stream& stream, std::string_view text) {
  if (stream.bar_total >= 0) return false;
  const LogSource source = store_.logs[stream.record].source;
  if (stream.quote_left > 0) {
    stream.quote_left = LeavesQuoteOpen(text) ? 0 : stream.quote_left - 1;
    return true;
  }
  if (IsSpace(text.front()) || text == "}" || text == ")" || text == "]") return true;
  // These write messages of several lines, and nothing without a stamp stands between their own lines.
  if (source == LogSource::kFabricManager) return true;
  if (source == LogSource::kTgi) return store_.logs[stream.record].basis == trace::TimeBasis::kStamp;
  return source == LogSource::kTriton && (text.front() == '+' || text.front() == '|');
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
  record.exception = std::string(ExceptionInside(record.message).substr(0, kMaxException));
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
  if (record.source == LogSource::kLlamaCpp && LeavesQuoteOpen(record.message)) stream.quote_left = kMaxQuoted;
  if (!tail_.empty() && StartsWith(record.message, "Finish: obj=")) tails_[stream.record] = tail_;
  if (record.source == LogSource::kNccl && nccl_) {
    store_.nccl_writers.Append(static_cast<uint32_t>(store_.logs.size()),
                               {store_.strings.Intern(nccl_->host), nccl_->pid, nccl_->tid, nccl_->device});
  }
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

/// Triton's backends write through its logger: what one of its processes says is all in UTC.
void RecordBuilder::SpreadTriton() {
  std::set<int64_t> pids;
  for (size_t i = first_record_; i < store_.logs.size(); ++i) {
    const LogRecord& record = store_.logs[i];
    if (record.source == LogSource::kTriton && record.pid) pids.insert(*record.pid);
  }
  for (size_t i = first_record_; !pids.empty() && i < store_.logs.size(); ++i) {
    LogRecord& record = store_.logs[i];
    if (record.source != LogSource::kGlog || !record.pid || pids.count(*record.pid) == 0) continue;
    if (!Contains(record.logger, ".cc:") && !Contains(record.logger, ".h:")) continue;
    record.source = LogSource::kTriton;
    record.process = "tritonserver";
    record.stamp_open &= static_cast<uint8_t>(~trace::kZoneOpen);
  }
}

void RecordBuilder::Finish() {
  while (unwrapper_.TakePiece(line_origin_)) {  // the end of a cut line never came
    ++segments_;
    AddInner(last_line_);
  }
  if (first_record_ == static_cast<size_t>(-1)) first_record_ = store_.logs.size();
  SpreadTriton();
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
  RequestLists lists(file_, store_);
  for (size_t i = first_record_; i < store_.logs.size(); ++i) {
    const auto tail = tails_.find(i);
    facts.Add(store_.logs[i], tail == tails_.end() ? std::string_view() : std::string_view(tail->second));
    lists.Add(store_.logs[i]);
  }
  trace::File& row = store_.files[file_.value()];
  row.kind = "log";
  row.records_read = segments_;
  row.log_records = records_;
  row.repaired_away = joined_;
  row.dropped = dropped_;
}

}  // namespace teller::ingest::log
