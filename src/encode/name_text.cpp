#include "encode/name_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "encode/symbol.hpp"

namespace teller::encode {

namespace {

constexpr size_t kShortestHash = 8;       // hexadecimal digits with letters and digits among them
constexpr size_t kShortestTextHash = 24;  // base-32 text as compilers' caches use it
constexpr size_t kFewestHashDigits = 4;
constexpr size_t kLongestUnit = 2;

bool IsHex(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/// True for a run of letters and digits that no one chose: an address, a digest, a cache key.
bool IsHash(std::string_view word) {
  if (word.starts_with("0x") || word.starts_with("0X")) return word.size() > 2;
  const auto digits = static_cast<size_t>(std::count_if(word.begin(), word.end(), IsDigit));
  const bool letters = digits < word.size();
  if (word.size() >= kShortestHash && digits >= 2 && letters && std::all_of(word.begin(), word.end(), IsHex))
    return true;
  // Words do not change between letters and digits again and again.
  size_t changes = 0;
  for (size_t i = 1; i < word.size(); ++i) changes += IsDigit(word[i]) != IsDigit(word[i - 1]);
  return word.size() >= kShortestTextHash && digits >= kFewestHashDigits && changes >= kFewestHashDigits;
}

/// "12", "256x256", "12ms", "sq8155sk8430": numbers, with short units between them, that begin with a number or are
/// nothing but such pairs.
bool IsNumber(std::string_view word) {
  if (word.empty() || !IsDigit(word.front())) return false;
  size_t letters = 0;
  for (const char c : word) {
    letters = IsDigit(c) ? 0 : letters + 1;
    if (letters > kLongestUnit) return false;
  }
  return letters == 0;
}

class Rewriter {
 public:
  explicit Rewriter(std::string_view text) : text_(text) {}

  std::string Run() {
    out_.reserve(text_.size());
    while (at_ < text_.size()) {
      if (IsDigit(text_[at_]) || IsLetter(text_[at_])) {
        Word();
      } else {
        Other();
      }
    }
    return std::move(out_);
  }

 private:
  /// Letters and digits between anything else; "_" parts a word from its number.
  void Word() {
    size_t end = at_;
    while (end < text_.size() && (IsDigit(text_[end]) || IsLetter(text_[end]))) ++end;
    const std::string_view word = text_.substr(at_, end - at_);
    at_ = end;
    if (!IsHash(word) && !IsNumber(word)) {
      out_ += word;
      return;
    }
    // "3.5" and "1_888" and a UUID's groups are one number.
    const size_t n = out_.size();
    const bool joins = n >= 2 && out_[n - 2] == '#' && (out_[n - 1] == '.' || out_[n - 1] == '_' || out_[n - 1] == '-');
    if (joins) {
      out_.pop_back();
    } else if (n == 0 || out_[n - 1] != '#' || (n >= 2 && out_[n - 2] == '#')) {
      out_ += '#';
    }
  }

  void Other() {
    const char c = text_[at_++];
    if (c == '/' && StartsPath()) {
      // Folders tell where something is installed; the last part tells what it is.
      size_t end = at_;
      while (end < text_.size() && IsPathByte(text_[end])) ++end;
      const size_t slash = text_.substr(at_, end - at_).rfind('/');
      if (slash != std::string_view::npos) at_ += slash + 1;
      return;
    }
    const auto byte = static_cast<unsigned char>(c);
    out_ += byte < 0x20 || byte == 0x7f ? ' ' : c;
  }

  static bool IsPathByte(char c) { return IsWord(c) || c == '/' || c == '.' || c == '-' || c == '+'; }
  /// At the start of a word: "/usr/lib/x.so", not "a/b".
  bool StartsPath() const {
    if (at_ >= 2 && IsPathByte(text_[at_ - 2])) return false;
    size_t end = at_;
    while (end < text_.size() && IsPathByte(text_[end])) ++end;
    return text_.substr(at_, end - at_).find('/') != std::string_view::npos;
  }

  std::string_view text_;
  size_t at_ = 0;
  std::string out_;
};

}  // namespace

std::string WithoutNumbers(std::string_view text) {
  return Rewriter(text).Run();
}

uint64_t HashOf(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3ULL;
  }
  return hash;
}

std::string Bounded(std::string text) {
  if (text.size() <= kMaxSymbolBytes) return text;
  const std::string tail = fmt::format("~{:08x}", static_cast<uint32_t>(HashOf(text)));
  size_t keep = kMaxSymbolBytes - tail.size();
  // Not inside of a character.
  while (keep > 0 && (static_cast<unsigned char>(text[keep]) & 0xC0) == 0x80) --keep;
  text.resize(keep);
  return text + tail;
}

}  // namespace teller::encode
