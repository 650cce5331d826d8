#include "ingest/log/python_literal.hpp"

#include "ingest/log/cursor.hpp"

namespace teller::ingest::log {

namespace {

/// Past the closing quote of the text that begins at `i`, or the end.
size_t SkipQuoted(std::string_view text, size_t i) {
  const char quote = text[i];
  for (++i; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      return i + 1;
    }
  }
  return text.size();
}

/// Where the value at `i` ends: a comma or closing bracket of the same depth, or the end.
size_t SkipValue(std::string_view text, size_t i) {
  size_t depth = 0;
  while (i < text.size()) {
    const char c = text[i];
    if (c == '\'' || c == '"') {
      i = SkipQuoted(text, i);
      continue;
    }
    if (c == '{' || c == '[' || c == '(') ++depth;
    if (c == '}' || c == ']' || c == ')') {
      if (depth == 0) return i;
      --depth;
    }
    if (c == ',' && depth == 0) return i;
    ++i;
  }
  return text.size();
}

}  // namespace

bool ForEachDictItem(std::string_view text, const std::function<void(std::string_view, std::string_view)>& item) {
  if (text.empty() || text.front() != '{') return false;
  size_t i = 1;
  while (i < text.size()) {
    while (i < text.size() && (IsSpace(text[i]) || text[i] == ',')) ++i;
    if (i >= text.size()) return false;
    if (text[i] == '}') return true;
    if (text[i] != '\'' && text[i] != '"') return false;
    const size_t key_end = SkipQuoted(text, i);
    const std::string_view key = Unquoted(text.substr(i, key_end - i));
    i = key_end;
    if (i >= text.size() || text[i] != ':') return false;
    ++i;
    while (i < text.size() && IsSpace(text[i])) ++i;
    const size_t end = SkipValue(text, i);
    item(key, Trim(text.substr(i, end - i)));
    i = end;
  }
  return false;
}

std::string_view Unquoted(std::string_view text) {
  if (text.size() < 2 || (text.front() != '\'' && text.front() != '"') || text.back() != text.front()) return text;
  return text.substr(1, text.size() - 2);
}

}  // namespace teller::ingest::log
