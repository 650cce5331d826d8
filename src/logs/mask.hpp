#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/log_record.hpp"

namespace teller::logs {

/// A piece of a word that varies, by its form.
struct Hole {
  trace::LogParameter::Kind kind = trace::LogParameter::Kind::kText;
  std::string_view text;
};

/// Replaces what varies by form inside one word: "elapsed=0.23" becomes "elapsed=<float>". A quotation with blanks in
/// it is one hole. `holes` gets what was replaced.
std::string MaskWord(std::string_view word, std::vector<Hole>& holes);

/// The same into a buffer that is reused; `holes` may be null.
void MaskWordInto(std::string_view word, std::string& out, std::vector<Hole>* holes);

/// "<int>" and so on.
std::string_view Placeholder(trace::LogParameter::Kind kind);

/// What the walker asks of a byte.
enum ByteClass : uint8_t { kLetter = 0, kBlank = 1, kSpecial = 2, kQuote = 4, kList = 8, kComma = 16 };

constexpr std::array<uint8_t, 256> MakeByteClasses() {
  std::array<uint8_t, 256> out = {};
  out[' '] = out['\t'] = kBlank;
  for (unsigned c = '0'; c <= '9'; ++c) out[c] = kSpecial;
  out['/'] = kSpecial;
  out['='] = kSpecial;  // "a=1,b=2" is cut
  out['\''] = out['"'] = kQuote;
  out['['] = out['('] = kList;
  out[','] = kComma;
  return out;
}
inline constexpr std::array<uint8_t, 256> kByteClasses = MakeByteClasses();

/// Walks over the words of a message's first line. Words are set off by blanks; a quotation and a list of numbers in
/// brackets stay one word however many blanks they hold, and "a=1,b=2" is two. Threads: confined.
class WordWalker {
 public:
  explicit WordWalker(std::string_view message) : rest_(message.substr(0, message.find('\n'))) {}

  /// False at the end. `plain` says that nothing in the word can vary by form. Inline: it is most of the miner's work.
  bool Next(std::string_view& word, bool& plain) {
    const char* const text = rest_.data();
    const size_t size = rest_.size();
    size_t begin = 0;
    while (begin < size && ClassOf(text[begin]) == kBlank) ++begin;
    if (begin == size) return false;
    uint8_t seen = 0;
    bool equals = false;
    size_t i = begin;
    while (i < size) {
      const uint8_t kind = ClassOf(text[i]);
      if (kind == kLetter) {
        ++i;
        continue;
      }
      if (kind == kBlank) break;
      seen |= kind;
      if ((kind & (kQuote | kList)) != 0) {
        if (const size_t end = EndOfUnit(i); end > 0) {
          i = end;
          seen |= kSpecial;
          continue;
        }
      } else if (kind == kComma) {
        ++i;
        if (equals && i < size && ClassOf(text[i]) == kLetter) break;
        continue;
      }
      equals = equals || text[i] == '=';
      ++i;
    }
    word = rest_.substr(begin, i - begin);
    plain = (seen & (kSpecial | kQuote)) == 0;  // also no id: those have digits
    rest_.remove_prefix(i);
    return true;
  }

 private:
  static uint8_t ClassOf(char c) { return kByteClasses[static_cast<unsigned char>(c)]; }
  /// Past the quotation or list of numbers that opens at `i`; 0 when none does.
  size_t EndOfUnit(size_t i);

  std::string_view rest_;
  std::array<bool, 2> unclosed_ = {false,
                                   false};  ///< by kind of quote: one was not closed, so later ones are not either
};

}  // namespace teller::logs
