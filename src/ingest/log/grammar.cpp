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
  if (w == "DEBUG" || w == "TRACE" || w == "VERB" || w == "VERBOSE") return LogLevel::kDebug;
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

/// Ray Serve: "app_deployment replica request-id -- text" or "controller 123 -- text" behind level and time.
bool FinishRayServe(std::string_view rest, ParsedLine& out) {
  const size_t mark = rest.find(" -- ");
  if (mark == std::string_view::npos || mark > 160) return false;
  std::array<std::string_view, 3> words;
  size_t n = 0;
  Cursor c(rest.substr(0, mark));
  while (!c.done()) {
    if (n == words.size()) return false;
    words[n] = c.Word("_.:#/-");
    if (words[n++].empty() || (!c.done() && !c.Eat(' '))) return false;
  }
  out.source = LogSource::kRay;
  out.process = std::string(words[0]);
  out.logger = words[0];
  // The third word is the request where the replica handles one.
  if (n == 3 && words[2].size() >= 8) out.request = std::string(words[2]);
  out.message = rest.substr(mark + 4);
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
  if (!open_year && info.empty()) FinishRayServe(rest, out);
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
  // Ray's own format: a tab before the level, "--" behind the file.
  if (out.level != LogLevel::kUnknown && Contains(line.substr(0, 32), "\t") && Contains(out.logger, ".py:"))
    out.source = LogSource::kRay;
  if (out.level == LogLevel::kUnknown && out.logger.empty()) out.source = LogSource::kUnknown;
  return true;
}

namespace {

/// " [repeated 7x across cluster]" at the end: Ray's driver prints equal lines of several actors once.
void TakeRepeated(ParsedLine& out) {
  constexpr std::string_view kMark = " [repeated ";
  const size_t at = out.message.rfind(kMark);
  if (at == std::string_view::npos) return;
  Cursor c(out.message.substr(at + kMark.size()));
  int64_t times = 0;
  if (!c.Number(1, 9, times) || !c.Eat("x across cluster]")) return;
  out.statistics.emplace_back("repeated", static_cast<double>(times));
  out.message = out.message.substr(0, at);
}

}  // namespace

ParsedLine ParseLine(std::string_view line, const Origin& origin) {
  ParsedLine out;
  const bool known =
      ParseKernel(line, origin, out) || (out = {}, ParseVllm(line, out)) || (out = {}, ParseBracketed(line, out)) ||
      (out = {}, ParseRust(line, out)) || (out = {}, ParseTritonIso(line, out)) ||
      (out = {}, ParseStamped(line, out)) || (out = {}, ParseGlog(line, out)) || (out = {}, ParseKineto(line, out)) ||
      (out = {}, ParseLlama(line, out)) || (out = {}, ParseNccl(line, out)) || (out = {}, ParseUvicorn(line, out)) ||
      (out = {}, ParseJson(line, out)) || (out = {}, ParseLevelFirst(line, out));
  if (!known) {
    out = {};
    out.message = line;
    if (origin.process == "raylet" || origin.process == "gcs_server" || origin.process == "autoscaler") {
      out.header = true;  // the driver prints what they have to say without a logger
      out.source = LogSource::kRay;
    }
  }
  if (out.level == LogLevel::kUnknown) out.level = origin.level;
  TakeRepeated(out);
  if (!out.stamp.present) out.stamp = origin.stamp;
  return out;
}

}  // namespace teller::ingest::log
