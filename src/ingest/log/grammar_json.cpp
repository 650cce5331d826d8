#include <simdjson.h>

#include <array>

#include "base/nanos.hpp"
#include "ingest/log/grammar.hpp"
#include "ingest/log/request_id.hpp"

namespace teller::ingest::log {

namespace {

/// Index of the value text of `"key":` at the top of a flat look at the line; a log line is not worth a tree.
std::string_view StringField(simdjson::dom::object object, std::string_view key) {
  std::string_view value;
  if (object[key].get(value) != simdjson::SUCCESS) return {};
  return value;
}

}  // namespace

bool ParseJson(std::string_view line, ParsedLine& out) {
  if (line.size() < 8 || line.front() != '{' || line.back() != '}') return false;
  thread_local simdjson::dom::parser parser;
  simdjson::dom::object object;
  if (parser.parse(line.data(), line.size()).get(object) != simdjson::SUCCESS) return false;

  static constexpr std::array<std::string_view, 5> kMessage = {"message", "msg", "text", "log", "event"};
  std::string_view message;
  for (const auto key : kMessage) {
    if (message.empty()) message = StringField(object, key);
  }
  simdjson::dom::object fields;
  if (message.empty() && object["fields"].get(fields) == simdjson::SUCCESS) message = StringField(fields, "message");
  if (message.empty()) return false;
  // The parsed text lives in the parser's buffer; only text that stands unescaped in the line can be a view of it.
  const size_t at = line.find(message);
  out.message = at == std::string_view::npos ? line : line.substr(at, message.size());

  static constexpr std::array<std::string_view, 5> kTime = {"timestamp", "time", "ts", "@timestamp", "asctime"};
  for (const auto key : kTime) {
    const std::string_view text = StringField(object, key);
    Cursor c(text);
    if (!out.stamp.present && !text.empty()) ReadDateTime(c, out.stamp);
    int64_t seconds = 0;
    if (!out.stamp.present && object[key].get(seconds) == simdjson::SUCCESS && seconds > 946'684'800 &&
        seconds < 7'258'118'400) {
      out.stamp = {.present = true, .at = seconds * base::kSecond, .error = base::kSecond / 2};
    }
  }
  static constexpr std::array<std::string_view, 4> kLevel = {"level", "severity", "lvl", "levelname"};
  for (const auto key : kLevel) {
    if (out.level == trace::LogLevel::kUnknown) out.level = LevelFromWord(StringField(object, key));
  }
  out.header = true;
  const bool llama = !StringField(object, "function").empty() && StringField(object, "msg") == message;
  out.source = llama ? trace::LogSource::kLlamaCpp : trace::LogSource::kPythonLogging;
  if (llama) out.process = "llama-server";
  out.request = RequestId(out.source, line);
  return true;
}

}  // namespace teller::ingest::log
