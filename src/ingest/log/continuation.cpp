#include "ingest/log/continuation.hpp"

#include <algorithm>
#include <array>

#include "ingest/log/cursor.hpp"
#include "ingest/log/parsed_line.hpp"
#include "ingest/log/stamp.hpp"

namespace teller::ingest::log {

bool IsTracebackHead(std::string_view text) {
  return StartsWith(text, kTracebackHead) || StartsWith(text, "  + Exception Group Traceback");
}

bool IsChainMark(std::string_view text) {
  return StartsWith(text, "During handling of the above exception") ||
         StartsWith(text, "The above exception was the direct cause");
}

bool IsProcessHead(std::string_view text) {
  Cursor c(text);
  return c.Eat("Process ") && !c.Word("_.-:").empty() && c.done() && text.back() == ':';
}

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

bool LooksLikeException(std::string_view text) {
  Cursor c(text);
  const std::string_view name = c.Word("_.");
  if (name.empty() || !(IsAlpha(name.front()) || name.front() == '_')) return false;
  return c.done() || (c.peek() == ':' && (c.peek(1) == ' ' || c.peek(1) == '\0'));
}

std::string_view ExceptionInside(std::string_view message) {
  const size_t head = message.rfind(kTracebackHead);
  if (head == std::string_view::npos) return {};
  std::string_view rest = message.substr(head + kTracebackHead.size());
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    if (!line.empty() && !IsSpace(line.front()) && LooksLikeException(line)) return line;
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  return {};
}

namespace {

/// "-----", "=====", "+----+----+", also in columns with blanks between.
bool IsRuler(std::string_view text) {
  size_t drawn = 0;
  for (const char c : text) {
    if (c == '-' || c == '=' || c == '*' || c == '_' || c == '+' || c == '#' || c == '~' || c == '.') {
      ++drawn;
    } else if (c != ' ' && c != '|') {
      return false;
    }
  }
  return drawn >= 3;
}

/// Values set off by two and more blanks, at least `least` columns.
bool IsRow(std::string_view text, size_t least) {
  size_t columns = 1;
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] != ' ' || text[i + 1] != ' ') continue;
    ++columns;
    while (i + 1 < text.size() && text[i + 1] == ' ') ++i;
  }
  return columns >= least;
}

}  // namespace

bool IsProgramOutput(std::string_view text) {
  text = Trim(text);
  if (text.empty()) return true;
  if (text.front() == '#' || text.front() == '|' || text.front() == '+') return true;
  if (StartsWith(text, "<|") || StartsWith(text, "---") || StartsWith(text, "===") || EndsWith(text, "<|im_end|>"))
    return true;
  if (text.size() <= 2) return true;  // a bracket, a quote or a dot on a line of its own
  return IsRuler(text) || IsRow(text, 4);
}

size_t GluedRecord(std::string_view line) {
  if (line.size() < 24) return std::string_view::npos;
  if (line.front() == '{') return line.find("{\"timestamp\":\"", 1);
  // A stamp of microseconds in UTC, then two blanks or one and a level: nobody quotes that inside a message.
  for (size_t at = line.find("Z ", 20); at != std::string_view::npos; at = line.find("Z ", at + 1)) {
    if (at < 27 || line[at - 7] != '.') continue;
    const size_t begin = at - 26;
    if (begin == 0) continue;
    Cursor c(line.substr(begin));
    Stamp stamp;
    if (!ReadDateTime(c, stamp)) continue;
    c.SkipSpaces();
    if (LevelFromWord(c.Word("")) != trace::LogLevel::kUnknown && c.peek() == ' ') return begin;
  }
  return std::string_view::npos;
}

bool LeavesQuoteOpen(std::string_view text) {
  bool open = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\'') continue;
    const bool inside_word = i > 0 && IsAlnum(text[i - 1]) && i + 1 < text.size() && IsAlnum(text[i + 1]);
    if (!inside_word) open = !open;
  }
  return open;
}

}  // namespace teller::ingest::log
