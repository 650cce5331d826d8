#include "ingest/log/json_fields.hpp"

#include <simdjson.h>

#include <array>
#include <cmath>

#include "base/nanos.hpp"
#include "ingest/log/cursor.hpp"
#include "ingest/log/grammar.hpp"

namespace teller::ingest::log {

using simdjson::dom::element;
using simdjson::dom::object;
using trace::LogLevel;

namespace {

constexpr size_t kMaxName = 256;
constexpr double kSecondsFrom = 946'684'800;     // 2000
constexpr double kSecondsUntil = 7'258'118'400;  // 2200

std::string_view Text(object from, std::string_view key) {
  std::string_view value;
  return from[key].get(value) == simdjson::SUCCESS ? value : std::string_view();
}

bool Object(object from, std::string_view key, object& into) {
  return from[key].get(into) == simdjson::SUCCESS;
}

bool Integer(object from, std::string_view key, int64_t& value) {
  if (from[key].get(value) == simdjson::SUCCESS) return true;
  Cursor c(Text(from, key));
  return c.Number(1, 18, value) && c.done();
}

template <size_t N>
std::string_view First(object from, const std::array<std::string_view, N>& keys) {
  for (const auto key : keys) {
    if (const auto text = Text(from, key); !text.empty()) return text;
  }
  return {};
}

/// Seconds, milliseconds, microseconds or nanoseconds since 1970, told apart by their size.
bool ReadEpoch(element value, Stamp& stamp, bool& whole_seconds) {
  int64_t integer = 0;
  if (value.get(integer) == simdjson::SUCCESS) {
    for (const int64_t unit : {base::kSecond, base::kMilli, base::kMicro, int64_t{1}}) {
      const double seconds = static_cast<double>(integer) * static_cast<double>(unit) / 1e9;
      if (seconds < kSecondsFrom || seconds > kSecondsUntil) continue;
      stamp = {.present = true, .at = integer * unit, .error = unit / 2};
      whole_seconds = unit == base::kSecond;
      return true;
    }
    return false;
  }
  double real = 0;
  if (value.get(real) != simdjson::SUCCESS) return false;
  const double seconds = real > 1e11 ? real / 1e3 : real;
  if (!(seconds > kSecondsFrom && seconds < kSecondsUntil)) return false;
  stamp = {.present = true, .at = std::llround(seconds * 1e6) * base::kMicro, .error = base::kMicro / 2};
  return true;
}

void ReadTime(object from, JsonFields& out) {
  static constexpr std::array<std::string_view, 11> kKeys = {
      "timestamp", "time", "ts", "@timestamp", "asctime", "datetime", "date", "eventTime", "created", "Timestamp", "t"};
  for (const auto key : kKeys) {
    element value;
    if (out.stamp.present || from[key].get(value) != simdjson::SUCCESS) continue;
    std::string_view text;
    if (value.get(text) == simdjson::SUCCESS) {
      Cursor c(text);
      ReadDateTime(c, out.stamp);
    } else {
      ReadEpoch(value, out.stamp, out.unix_seconds);
    }
  }
}

/// Numbers of the level: pino's and bunyan's in "level", Python's in "levelno".
LogLevel LevelFromNumber(int64_t number, bool python) {
  const int64_t step = number / 10 - (python ? 0 : 1);
  if (step <= 1) return LogLevel::kDebug;
  if (step == 2) return LogLevel::kInfo;
  if (step == 3) return LogLevel::kWarning;
  return step == 4 ? LogLevel::kError : LogLevel::kFatal;
}

void ReadLevel(object from, JsonFields& out) {
  static constexpr std::array<std::string_view, 8> kKeys = {"level",     "severity",   "lvl",           "levelname",
                                                            "log_level", "level_name", "severity_text", "loglevel"};
  for (const auto key : kKeys) {
    if (out.level == LogLevel::kUnknown) out.level = LevelFromWord(Text(from, key));
  }
  object nested;  // loguru's serialized record
  if (out.level == LogLevel::kUnknown && Object(from, "level", nested)) out.level = LevelFromWord(Text(nested, "name"));
  int64_t number = 0;
  if (out.level == LogLevel::kUnknown && from["level"].get(number) == simdjson::SUCCESS && number >= 10 && number <= 60)
    out.level = LevelFromNumber(number, false);
  if (out.level == LogLevel::kUnknown && from["levelno"].get(number) == simdjson::SUCCESS && number >= 10 &&
      number <= 60) {
    out.level = LevelFromNumber(number, true);
  }
}

void ReadLogger(object from, JsonFields& out) {
  static constexpr std::array<std::string_view, 3> kFiles = {"filename", "pathname", "file"};
  static constexpr std::array<std::string_view, 3> kLines = {"line_number", "lineno", "line"};
  static constexpr std::array<std::string_view, 6> kNames = {"logger", "name",   "logger_name",
                                                             "caller", "source", "module"};
  out.target = Text(from, "target").substr(0, kMaxName);
  out.function = Text(from, "function").substr(0, kMaxName);
  std::string_view file = First(from, kFiles);
  object nested;
  if (file.empty() && Object(from, "file", nested)) file = Text(nested, "name");
  for (const auto key : kLines) {
    int64_t line = 0;
    if (!file.empty() && out.logger.empty() && Integer(from, key, line) && line >= 0)
      out.logger = std::string(file.substr(0, kMaxName)) + ':' + std::to_string(line);
  }
  if (out.logger.empty()) out.logger = out.target;
  if (out.logger.empty()) out.logger = First(from, kNames).substr(0, kMaxName);
}

void ReadIds(object from, JsonFields& out) {
  int64_t value = 0;
  for (const std::string_view key : {"pid", "process", "process_id"}) {
    if (!out.pid && Integer(from, key, value) && value >= 0) out.pid = value;
  }
  object nested;
  if (!out.pid && Object(from, "process", nested) && Integer(nested, "id", value)) out.pid = value;
  for (const std::string_view key : {"rank", "global_rank"}) {
    if (!out.rank && Integer(from, key, value) && value >= 0 && value < 1'000'000) out.rank = static_cast<int>(value);
  }
  if (Object(from, "span", nested) && !out.rank && Integer(nested, "rank", value) && value >= 0 && value < 1'000'000)
    out.rank = static_cast<int>(value);
  for (const std::string_view key : {"id_task", "task_id"}) {
    if (out.task.empty() && from[key].get(value) == simdjson::SUCCESS && value >= 0) out.task = std::to_string(value);
  }
  out.ray = !Text(from, "job_id").empty() || !Text(from, "worker_id").empty() || !Text(from, "node_id").empty();
}

void ReadObject(object from, JsonFields& out) {
  static constexpr std::array<std::string_view, 8> kMessage = {"message",     "msg",  "MESSAGE",       "text",
                                                               "textPayload", "body", "short_message", "log"};
  static constexpr std::array<std::string_view, 6> kException = {"exc_info",    "exception", "exc_text",
                                                                 "stack_trace", "traceback", "stack_info"};
  out.message = First(from, kMessage);
  out.exception = First(from, kException);
  ReadTime(from, out);
  ReadLevel(from, out);
  ReadLogger(from, out);
  ReadIds(from, out);
  if (out.message.empty() && out.level != LogLevel::kUnknown) out.message = Text(from, "event");
  object span;
  if (Object(from, "span", span) && StartsWith(out.target, "text_generation"))
    PutTgiTimes([&](std::string_view key) { return Text(span, key); }, out.statistics);
}

/// Reads a quoted text behind `"key":`, unescaped as far as it goes.
std::string CutText(std::string_view line, std::string_view key) {
  const std::string mark = '"' + std::string(key) + "\":\"";
  const size_t at = line.find(mark);
  if (at == std::string_view::npos) return {};
  std::string out;
  for (size_t i = at + mark.size(); i < line.size() && line[i] != '"'; ++i) {
    if (line[i] != '\\' || i + 1 >= line.size()) {
      out.push_back(line[i]);
      continue;
    }
    const char c = line[++i];
    out.push_back(c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c);
  }
  return out;
}

}  // namespace

bool ReadJsonFields(std::string_view line, JsonFields& out) {
  thread_local simdjson::dom::parser parser;
  object top;
  if (parser.parse(line.data(), line.size()).get(top) != simdjson::SUCCESS) return false;
  ReadObject(top, out);
  object inner;
  if (out.message.empty() && Object(top, "fields", inner)) out.message = Text(inner, "message");
  // loguru: {"text": the formatted line, "record": {..}}
  if (Object(top, "record", inner)) {
    JsonFields record;
    ReadObject(inner, record);
    object time;
    if (!record.stamp.present && Object(inner, "time", time)) {
      element epoch;
      if (time["timestamp"].get(epoch) == simdjson::SUCCESS) ReadEpoch(epoch, record.stamp, record.unix_seconds);
    }
    if (!record.message.empty()) {
      if (!record.stamp.present) record.stamp = out.stamp;
      out = std::move(record);
    }
  }
  return !out.message.empty();
}

bool ReadCutJson(std::string_view line, JsonFields& out) {
  for (const std::string_view key : {"message", "msg"}) {
    if (out.message.empty()) out.message = CutText(line, key);
  }
  const std::string time = CutText(line, "timestamp");
  Cursor c(time);
  ReadDateTime(c, out.stamp);
  out.level = LevelFromWord(CutText(line, "level"));
  out.target = CutText(line, "target").substr(0, kMaxName);
  out.logger = out.target;
  return !out.message.empty() && (out.stamp.present || out.level != LogLevel::kUnknown);
}

}  // namespace teller::ingest::log
