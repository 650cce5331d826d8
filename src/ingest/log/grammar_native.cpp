#include <algorithm>
#include <array>

#include "base/nanos.hpp"
#include "ingest/log/grammar.hpp"
#include "ingest/log/nccl_line.hpp"

namespace teller::ingest::log {

using trace::LogLevel;
using trace::LogSource;

namespace {

LogLevel LevelFromPriority(int64_t priority) {
  const int64_t severity = priority & 7;  // syslog: the low three bits
  if (severity <= 2) return LogLevel::kFatal;
  if (severity == 3) return LogLevel::kError;
  if (severity == 4) return LogLevel::kWarning;
  return severity == 7 ? LogLevel::kDebug : LogLevel::kInfo;
}

/// "kern  :warn  : 2025-01-21T02:21:33,498559+00:00 text" (dmesg --decode).
bool ParseDmesgDecoded(std::string_view line, ParsedLine& out) {
  static constexpr std::array<std::string_view, 12> kFacilities = {
      "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp"};
  Cursor c(line);
  const std::string_view facility = c.Word("");
  bool known = false;
  for (const auto name : kFacilities) known = known || name == facility;
  c.SkipSpaces();
  if (!known || !c.Eat(':')) return false;
  c.SkipSpaces();
  const LogLevel level = LevelFromWord(c.Word(""));
  c.SkipSpaces();
  if (level == LogLevel::kUnknown || !c.Eat(':')) return false;
  c.SkipSpaces();
  if (!ReadDateTime(c, out.stamp)) {
    if (!c.Eat('[')) return false;
    c.SkipSpaces();
    if (!ReadSecondsSinceStart(c, out.stamp) || !c.Eat(']')) return false;
  }
  c.SkipSpaces();
  out.level = level;
  out.message = c.rest();
  return true;
}

/// "6,3964,206764307,-;text" (/dev/kmsg).
bool ParseKmsg(std::string_view line, ParsedLine& out) {
  Cursor c(line);
  int64_t priority = 0;
  int64_t sequence = 0;
  int64_t us = 0;
  std::string_view flags;
  if (!c.Number(1, 4, priority) || !c.Eat(',') || !c.Number(1, 12, sequence) || !c.Eat(',') || !c.Number(1, 15, us) ||
      !c.Eat(',') || !c.Until(";", flags) || flags.size() > 40) {
    return false;
  }
  c.Eat(';');
  out.stamp = {.present = true, .at = us * base::kMicro, .error = base::kMicro / 2, .open = trace::kStartOpen};
  out.level = LevelFromPriority(priority);
  out.message = c.rest();
  return true;
}

/// "[ 1843.308145] text", "<4>[ 1843.308145] text", "[Sun Feb 23 16:24:18 2025] text" (dmesg, dmesg -T);
/// "[Nov30 12:21] text" and, behind it, "[  +0.000004] text" (dmesg -H, dmesg --reltime).
bool ParseDmesg(std::string_view line, ParsedLine& out) {
  Cursor c(line);
  int64_t priority = 0;
  if (c.Eat('<') && c.Number(1, 3, priority) && c.Eat('>')) {
    out.level = LevelFromPriority(priority);
  } else {
    c.Move(0);
  }
  if (!c.Eat('[')) return false;
  c.SkipSpaces();
  const bool since_previous = c.Eat('+');
  if (!ReadSecondsSinceStart(c, out.stamp) &&
      (since_previous || (!ReadCtime(c, out.stamp) && !ReadMonthDayMinute(c, out.stamp)))) {
    return false;
  }
  out.stamp.since_previous = since_previous;
  if (!c.Eat(']')) return false;
  c.Eat(' ');
  out.message = c.rest();
  return true;
}

bool IsFileName(std::string_view word) {
  return Contains(word, ".") && !StartsWith(word, ".") && word.size() < 200;
}

/// "[E1001 16:06:04.537131842 File.cpp:607] text", "[E File.cpp:563] text", in brackets or without.
bool ParseC10(std::string_view line, ParsedLine& out) {
  Cursor c(line);
  if (!c.Eat('[')) return false;
  const LogLevel level = LevelFromLetter(c.peek());
  if (level == LogLevel::kUnknown) return false;
  c.Eat(c.peek());
  if (ReadGlogTime(c, out.stamp)) {
    // The fraction is of the monotonic clock, not of the wall clock that the seconds are of.
    out.stamp.at -= out.stamp.at % base::kSecond;
    out.stamp.error = base::kSecond / 2;
    out.stamp.open |= trace::kFractionOpen;
  }
  if (!c.Eat(' ')) return false;
  const size_t begin = c.at();
  const std::string_view file = c.Word("_./-+");
  int64_t number = 0;
  if (!IsFileName(file) || !c.Eat(':') || !c.Number(1, 7, number)) return false;
  out.logger = line.substr(begin, c.at() - begin);
  if (!c.Eat(']')) return false;
  c.Eat(' ');
  out.source = LogSource::kTorchC10;
  out.level = level;
  out.message = c.rest();
  // "[rank1]: text" or "[Rank 1] text", "[PG 0 (default_pg) Rank 2] text"
  Cursor body(out.message);
  std::string_view inside;
  int64_t rank = 0;
  if (body.Eat('[') && body.Until("]", inside) && inside.size() < 80) {
    const size_t at = inside.rfind("Rank ");
    if (at != std::string_view::npos && Cursor(inside.substr(at + 5)).Number(1, 6, rank))
      out.rank = static_cast<int>(rank);
  }
  return true;
}

/// Source files of Triton's server, core and backends.
bool IsTritonFile(std::string_view logger) {
  static constexpr std::array<std::string_view, 27> kFiles = {"model_lifecycle.cc",
                                                              "model_repository_manager.cc",
                                                              "pinned_memory_manager.cc",
                                                              "cuda_memory_manager.cc",
                                                              "tritonserver.cc",
                                                              "grpc_server.cc",
                                                              "http_server.cc",
                                                              "python_be.cc",
                                                              "pb_stub.cc",
                                                              "stub_launcher.cc",
                                                              "backend_model.cc",
                                                              "backend_manager.cc",
                                                              "backend_model_instance.cc",
                                                              "infer_handler.cc",
                                                              "infer_handler.h",
                                                              "stream_infer_handler.cc",
                                                              "infer_request.cc",
                                                              "dynamic_batch_scheduler.cc",
                                                              "ensemble_scheduler.cc",
                                                              "sequence_batch_scheduler.cc",
                                                              "libtensorrtllm.cc",
                                                              "model_config_utils.cc",
                                                              "cache_manager.cc",
                                                              "rate_limiter.cc",
                                                              "onnxruntime.cc",
                                                              "libtorch.cc",
                                                              "ensemble_utils.cc"};
  std::string_view file = logger.substr(0, logger.rfind(':'));
  const size_t slash = file.rfind('/');
  if (slash != std::string_view::npos) file.remove_prefix(slash + 1);
  return std::find(kFiles.begin(), kFiles.end(), file) != kFiles.end();
}

/// Newer releases write the message as a JSON string.
bool UnescapeQuoted(ParsedLine& out) {
  const std::string_view m = out.message;
  if (m.size() < 2 || m.front() != '"' || m.back() != '"') return false;
  const std::string_view inside = m.substr(1, m.size() - 2);
  if (!Contains(inside, "\\")) {
    out.message = inside;
    return true;
  }
  std::string text;
  for (size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] != '\\' || i + 1 >= inside.size()) {
      text.push_back(inside[i]);
      continue;
    }
    const char c = inside[++i];
    if (c == 'u') {
      text += "\\u";  // control characters only; they stay as written
    } else {
      text.push_back(c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c);
    }
  }
  // The views of the line stay valid; only the message moves.
  out.storage = std::make_shared<const std::string>(std::move(text));
  out.message = *out.storage;
  return true;
}

/// Triton writes glog's layout in UTC. Its lines are told by their source file or by the quoted message.
void FinishTriton(ParsedLine& out) {
  const bool native = EndsWith(out.logger.substr(0, out.logger.rfind(':')), ".cc");
  const bool quoted = native && UnescapeQuoted(out);
  if (!quoted && !IsTritonFile(out.logger) && out.source != LogSource::kTriton) return;
  out.source = LogSource::kTriton;
  out.process = "tritonserver";
  out.stamp.open &= static_cast<uint8_t>(~trace::kZoneOpen);
}

}  // namespace

bool ParseKernel(std::string_view line, const Origin& origin, ParsedLine& out) {
  if (origin.kernel) {
    out.stamp = origin.stamp;
    out.message = line;
    Cursor c(line);
    Stamp boot;
    if (c.Eat('[')) {  // syslog lines may carry the boot time too
      c.SkipSpaces();
      if (ReadSecondsSinceStart(c, boot) && c.Eat("] ")) out.message = c.rest();
    }
  } else if (!ParseDmesgDecoded(line, out) && (out = {}, !ParseKmsg(line, out)) && (out = {}, !ParseDmesg(line, out))) {
    return false;
  }
  out.header = true;
  out.source = LogSource::kKernel;
  out.process = "kernel";
  return true;
}

bool ParseGlog(std::string_view line, ParsedLine& out) {
  out.header = true;
  if (ParseC10(line, out)) return true;
  out = {};
  Cursor c(line);
  const LogLevel level = LevelFromLetter(c.peek());
  if (level == LogLevel::kUnknown || !IsDigit(c.peek(1))) return false;
  c.Eat(c.peek());
  if (!ReadGlogTime(c, out.stamp) || !c.Eat(' ')) return false;
  c.SkipSpaces();
  int64_t pid = 0;
  if (c.Number(1, 10, pid)) {
    out.pid = pid;
    c.SkipSpaces();
  }
  const size_t begin = c.at();
  std::string_view file;
  if (!c.Until("]", file) || file.size() > 300) return false;
  out.logger = line.substr(begin, file.size());
  c.Eat(']');
  c.Eat(' ');
  out.header = true;
  out.source = LogSource::kGlog;
  out.level = level;
  out.message = c.rest();
  FinishTriton(out);
  return true;
}

bool ParseTritonIso(std::string_view line, ParsedLine& out) {
  Cursor c(line);
  int64_t pid = 0;
  if (!ReadDateTime(c, out.stamp) || !c.Eat(' ')) return false;
  const LogLevel level = LevelFromLetter(c.peek());
  if (level == LogLevel::kUnknown || c.peek(1) != ' ') return false;
  c.Move(c.at() + 2);
  if (!c.Number(1, 10, pid) || !c.Eat(' ')) return false;
  std::string_view file;
  if (!c.Until("]", file) || file.size() > 300 || !Contains(file, ":") || Contains(file, " ")) return false;
  c.Eat(']');
  c.Eat(' ');
  out.header = true;
  out.source = LogSource::kTriton;
  out.level = level;
  out.pid = pid;
  out.logger = file;
  out.message = c.rest();
  FinishTriton(out);
  return true;
}

bool ParseKineto(std::string_view line, ParsedLine& out) {
  Cursor c(line);
  const std::string_view word = c.Word("_");
  const LogLevel level = word == "USDT" || word == "STAGE" || word == "VERBOSE" ? LogLevel::kInfo : LevelFromWord(word);
  int64_t pid = 0;
  int64_t tid = 0;
  if (level == LogLevel::kUnknown || !c.Eat(':') || !ReadDateTime(c, out.stamp) || !c.Eat(' ') ||
      !c.Number(1, 10, pid) || !c.Eat(':') || !c.Number(1, 10, tid) || !c.Eat(' ')) {
    return false;
  }
  const size_t begin = c.at();
  std::string_view file;
  if (!c.Until("]", file) || file.size() > 200) return false;
  out.logger = line.substr(begin, file.size());
  c.Eat(']');
  c.Eat(' ');
  out.header = true;
  out.source = LogSource::kKineto;
  out.level = level;
  out.pid = pid;
  out.message = c.rest();
  return true;
}

bool ParseNccl(std::string_view line, ParsedLine& out) {
  if (StartsWith(line, "NCCL version ")) {
    out.header = true;
    out.source = LogSource::kNccl;
    out.level = LogLevel::kInfo;
    out.message = line;
    return true;
  }
  const auto header = ParseNcclHeader(line);
  if (!header) return false;
  out.logger = header->logger;
  out.level = NcclLevel(header->kind);
  out.header = true;
  out.source = LogSource::kNccl;
  out.pid = header->pid;
  out.message = line.substr(header->message);
  return true;
}

bool ParseUvicorn(std::string_view line, ParsedLine& out) {
  Cursor c(line);
  const LogLevel level = LevelFromWord(c.Word(""));
  if (level == LogLevel::kUnknown || !c.Eat(':') || c.peek() != ' ') return false;
  const size_t after = c.at();
  c.SkipSpaces();
  // uvicorn pads "LEVEL:" to ten columns: "INFO:     ", "WARNING:  ", "ERROR:    ".
  if (c.at() != 10 || c.at() - after < 2) return false;
  out.header = true;
  out.source = LogSource::kUvicorn;
  out.level = level;
  out.message = c.rest();
  return true;
}

/// "path/file.py:56: UserWarning: text" (Python's warnings module).
bool ParsePythonWarning(std::string_view line, ParsedLine& out) {
  const size_t mark = line.substr(0, 600).find("Warning: ");
  if (mark == std::string_view::npos) return false;
  const size_t colon = line.rfind(": ", mark);
  if (colon == std::string_view::npos || colon + 2 > mark + 7) return false;
  const std::string_view place = line.substr(0, colon);
  const std::string_view kind = line.substr(colon + 2, mark + 7 - colon - 2);
  const size_t number = place.rfind(':');
  int64_t row = 0;
  if (number == std::string_view::npos || number == 0) return false;
  Cursor digits(place.substr(number + 1));
  if (!digits.Number(1, 7, row) || !digits.done()) return false;
  if (Contains(place, " ") && place.front() != '<') return false;  // "<frozen importlib._bootstrap>:1241"
  if (kind.find_first_of(" (\"'") != std::string_view::npos) return false;
  const size_t slash = place.rfind('/');
  out.header = true;
  out.source = LogSource::kPythonLogging;
  out.level = LogLevel::kWarning;
  out.logger = slash == std::string_view::npos ? place : place.substr(slash + 1);
  out.message = line.substr(colon + 2);
  return true;
}

/// "INFO LMCache: text [2024-11-19 20:08:43,749] -- /path/file.py:311" (LMCache before 0.2).
bool ParseOldLmcache(std::string_view line, ParsedLine& out) {
  Cursor c(line);
  const LogLevel level = LevelFromWord(c.Word(""));
  if (level == LogLevel::kUnknown || !c.Eat(" LMCache: ")) return false;
  const std::string_view rest = c.rest();
  const size_t open = rest.rfind(" [");
  if (open == std::string_view::npos) return false;
  Cursor tail(rest.substr(open + 2));
  if (!ReadDateTime(tail, out.stamp) || !tail.Eat("] -- ")) return false;
  out.logger = tail.rest();
  const size_t slash = out.logger.rfind('/');
  if (slash != std::string_view::npos) out.logger.remove_prefix(slash + 1);
  out.header = true;
  out.source = LogSource::kPythonLogging;
  out.level = level;
  out.message = rest.substr(0, open);
  return true;
}

/// "WARNING:root:text", "[aiter] WARNING: text", "ERROR: text", "[WARN] text", "[transformers] text" without a level.
bool ParseLevelFirst(std::string_view line, ParsedLine& out) {
  if (ParsePythonWarning(line, out) || ParseOldLmcache(line, out)) return true;
  out = {};
  Cursor c(line);
  std::string_view tag;
  if (c.Eat('[')) {
    tag = c.Word("_.-");
    if (tag.size() < 2 || tag.size() > 32 || !IsAlpha(tag.front()) || !c.Eat("] ")) return false;
  }
  Cursor walk = c;
  const LogLevel level = LevelFromWord(walk.Word(""));
  if (level == LogLevel::kUnknown || !walk.Eat(':')) {
    if (tag.empty()) return false;
    // A library's tag alone, or the level itself in brackets.
    c.SkipSpaces();
    out.header = true;
    out.source = LogSource::kPythonLogging;
    out.level = LevelFromWord(tag);
    if (out.level == LogLevel::kUnknown) out.logger = tag;
    out.message = c.rest();
    return true;
  }
  // Words in mixed case ("Warning: ...", "Error: ...") are text of a person; they count as a level all the same.
  Cursor name = walk;
  const std::string_view logger = name.Word("_.");
  if (!logger.empty() && name.Eat(':')) {
    out.logger = logger;
    walk = name;
  } else if (walk.peek() != ' ') {
    return false;
  } else {
    out.logger = tag;
  }
  walk.SkipSpaces();
  out.header = true;
  out.source = LogSource::kPythonLogging;
  out.level = level;
  out.message = walk.rest();
  return true;
}

}  // namespace teller::ingest::log
