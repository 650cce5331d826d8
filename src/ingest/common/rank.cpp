#include "ingest/common/rank.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <string>

namespace teller::ingest {

namespace {

constexpr size_t kMaxDigits = 6;  // longer numbers are times and pids

bool IsDigit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

/// The number at the front of `text` if it has few digits and ends there.
std::optional<int> NumberAt(std::string_view text) {
  size_t n = 0;
  while (n < text.size() && IsDigit(text[n])) ++n;
  if (n == 0 || n > kMaxDigits) return std::nullopt;
  int value = 0;
  std::from_chars(text.data(), text.data() + n, value);
  return value;
}

/// Number that follows the last `word` (its own word: no letter before it), with - or _ or nothing in between.
std::optional<int> AfterWord(std::string_view name, std::string_view word) {
  std::optional<int> found;
  for (size_t at = name.find(word); at != std::string_view::npos; at = name.find(word, at + 1)) {
    if (at > 0 && std::isalpha(static_cast<unsigned char>(name[at - 1])) != 0) continue;
    std::string_view rest = name.substr(at + word.size());
    if (!rest.empty() && (rest.front() == '-' || rest.front() == '_')) rest.remove_prefix(1);
    if (const auto number = NumberAt(rest)) found = number;
  }
  return found;
}

}  // namespace

std::optional<int> RankFromPath(std::string_view path) {
  const size_t slash = path.rfind('/');
  std::string name(slash == std::string_view::npos ? path : path.substr(slash + 1));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  static constexpr std::array<std::string_view, 3> kWords = {"rank", "worker", "tp"};
  for (const auto word : kWords) {
    if (const auto rank = AfterWord(name, word)) return rank;
  }
  if (slash == std::string_view::npos || (name.rfind("stdout", 0) != 0 && name.rfind("stderr", 0) != 0)) {
    return std::nullopt;
  }
  const std::string_view folder = path.substr(0, slash);
  const size_t above = folder.rfind('/');
  const std::string_view last = above == std::string_view::npos ? folder : folder.substr(above + 1);
  if (last.empty() || !std::all_of(last.begin(), last.end(), IsDigit)) return std::nullopt;
  return NumberAt(last);
}

}  // namespace teller::ingest
