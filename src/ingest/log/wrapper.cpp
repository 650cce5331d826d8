#include "ingest/log/wrapper.hpp"

#include <simdjson.h>

#include <algorithm>

#include "base/nanos.hpp"
#include "ingest/log/cursor.hpp"

namespace teller::ingest::log {

namespace {

constexpr size_t kMaxPieces = 16;  // streams of one file: stdout and stderr

std::string_view Text(simdjson::dom::object object, std::string_view key) {
  std::string_view value;
  return object[key].get(value) == simdjson::SUCCESS ? value : std::string_view();
}

/// Journald writes numbers as text.
bool Number(simdjson::dom::object object, std::string_view key, int64_t& value) {
  Cursor c(Text(object, key));
  return c.Number(1, 18, value) && c.done();
}

trace::LogLevel LevelOfPriority(int64_t priority) {
  if (priority <= 2) return trace::LogLevel::kFatal;
  if (priority == 3) return trace::LogLevel::kError;
  if (priority == 4) return trace::LogLevel::kWarning;
  return priority >= 7 ? trace::LogLevel::kDebug : trace::LogLevel::kInfo;
}

/// MESSAGE is text, or an array of bytes where it is no UTF-8.
bool ReadMessage(simdjson::dom::object object, std::string& out) {
  simdjson::dom::element message;
  if (object["MESSAGE"].get(message) != simdjson::SUCCESS) return false;
  std::string_view text;
  if (message.get(text) == simdjson::SUCCESS) {
    out = text;
    return true;
  }
  simdjson::dom::array bytes;
  if (message.get(bytes) != simdjson::SUCCESS) return false;
  out.clear();
  for (const auto byte : bytes) {
    uint64_t value = 0;
    if (byte.get(value) != simdjson::SUCCESS || value > 255) return false;
    out.push_back(static_cast<char>(value));
  }
  return true;
}

}  // namespace

Unwrapper::Result Unwrapper::Join(const std::string& stream, std::string_view part, bool last, Origin& origin) {
  if (pieces_.size() > kMaxPieces) pieces_.clear();
  const auto it = pieces_.find(stream);
  if (last && it == pieces_.end()) {
    text_ = part;
    return Result::kWhole;
  }
  Piece& piece = it == pieces_.end() ? pieces_[stream] : it->second;
  if (it == pieces_.end()) piece.origin = origin;  // the line began when its first piece was written
  const size_t room = limits_.max_log_line_bytes - std::min(limits_.max_log_line_bytes, piece.text.size());
  piece.text.append(part.substr(0, room));
  if (part.size() > room) cut_ += part.size() - room;
  if (!last) return Result::kPiece;
  text_ = std::move(piece.text);
  origin = piece.origin;
  pieces_.erase(it);
  return Result::kWhole;
}

bool Unwrapper::TakePiece(Origin& origin) {
  if (pieces_.empty()) return false;
  text_ = std::move(pieces_.begin()->second.text);
  origin = pieces_.begin()->second.origin;
  pieces_.erase(pieces_.begin());
  return true;
}

Unwrapper::Result Unwrapper::Unwrap(std::string_view line, Origin& origin) {
  if (line.empty()) return Result::kPlain;
  if (line.front() == '{') return UnwrapJson(line, origin);
  if (!IsDigit(line.front())) return Result::kPlain;
  // "2026-01-02T03:04:05.123456789Z stdout F text"
  Cursor c(line);
  Stamp stamp;
  if (!ReadDateTime(c, stamp)) return Result::kPlain;
  const bool out = c.Eat(" stdout ");
  if (!out && !c.Eat(" stderr ")) return Result::kPlain;
  const bool last = c.Eat('F');
  if (!last && !c.Eat('P')) return Result::kPlain;
  if (!c.Eat(' ') && !c.done()) return Result::kPlain;
  origin.stamp = stamp;
  return Join(out ? "stdout" : "stderr", c.rest(), last, origin);
}

Unwrapper::Result Unwrapper::UnwrapJson(std::string_view line, Origin& origin) {
  const bool docker = Contains(line, "\"log\"") && Contains(line, "\"stream\"");
  const bool journal = Contains(line, "\"MESSAGE\"") && Contains(line, "\"__REALTIME_TIMESTAMP\"");
  if ((!docker && !journal) || line.back() != '}') return Result::kPlain;
  thread_local simdjson::dom::parser parser;
  simdjson::dom::object object;
  if (parser.parse(line.data(), line.size()).get(object) != simdjson::SUCCESS) return Result::kPlain;
  if (journal) {
    if (!ReadMessage(object, text_)) return Result::kPlain;
    int64_t us = 0;
    if (Number(object, "_SOURCE_REALTIME_TIMESTAMP", us) || Number(object, "__REALTIME_TIMESTAMP", us)) {
      if (us < 4'000'000'000'000'000) {
        origin.stamp = {.present = true, .at = us * base::kMicro, .error = base::kMicro / 2};
      }
    }
    origin.host = Text(object, "_HOSTNAME");
    const std::string_view program = Text(object, "SYSLOG_IDENTIFIER");
    origin.process = program.empty() ? Text(object, "_COMM") : program;
    origin.kernel = Text(object, "_TRANSPORT") == "kernel";
    int64_t value = 0;
    if (Number(object, "_PID", value) || Number(object, "SYSLOG_PID", value)) origin.pid = value;
    if (Number(object, "PRIORITY", value)) origin.level = LevelOfPriority(value);
    return Result::kWhole;
  }
  std::string_view text;
  if (object["log"].get(text) != simdjson::SUCCESS || Text(object, "stream").empty()) return Result::kPlain;
  Cursor time(Text(object, "time"));
  Stamp stamp;
  if (ReadDateTime(time, stamp)) origin.stamp = stamp;
  const bool last = EndsWith(text, "\n") || text.empty();
  while (EndsWith(text, "\n") || EndsWith(text, "\r")) text.remove_suffix(1);
  // Log shippers cut the line end off and have no pieces; docker always writes its three keys and no more.
  const bool shipped = object.size() > 4 || Text(object, "time").empty();
  return Join(std::string(Text(object, "stream")), text, last || shipped, origin);
}

}  // namespace teller::ingest::log
