#include "ingest/common/rank.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <initializer_list>
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

/// Number that follows the last `word` (its own word: no letter before it), with -, _ or = or nothing in between.
std::optional<int> AfterWord(std::string_view name, std::string_view word) {
  std::optional<int> found;
  for (size_t at = name.find(word); at != std::string_view::npos; at = name.find(word, at + 1)) {
    if (at > 0 && std::isalpha(static_cast<unsigned char>(name[at - 1])) != 0) continue;
    if (word == "rank" && name.substr(0, at).ends_with("local_")) continue;  // a local rank is another number
    std::string_view rest = name.substr(at + word.size());
    if (!rest.empty() && (rest.front() == '-' || rest.front() == '_' || rest.front() == '=')) rest.remove_prefix(1);
    if (const auto number = NumberAt(rest)) found = number;
  }
  return found;
}

/// "trace_r12_step3", "trace_r12.json" -> 12. DeepSeek-R1 is a model.
std::optional<int> AfterShortMark(std::string_view name) {
  std::optional<int> found;
  for (size_t at = name.find("_r"); at != std::string_view::npos; at = name.find("_r", at + 1)) {
    if (name.substr(0, at).ends_with("deepseek")) continue;
    const std::string_view rest = name.substr(at + 2);
    const auto number = NumberAt(rest);
    const size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    const bool closed = digits == rest.size() || rest[digits] == '_' || rest[digits] == '.';
    if (number && closed) found = number;
  }
  return found;
}

int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

/// Object stores escape names: "rank%3D3" is "rank=3". Lower case, as all names are compared.
std::string Plain(std::string_view path) {
  std::string out;
  for (size_t i = 0; i < path.size(); ++i) {
    const auto lower = [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); };
    const bool escape = path[i] == '%' && i + 2 < path.size();
    const int high = escape ? HexDigit(lower(path[i + 1])) : -1;
    const int low = escape ? HexDigit(lower(path[i + 2])) : -1;
    if (high >= 0 && low >= 0) {
      out += lower(static_cast<char>(high * 16 + low));
      i += 2;
    } else {
      out += lower(path[i]);
    }
  }
  return out;
}

/// True when a part of the path names a node other than the first: its GPUs' numbers are local ranks.
bool OnALaterNode(std::string_view path) {
  for (const std::string_view word : {"node", "host"}) {
    if (const auto node = AfterWord(path, word); node && *node != 0) return true;
  }
  return false;
}

std::optional<int> RankFromPart(std::string_view part) {
  static constexpr std::array<std::string_view, 3> kWords = {"rank", "worker", "tp"};
  for (const auto word : kWords) {
    if (const auto rank = AfterWord(part, word)) return rank;
  }
  return std::nullopt;
}

}  // namespace

std::optional<int> RankFromPath(std::string_view given) {
  const std::string path = Plain(given);
  const size_t slash = path.rfind('/');
  const std::string_view name =
      slash == std::string::npos ? std::string_view(path) : std::string_view(path).substr(slash + 1);
  if (const auto rank = RankFromPart(name)) return rank;
  if (const auto rank = AfterShortMark(name)) return rank;
  std::string_view folder = slash == std::string::npos ? std::string_view() : std::string_view(path).substr(0, slash);
  const auto last_of = [](std::string_view folders) { return folders.substr(folders.rfind('/') + 1); };
  if (name.starts_with("stdout") || name.starts_with("stderr")) {
    const std::string_view last = last_of(folder);
    if (!last.empty() && std::all_of(last.begin(), last.end(), IsDigit)) return NumberAt(last);
  }
  // Keys of object stores say in a folder what they say of all below it.
  for (std::string_view rest = folder; !rest.empty();) {
    const std::string_view part = last_of(rest);
    if (const auto rank = RankFromPart(part)) return rank;
    rest.remove_suffix(std::min(rest.size(), part.size() + 1));
  }
  if (OnALaterNode(path)) return std::nullopt;
  for (const std::string_view part : {name, last_of(folder)}) {
    for (const std::string_view word : {"local_rank", "gpu"}) {
      if (const auto rank = AfterWord(part, word)) return rank;
    }
  }
  return std::nullopt;
}

}  // namespace teller::ingest
