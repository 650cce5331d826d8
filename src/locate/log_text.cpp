#include "locate/log_text.hpp"

namespace teller::locate {

namespace {

constexpr size_t kMaxProbe = 8192;  // a header line and some exceptions; prompts and dumps beyond are no evidence

bool IsWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/// Calls `each` with every line of `text` until it returns false.
template <class Each>
void ForLines(std::string_view text, Each each) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (!each(text.substr(0, end))) return;
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::string_view FirstLine(std::string_view text) {
  return text.substr(0, text.find('\n'));
}

std::string Shorten(std::string_view text, size_t limit) {
  if (text.size() <= limit) return std::string(text);
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0) == 0x80) --limit;
  return std::string(text.substr(0, limit)) + "...";
}

std::optional<int64_t> NumberAfter(std::string_view text, std::string_view mark) {
  const size_t at = text.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  size_t i = at + mark.size();
  while (i < text.size() && text[i] == ' ') ++i;
  const bool minus = i < text.size() && text[i] == '-';
  if (minus) ++i;
  int64_t value = 0;
  size_t digits = 0;
  while (i < text.size() && text[i] >= '0' && text[i] <= '9' && digits < 18) {
    value = value * 10 + (text[i++] - '0');
    ++digits;
  }
  if (digits == 0) return std::nullopt;
  return minus ? -value : value;
}

std::string WordBefore(std::string_view text, std::string_view mark) {
  const size_t at = text.find(mark);
  if (at == std::string_view::npos) return {};
  size_t begin = at;
  while (begin > 0 && IsWord(text[begin - 1])) --begin;
  return std::string(text.substr(begin, at - begin));
}

std::vector<std::string_view> ExceptionLines(std::string_view message) {
  std::vector<std::string_view> out;
  bool frames = false;
  ForLines(message, [&](std::string_view line) {
    if (Has(line, "Traceback (most recent call last):")) {
      frames = true;
    } else if (frames && !line.empty() && line.front() != ' ' && line.front() != '\t') {
      out.push_back(line);
      frames = false;
    }
    return out.size() < 16;
  });
  return out;
}

std::string ProbeText(std::string_view message) {
  std::string probe(FirstLine(message).substr(0, kMaxProbe));
  // C++ says what it threw on the line below "terminate called".
  if (const size_t what = message.find("\n  what():"); what != std::string_view::npos) {
    probe += '\n';
    probe += FirstLine(message.substr(what + 1)).substr(0, kMaxProbe / 4);
  }
  for (const auto line : ExceptionLines(message)) {
    if (probe.size() + line.size() > kMaxProbe) break;
    probe += '\n';
    probe += line;
  }
  return probe;
}

}  // namespace teller::locate
