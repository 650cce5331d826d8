// Prometheus text format 0.0.4 and OpenMetrics 1.0. Sources: prometheus.io/docs/instrumenting/exposition_formats,
// github.com/prometheus/OpenMetrics specification.
#include "ingest/prometheus/exposition.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>

#include "ingest/log/cursor.hpp"

namespace teller::ingest::prometheus {

namespace {

using log::IsAlnum;
using log::IsDigit;
using log::IsSpace;

constexpr size_t kMaxLabels = 256;

/// Words with which recorders mark where one scrape ends and the next begins.
constexpr std::array<std::string_view, 8> kMarks = {"scrape", "before",    "after", "sample",
                                                    "time",   "timestamp", "at",    "date"};

bool IsNameChar(char c) {
  return IsAlnum(c) || c == '_' || c == ':';
}

std::string_view SkipSpace(std::string_view text) {
  return text.substr(std::min(text.size(), text.find_first_not_of(" \t")));
}

/// The text up to the next blank, taken off the front.
std::string_view TakeWord(std::string_view& text) {
  text = SkipSpace(text);
  const size_t end = std::min(text.size(), text.find_first_of(" \t"));
  const std::string_view word = text.substr(0, end);
  text = SkipSpace(text.substr(end));
  return word;
}

std::optional<double> Number(std::string_view text) {
  if (!text.empty() && text.front() == '+') {
    text.remove_prefix(1);
    if (text.empty() || text.front() == '-') return std::nullopt;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || text.empty()) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    // Beyond a double in either direction: what a reader in any other language makes of it.
    const size_t at = text.find_first_of("eE");
    const bool small = at != std::string_view::npos && text.substr(at).find('-') != std::string_view::npos;
    const double magnitude = small ? 0.0 : std::numeric_limits<double>::infinity();
    return text.front() == '-' ? -magnitude : magnitude;
  }
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

Line ParseComment(std::string_view text) {
  Line line;
  line.kind = LineKind::kOther;
  text.remove_prefix(1);
  const std::string_view word = TakeWord(text);
  if (word == "EOF" && text.empty()) {
    line.kind = LineKind::kEnd;
  } else if (word == "TYPE") {
    line.name = TakeWord(text);
    line.type = TakeWord(text);
    if (line.name.size() > 1 && line.name.front() == '"' && line.name.back() == '"') {
      line.name = line.name.substr(1, line.name.size() - 2);
    }
    line.kind = line.name.empty() || line.type.empty() ? LineKind::kBroken : LineKind::kType;
  } else {
    std::string_view mark = word;
    if (!mark.empty() && mark.back() == ':') mark.remove_suffix(1);
    if (std::find(kMarks.begin(), kMarks.end(), mark) != kMarks.end()) {
      const std::string_view number = TakeWord(text);
      const bool before_or_after = mark == "before" || mark == "after";
      // "# time spent in ..." is prose; a mark has a number, or is one of the two that need none.
      if (text.empty() && Number(number)) {
        line.kind = LineKind::kMark;
        line.timestamp = number;
      } else if (before_or_after) {
        line.kind = LineKind::kMark;
      } else if (mark == "scrape") {
        line.kind = LineKind::kMark;
      }
    }
  }
  return line;
}

/// Position of the brace that closes the label set, strings passed over; npos when there is none.
size_t CloseOf(std::string_view text) {
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && text[i] == '}') {
      return i;
    }
  }
  return std::string_view::npos;
}

}  // namespace

Line ParseLine(std::string_view text) {
  while (!text.empty() && (IsSpace(text.back()) || text.back() == '\r')) text.remove_suffix(1);
  text = SkipSpace(text);
  Line line;
  if (text.empty()) return line;
  if (text.front() == '#') return ParseComment(text);
  line.kind = LineKind::kBroken;
  size_t at = 0;
  while (at < text.size() && IsNameChar(text[at])) ++at;
  if (at > 0 && IsDigit(text.front())) return line;
  line.name = text.substr(0, at);
  text = SkipSpace(text.substr(at));
  if (!text.empty() && text.front() == '{') {
    const size_t close = CloseOf(text);
    if (close == std::string_view::npos) return line;
    line.labels = text.substr(1, close - 1);
    text = SkipSpace(text.substr(close + 1));
  } else if (line.name.empty()) {
    return line;
  }
  if (const size_t exemplar = text.find(" #"); exemplar != std::string_view::npos) text = text.substr(0, exemplar);
  const auto value = Number(TakeWord(text));
  if (!value) return line;
  line.timestamp = TakeWord(text);
  if (!text.empty() || (!line.timestamp.empty() && !Number(line.timestamp))) return line;
  line.value = *value;
  line.kind = LineKind::kSample;
  return line;
}

bool ParseLabels(std::string_view text, Labels& out, std::string& quoted_name) {
  out.clear();
  quoted_name.clear();
  const auto quoted = [&text](std::string& value) {
    if (text.empty() || text.front() != '"') return false;
    size_t i = 1;
    for (; i < text.size() && text[i] != '"'; ++i) {
      if (text[i] != '\\' || i + 1 == text.size()) {
        value += text[i];
        continue;
      }
      const char escaped = text[++i];
      if (escaped == 'n') {
        value += '\n';
      } else {
        if (escaped != '\\' && escaped != '"') value += '\\';  // no escape of the format: stays as written
        value += escaped;
      }
    }
    if (i >= text.size()) return false;
    text = SkipSpace(text.substr(i + 1));
    return true;
  };
  text = SkipSpace(text);
  while (!text.empty()) {
    std::string key;
    std::string value;
    if (text.front() == '"') {
      if (!quoted(key)) return false;
    } else {
      const size_t end = std::min(text.size(), text.find_first_of("= \t"));
      key = std::string(text.substr(0, end));
      if (key.empty() || !std::all_of(key.begin(), key.end(), IsNameChar)) return false;
      text = SkipSpace(text.substr(end));
      if (text.empty()) return false;
    }
    if (!text.empty() && text.front() == '=') {
      text = SkipSpace(text.substr(1));
      if (!quoted(value)) return false;
      out.emplace_back(std::move(key), std::move(value));
    } else {
      if (!quoted_name.empty() || !out.empty()) return false;
      quoted_name = std::move(key);
    }
    if (out.size() > kMaxLabels) return false;
    if (text.empty()) break;
    if (text.front() != ',') return false;
    text = SkipSpace(text.substr(1));
  }
  std::sort(out.begin(), out.end());
  return std::adjacent_find(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first == b.first; }) ==
         out.end();
}

}  // namespace teller::ingest::prometheus
