#include <array>

#include "base/nanos.hpp"
#include "ingest/log/grammar.hpp"

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

/// "[ 1843.308145] text", "<4>[ 1843.308145] text", "[Sun Feb 23 16:24:18 2025] text" (dmesg, dmesg -T).
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
  if (!ReadSecondsSinceStart(c, out.stamp) && !ReadCtime(c, out.stamp)) return false;
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

/// Bare lines of llama.cpp's own programs: "slot print_timing: ...", "srv  update_slots: ...", "llama_kv_cache: ...".
bool LooksLikeLlama(std::string_view line) {
  static constexpr std::array<std::string_view, 20> kHeads = {
      "slot ",         "srv  ",   "que  ",           "cmn  ",         "res  ",
      "llama_",        "ggml_",   "llm_load_",       "load_tensors",  "load_backend",
      "print_info: ",  "common_", "clip_",           "main: ",        "prompt eval time =",
      "system_info: ", "build: ", "sched_reserve: ", "set_adapters_", "~llama_context"};
  for (const auto head : kHeads) {
    if (StartsWith(line, head)) return true;
  }
  return false;
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

bool ParseLlama(std::string_view line, ParsedLine& out) {
  Cursor c(line);
  if (ReadMinuteDots(c, out.stamp) && c.Eat(' ')) {
    out.level = LevelFromLetter(c.peek());
    if (out.level == LogLevel::kUnknown || c.peek(1) != ' ') return false;
    c.Eat(c.peek());
    c.Eat(' ');
    out.message = c.rest();
  } else if (LooksLikeLlama(line)) {
    out.message = line;
  } else {
    return false;
  }
  // "slot print_timing: id ..." -> logger "slot print_timing"
  const size_t colon = out.message.substr(0, 48).find(": ");
  if (colon != std::string_view::npos) out.logger = out.message.substr(0, colon);
  out.header = true;
  out.source = LogSource::kLlamaCpp;
  out.process = "llama-server";
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
  const size_t mark = line.substr(0, 400).find(" NCCL ");
  if (mark == std::string_view::npos) return false;
  Cursor c(line);
  const std::string_view host = c.Word("_.-");
  int64_t pid = 0;
  int64_t tid = 0;
  int64_t device = 0;
  if (host.empty() || !c.Eat(':') || !c.Number(1, 10, pid) || !c.Eat(':') || !c.Number(1, 10, tid)) return false;
  if (c.Eat(" [") && !(c.Number(1, 4, device) && c.Eat(']'))) return false;
  if (c.at() > mark) return false;
  out.logger = Trim(line.substr(c.at(), mark - c.at()));
  c.Move(mark + 6);
  const std::string_view kind = c.Word("");
  out.level = kind == "WARN" ? LogLevel::kWarning : kind == "ERROR" ? LogLevel::kError : LogLevel::kInfo;
  if (kind != "WARN" && kind != "INFO" && kind != "TRACE" && kind != "CALL" && kind != "ERROR") return false;
  c.Eat(' ');
  out.header = true;
  out.source = LogSource::kNccl;
  out.pid = pid;
  out.message = c.rest();
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

/// "WARNING:root:text", "[aiter] WARNING: text", "ERROR: text", "[transformers] text" without a level.
bool ParseLevelFirst(std::string_view line, ParsedLine& out) {
  Cursor c(line);
  std::string_view tag;
  if (c.Eat('[')) {
    tag = c.Word("_.-");
    if (tag.empty() || tag.size() > 32 || !c.Eat("] ")) return false;
  }
  Cursor walk = c;
  const LogLevel level = LevelFromWord(walk.Word(""));
  if (level == LogLevel::kUnknown || !walk.Eat(':')) return false;
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
