#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace teller::locate {

inline bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}
inline bool HasAny(std::string_view text, std::initializer_list<std::string_view> parts) {
  for (const auto part : parts) {
    if (Has(text, part)) return true;
  }
  return false;
}
inline bool Begins(std::string_view text, std::string_view head) {
  return text.substr(0, head.size()) == head;
}

std::string_view FirstLine(std::string_view text);
/// At most `limit` bytes, cut between UTF-8 characters.
std::string Shorten(std::string_view text, size_t limit);
/// The whole number right behind `mark`; none when there is none.
std::optional<int64_t> NumberAfter(std::string_view text, std::string_view mark);
/// The word of letters, digits, _ and - that ends right before `mark`.
std::string WordBefore(std::string_view text, std::string_view mark);

/// The "Type: text" lines of all tracebacks in a record, first one first. In a chain the first is the cause.
std::vector<std::string_view> ExceptionLines(std::string_view message);

/// What rules look at: the first line and the exception lines, without the source code that tracebacks quote.
std::string ProbeText(std::string_view message);

}  // namespace teller::locate
