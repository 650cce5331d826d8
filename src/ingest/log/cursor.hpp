#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace teller::ingest::log {

inline bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}
inline bool IsUpper(char c) {
  return c >= 'A' && c <= 'Z';
}
inline bool IsLower(char c) {
  return c >= 'a' && c <= 'z';
}
inline bool IsAlpha(char c) {
  return IsUpper(c) || IsLower(c);
}
inline bool IsAlnum(char c) {
  return IsAlpha(c) || IsDigit(c);
}
inline bool IsSpace(char c) {
  return c == ' ' || c == '\t';
}

inline bool StartsWith(std::string_view text, std::string_view head) {
  return text.substr(0, head.size()) == head;
}
inline bool EndsWith(std::string_view text, std::string_view tail) {
  return text.size() >= tail.size() && text.substr(text.size() - tail.size()) == tail;
}
inline bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}
inline std::string_view TrimLeft(std::string_view text) {
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  return text;
}
inline std::string_view TrimRight(std::string_view text) {
  while (!text.empty() && (IsSpace(text.back()) || text.back() == '\r')) text.remove_suffix(1);
  return text;
}
inline std::string_view Trim(std::string_view text) {
  return TrimLeft(TrimRight(text));
}

/// Walks over a line. Every Eat moves only when it succeeds. Threads: confined.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  bool done() const { return at_ >= text_.size(); }
  char peek() const { return done() ? '\0' : text_[at_]; }
  char peek(size_t ahead) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  size_t at() const { return at_; }
  void Move(size_t to) { at_ = to; }
  std::string_view rest() const { return text_.substr(at_); }

  bool Eat(char c) {
    if (peek() != c || done()) return false;
    ++at_;
    return true;
  }
  bool Eat(std::string_view word) {
    if (!StartsWith(rest(), word)) return false;
    at_ += word.size();
    return true;
  }
  void SkipSpaces() {
    while (!done() && IsSpace(text_[at_])) ++at_;
  }
  /// Between `least` and `most` digits (at most 18), not followed by another one.
  bool Number(int least, int most, int64_t& value) {
    size_t end = at_;
    int64_t out = 0;
    while (end < text_.size() && IsDigit(text_[end]) && end - at_ < 18) out = out * 10 + (text_[end++] - '0');
    const int digits = static_cast<int>(end - at_);
    if (digits < least || digits > most || (end < text_.size() && IsDigit(text_[end]))) return false;
    value = out;
    at_ = end;
    return true;
  }
  /// Everything up to (not including) the first of `stops`; false when none is there.
  bool Until(std::string_view stops, std::string_view& part) {
    const size_t end = text_.find_first_of(stops, at_);
    if (end == std::string_view::npos) return false;
    part = text_.substr(at_, end - at_);
    at_ = end;
    return true;
  }
  /// Letters, digits and `more`.
  std::string_view Word(std::string_view more = "_") {
    const size_t begin = at_;
    while (!done() && (IsAlnum(text_[at_]) || more.find(text_[at_]) != std::string_view::npos)) ++at_;
    return text_.substr(begin, at_ - begin);
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace teller::ingest::log
