#include "report/page.hpp"

#include <algorithm>
#include <utility>

#include "report/printable.hpp"

namespace teller::report {

namespace {

constexpr size_t kFieldIndent = 2;
constexpr size_t kLabelColumns = kFieldColumn - kFieldIndent;

std::string_view Start(Ink ink) {
  switch (ink) {
    case Ink::kPlain: return "";
    case Ink::kBold: return "\x1b[1m";
    case Ink::kDim: return "\x1b[2m";
    case Ink::kRed: return "\x1b[1;31m";
    case Ink::kYellow: return "\x1b[1;33m";
    case Ink::kGreen: return "\x1b[1;32m";
    case Ink::kCyan: return "\x1b[36m";
  }
  return "";
}

/// Bytes of `word` that fill at most `columns`; at least one character.
size_t FittingBytes(std::string_view word, size_t columns) {
  size_t end = 0;
  while (end < word.size()) {
    size_t next = end + 1;
    while (next < word.size() && (static_cast<unsigned char>(word[next]) & 0xC0) == 0x80) ++next;
    if (end > 0 && Columns(word.substr(0, next)) > columns) break;
    end = next;
  }
  return end;
}

}  // namespace

std::string Page::Inked(Ink ink, std::string_view text) const {
  const std::string shown = Printable(text);
  if (!options_.color || ink == Ink::kPlain || shown.empty()) return shown;
  return std::string(Start(ink)) + shown + "\x1b[0m";
}

void Page::Raw(std::string_view text) {
  text_.append(text).append("\n");
}

void Page::Gap() {
  if (!text_.empty() && !text_.ends_with("\n\n")) text_ += '\n';
}

void Page::Head(std::string_view text) {
  Raw(Inked(Ink::kBold, text));
}

void Page::Line(size_t indent, std::string_view text, Ink ink) {
  const size_t room = options_.width > indent + 8 ? options_.width - indent : 8;
  Raw(std::string(indent, ' ') + Inked(ink, Printable(text, room)));
}

void Page::Paragraph(size_t indent, std::string_view text, Ink ink) {
  Wrap(std::string(indent, ' '), indent, text, ink);
}

void Page::Field(std::string_view label, std::string_view text, Ink ink) {
  std::string first(kFieldIndent, ' ');
  first += Inked(Ink::kDim, label);
  first.append(Columns(label) < kLabelColumns ? kLabelColumns - Columns(label) : 2, ' ');
  Wrap(std::move(first), kFieldColumn, text, ink);
}

void Page::Wrap(std::string first, size_t hang, std::string_view text, Ink ink) {
  const std::string shown = Printable(text);
  const size_t room = std::max<size_t>(options_.width > hang ? options_.width - hang : 0, 20);
  std::string prefix = std::move(first);
  std::string line;
  size_t columns = 0;
  const auto flush = [&] {
    Raw(prefix + Inked(ink, line));
    prefix.assign(hang, ' ');
    line.clear();
    columns = 0;
  };
  for (size_t at = 0; at < shown.size();) {
    const size_t end = std::min(shown.find(' ', at), shown.size());
    std::string_view word(shown.data() + at, end - at);
    at = end + 1;
    while (!word.empty()) {
      const size_t blank = line.empty() ? 0 : 1;
      const size_t width = Columns(word);
      if (columns + blank + width <= room) {
        line.append(blank, ' ').append(word);
        columns += blank + width;
        break;
      }
      if (!line.empty()) {
        flush();
        continue;
      }
      const size_t fits = FittingBytes(word, room);
      line.assign(word.substr(0, fits));
      word.remove_prefix(fits);
      columns = Columns(line);
      if (!word.empty()) flush();
    }
  }
  flush();
}

}  // namespace teller::report
