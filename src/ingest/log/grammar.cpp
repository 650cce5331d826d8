#include "ingest/log/grammar.hpp"

#include <array>

namespace teller::ingest::log {

using trace::LogLevel;
using trace::LogSource;

LogLevel LevelFromWord(std::string_view word) {
  std::array<char, 9> upper = {};
  if (word.empty() || word.size() >= upper.size()) return LogLevel::kUnknown;
  for (size_t i = 0; i < word.size(); ++i) upper[i] = IsLower(word[i]) ? static_cast<char>(word[i] - 32) : word[i];
  const std::string_view w(upper.data(), word.size());
  if (w == "INFO" || w == "NOTICE") return LogLevel::kInfo;
  if (w == "WARNING" || w == "WARN") return LogLevel::kWarning;
  if (w == "ERROR" || w == "ERR" || w == "ALERT") return LogLevel::kError;
  if (w == "DEBUG" || w == "TRACE") return LogLevel::kDebug;
  if (w == "CRITICAL" || w == "FATAL" || w == "CRIT" || w == "EMERG" || w == "PANIC") return LogLevel::kFatal;
  return LogLevel::kUnknown;
}

LogLevel LevelFromLetter(char letter) {
  switch (letter) {
    case 'D':
    case 'V': return LogLevel::kDebug;
    case 'I': return LogLevel::kInfo;
    case 'W': return LogLevel::kWarning;
    case 'E': return LogLevel::kError;
    case 'F':
    case 'C': return LogLevel::kFatal;
    default: return LogLevel::kUnknown;
  }
}

std::string_view TakeFileInfo(std::string_view& rest) {
  Cursor c(rest);
  const bool bracket = c.Eat('[');
  const std::string_view file = c.Word("_./<>-");
  int64_t line = 0;
  if (file.empty() || !c.Eat(':') || !c.Number(1, 7, line)) return {};
  const size_t begin = bracket ? 1 : 0;
  const std::string_view info = rest.substr(begin, c.at() - begin);
  if (!c.Eat(']')) return {};
  c.Eat(' ');
  rest = c.rest();
  return info;
}

namespace {

/// "TP0", "DP4 TP4": ranks inside SGLang's bracket. The TP index is the rank where PP and DP attention are off or at 0.
bool ReadSglangRanks(Cursor& c, ParsedLine& out) {
  Cursor walk = c;
  bool pipeline = false;
  bool any = false;
  while (walk.Eat(' ')) {
    const std::string_view word = walk.Word("");
    size_t letters = 0;
    while (letters < word.size() && IsUpper(word[letters])) ++letters;
    Cursor digits(word.substr(letters));
    int64_t index = 0;
    if (letters < 2 || !digits.Number(1, 5, index) || !digits.done()) return false;
    if (word.substr(0, letters) == "TP") out.rank = static_cast<int>(index);
    if (word.substr(0, letters) == "PP" && index > 0) pipeline = true;
    any = true;
  }
  if (pipeline) out.rank.reset();
  if (any) out.process = "scheduler";
  c = walk;
  return any;
}

/// SGLang does not name its processes; what they say does.
std::string_view SglangProcess(std::string_view message) {
  static constexpr std::array<std::string_view, 16> kScheduler = {
      "Prefill batch",         "Decode batch",    "KV cache pool is full",
      "Decode out of memory",  "Load weight",     "Memory pool",
      "Init torch distrib",    "Init parallel",   "KV Cache is alloc",
      "max_total_num_tokens",  "Scheduler hit",   "Capture ",
      "token_to_kv_pool",      "Memory baseline", "Retract",
      "Engine startup timings"};
  static constexpr std::array<std::string_view, 7> kTokenizer = {
      "Receive: obj=",     "Finish: obj=",     "SIGQUIT received",      "SIGTERM received",
      "kill_process_tree", "Received sigquit", "The server is fired up"};
  for (const auto head : kScheduler) {
    if (StartsWith(message, head)) return "scheduler";
  }
  if (StartsWith(message, "DetokenizerManager hit") || StartsWith(message, "Detokenizer")) return "detokenizer";
  for (const auto head : kTokenizer) {
    if (StartsWith(message, head)) return "tokenizer_manager";
  }
  return {};
}

/// The tail "(file.py:502:module)" of loggers that put it last.
std::string_view TakeTrailingFile(std::string_view& message) {
  const std::string_view text = TrimRight(message);
  if (!EndsWith(text, ")")) return {};
  const size_t open = text.rfind('(');
  if (open == std::string_view::npos || open == 0) return {};
  const std::string_view inside = text.substr(open + 1, text.size() - open - 2);
  const size_t colon = inside.find(".py:");
  if (colon == std::string_view::npos || inside.find(' ') != std::string_view::npos) return {};
  const size_t end = inside.find(':', colon + 4);
  message = TrimRight(text.substr(0, open));
  return inside.substr(0, end);
}

/// "INFO:     127.0.0.1:1 - ..." behind a stamp is uvicorn's line.
bool ContinueAsUvicorn(std::string_view message, ParsedLine& out) {
  ParsedLine inner;
  if (!ParseUvicorn(message, inner)) return false;
  out.source = LogSource::kUvicorn;
  out.level = inner.level;
  out.message = inner.message;
  return true;
}

/// What follows the bracket decides whose line it is.
void FinishBracketed(std::string_view rest, bool ranks, ParsedLine& out) {
  ParsedLine inner;
  out.message = rest;
  out.source = LogSource::kPythonLogging;
  if (ParseNccl(rest, inner)) {
    out.source = LogSource::kNccl;
    out.level = inner.level;
    out.message = inner.message;
    out.logger = inner.logger;
    out.pid = inner.pid;
    return;
  }
  // TensorRT-LLM "[TRT-LLM] [RANK 0] [I] text", fabric manager "[INFO] [tid 1] text".
  Cursor c(rest);
  while (c.peek() == '[') {
    Cursor tag = c;
    std::string_view inside;
    tag.Eat('[');
    if (!tag.Until("]", inside) || inside.size() > 40) break;
    tag.Eat(']');
    tag.SkipSpaces();
    int64_t value = 0;
    Cursor word(inside);
    if (inside.size() == 1 && LevelFromLetter(inside[0]) != LogLevel::kUnknown) {
      out.level = LevelFromLetter(inside[0]);
    } else if (LevelFromWord(inside) != LogLevel::kUnknown) {
      out.level = LevelFromWord(inside);
    } else if ((word.Eat("RANK ") || word.Eat("MPI_Rank ") || word.Eat("rank") || word.Eat("Rank ")) &&
               word.Number(1, 6, value)) {
      out.rank = static_cast<int>(value);
    } else if (!StartsWith(inside, "tid ") && !StartsWith(inside, "TRT-LLM")) {
      break;
    }
    c = tag;
  }
  if (c.at() > 0) {
    out.message = c.rest();
    return;
  }
  // "LMCache INFO: text (file.py:1)", "INFO: text (file.py:1:module)".
  const size_t colon = rest.substr(0, 48).find(": ");
  if (colon != std::string_view::npos) {
    const std::string_view head = rest.substr(0, colon);
    const size_t space = head.rfind(' ');
    const LogLevel level = LevelFromWord(space == std::string_view::npos ? head : head.substr(space + 1));
    if (level != LogLevel::kUnknown && !ranks && !ContinueAsUvicorn(rest, out)) {
      out.level = level;
      out.message = TrimLeft(rest.substr(colon + 2));
      out.logger = TakeTrailingFile(out.message);
      return;
    }
    if (level != LogLevel::kUnknown && out.source == LogSource::kUvicorn) {
      out.process = "tokenizer_manager";
      return;
    }
  }
  out.source = LogSource::kSglang;
  if (out.process.empty()) out.process = SglangProcess(rest);
  if (!ranks) ContinueAsUvicorn(rest, out);
}

/// raylet and other Ray C++: "2025-04-02 15:02:00,117 E 135782 135782" inside the bracket.
bool ReadRayTail(Cursor& c, ParsedLine& out) {
  Cursor walk = c;
  int64_t pid = 0;
  int64_t tid = 0;
  if (!walk.Eat(' ')) return false;
  const LogLevel level = LevelFromLetter(walk.peek());
  if (level == LogLevel::kUnknown) return false;
  walk.Eat(walk.peek());
  if (!walk.Eat(' ') || !walk.Number(1, 10, pid) || !walk.Eat(' ') || !walk.Number(1, 10, tid) || walk.peek() != ']') {
    return false;
  }
  out.level = level;
  out.pid = pid;
  c = walk;
  return true;
}

}  // namespace

bool ParseVllm(std::string_view line, ParsedLine& out) {
  Cursor c(line);
  const LogLevel level = LevelFromWord(c.Word(""));
  if (level == LogLevel::kUnknown || !c.Eat(' ')) return false;
  c.SkipSpaces();
  const bool open_year = ReadMonthDayTime(c, out.stamp);
  if (!open_year && !ReadDateTime(c, out.stamp)) return false;
  c.Eat(' ');
  std::string_view rest = c.rest();
  const std::string_view info = TakeFileInfo(rest);
  out.header = true;
  out.level = level;
  out.logger = info;
  out.message = rest;
  out.source = open_year && !info.empty() ? LogSource::kVllm : LogSource::kPythonLogging;
  return true;
}

bool ParseBracketed(std::string_view line, ParsedLine& out) {
  Cursor c(line);
  if (!c.Eat('[')) return false;
  const bool stamped = ReadDateTime(c, out.stamp) || ReadUsDateTime(c, out.stamp) || ReadMonthNameTime(c, out.stamp);
  const bool time_only = !stamped && ReadTimeOfDay(c, out.stamp);
  if (!stamped && !time_only) return false;
  const bool ray = stamped && ReadRayTail(c, out);
  const bool ranks = !ray && ReadSglangRanks(c, out);
  if (!c.Eat(']')) return false;
  if (time_only && !ranks && !c.Eat(' ')) return false;
  c.Eat(' ');
  out.header = true;
  if (ray) {
    Cursor body = c;
    body.Eat("(raylet) ");
    body.Eat("(gcs_server) ");
    out.source = LogSource::kGlog;
    out.process = "raylet";
    out.message = body.rest();
    return true;
  }
  FinishBracketed(c.rest(), ranks, out);
  return true;
}

bool ParseStamped(std::string_view line, ParsedLine& out) {
  Cursor c(line);
  if (!ReadDateTime(c, out.stamp)) return false;
  out.header = true;
  out.source = LogSource::kPythonLogging;
  // Level, rank, logger and file come in any order, set off by spaces, tabs and dashes; the first other word ends them.
  for (int part = 0; part < 6; ++part) {
    Cursor walk = c;
    walk.SkipSpaces();
    while (walk.Eat("- ") || walk.Eat("| ")) walk.SkipSpaces();
    const size_t begin = walk.at();
    int64_t value = 0;
    std::string_view rest = walk.rest();
    if (walk.Eat("[rank") && walk.Number(1, 6, value) && walk.Eat(']')) {
      out.rank = static_cast<int>(value);
    } else if (walk.Move(begin), walk.Eat("rank=") && walk.Number(1, 6, value)) {
      out.rank = static_cast<int>(value);
      if (walk.Eat('/')) walk.Number(1, 6, value);
    } else if (walk.Move(begin), walk.Eat('[') && walk.peek() != '\0') {
      walk.Move(begin);
      const std::string_view info = TakeFileInfo(rest);
      std::string_view inside;
      walk.Eat('[');
      if (!info.empty()) {
        out.logger = info;
        walk.Move(line.size() - rest.size());
      } else if (walk.Until("]", inside) && LevelFromWord(Trim(inside)) != LogLevel::kUnknown) {
        out.level = LevelFromWord(Trim(inside));
        walk.Eat(']');
      } else {
        break;
      }
    } else {
      walk.Move(begin);
      const std::string_view word = walk.Word("_");
      if (out.level != LogLevel::kUnknown || LevelFromWord(word) == LogLevel::kUnknown) break;
      out.level = LevelFromWord(word);
      walk.Eat(':');
    }
    c = walk;
  }
  Cursor body = c;
  body.SkipSpaces();
  while (body.Eat("- ") || body.Eat("-- ") || body.Eat("| ") || body.Eat(": ")) body.SkipSpaces();
  // "file.py:12 - text", "file.py:12: text", "name: text", "a::b: text".
  Cursor name = body;
  const std::string_view word = name.Word("_.:/-");
  if (!word.empty() && word.back() == ':' && name.peek() == ' ') {
    out.logger = word.substr(0, word.size() - 1);
    body = name;
  } else if (Contains(word, ".py:") && (name.Eat(" - ") || name.Eat(" -- ") || name.Eat(": "))) {
    out.logger = word;
    body = name;
  }
  body.SkipSpaces();
  out.message = body.rest();
  if (out.level == LogLevel::kUnknown && out.logger.empty()) out.source = LogSource::kUnknown;
  return true;
}

ParsedLine ParseLine(std::string_view line, const Origin& origin) {
  ParsedLine out;
  const bool known =
      ParseKernel(line, origin, out) || (out = {}, ParseVllm(line, out)) || (out = {}, ParseBracketed(line, out)) ||
      (out = {}, ParseRust(line, out)) || (out = {}, ParseStamped(line, out)) || (out = {}, ParseGlog(line, out)) ||
      (out = {}, ParseKineto(line, out)) || (out = {}, ParseLlama(line, out)) || (out = {}, ParseNccl(line, out)) ||
      (out = {}, ParseUvicorn(line, out)) || (out = {}, ParseJson(line, out)) || (out = {}, ParseLevelFirst(line, out));
  if (!known) {
    out = {};
    out.message = line;
  }
  if (!out.stamp.present && origin.stamp.present) {
    out.stamp = origin.stamp;
    out.header = true;  // a syslog or container stamp begins a record too
  }
  return out;
}

}  // namespace teller::ingest::log
