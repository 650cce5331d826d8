#include "ingest/common/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>

namespace teller::ingest {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr size_t kSnippet = 40;

/// Length of the valid UTF-8 sequence at `i`, or 0.
size_t SequenceLength(std::string_view s, size_t i) {
  const auto byte = [&s](size_t at) { return static_cast<unsigned char>(s[at]); };
  const unsigned char lead = byte(i);
  if (lead < 0x80) return 1;
  const size_t n = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || i + n > s.size()) return 0;
  for (size_t k = 1; k < n; ++k) {
    if ((byte(i + k) & 0xC0) != 0x80) return 0;
  }
  const unsigned char next = byte(i + 1);
  if (lead == 0xE0 && next < 0xA0) return 0;  // over-long
  if (lead == 0xED && next > 0x9F) return 0;  // surrogate
  if (lead == 0xF0 && next < 0x90) return 0;  // over-long
  if (lead == 0xF4 && next > 0x8F) return 0;  // beyond U+10FFFF
  return n;
}

void AppendUtf8(uint32_t code, std::string& out) {
  if (code < 0x80) {
    out.push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out.push_back(static_cast<char>(0xC0 | code >> 6));
    out.push_back(static_cast<char>(0x80 | (code & 0x3F)));
  } else if (code < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | code >> 12));
    out.push_back(static_cast<char>(0x80 | (code >> 6 & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (code & 0x3F)));
  } else {
    out.push_back(static_cast<char>(0xF0 | code >> 18));
    out.push_back(static_cast<char>(0x80 | (code >> 12 & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (code >> 6 & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (code & 0x3F)));
  }
}

/// Four hex digits at `i`.
std::optional<uint32_t> Hex4(std::string_view s, size_t i) {
  if (i + 4 > s.size()) return std::nullopt;
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(s.data() + i, s.data() + i + 4, value, 16);
  if (error != std::errc() || end != s.data() + i + 4) return std::nullopt;
  return value;
}

/// Appends the character of a \u escape whose digits begin at `i`; returns how many characters behind the 'u' it took.
size_t AppendUnicode(std::string_view s, size_t i, std::string& out) {
  const auto high = Hex4(s, i);
  if (!high) {
    out += "\\u";
    return 0;
  }
  const bool is_high = *high >= 0xD800 && *high < 0xDC00;
  if (is_high && i + 6 <= s.size() && s[i + 4] == '\\' && s[i + 5] == 'u') {
    const auto low = Hex4(s, i + 6);
    if (low && *low >= 0xDC00 && *low < 0xE000) {
      AppendUtf8(0x10000 + ((*high - 0xD800) << 10) + (*low - 0xDC00), out);
      return 10;
    }
  }
  if (*high >= 0xD800 && *high < 0xE000) {
    out += kReplacement;
  } else {
    AppendUtf8(*high, out);
  }
  return 4;
}

}  // namespace

bool MakeValidText(std::string_view json, std::string& out) {
  bool changed = false;
  bool in_string = false;
  for (size_t i = 0; i < json.size();) {
    const auto c = static_cast<unsigned char>(json[i]);
    const size_t n = SequenceLength(json, i);
    if (n == 0) {
      out += kReplacement;
      changed = true;
      ++i;
    } else if (c < 0x20) {
      changed = changed || in_string;
      out.push_back(' ');
      ++i;
    } else {
      if (c == '\\' && i + 1 < json.size() && static_cast<unsigned char>(json[i + 1]) >= 0x20 &&
          SequenceLength(json, i + 1) == 1) {
        out.append(json, i, 2);
        i += 2;
        continue;
      }
      if (c == '"') in_string = !in_string;
      out.append(json, i, n);
      i += n;
    }
  }
  return changed;
}

std::string ReplaceInvalid(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t length = SequenceLength(text, i);
    if (length == 0) {
      out += kReplacement;
    } else {
      out.append(text, i, length);
    }
    i += std::max<size_t>(length, 1);
  }
  return out;
}

void Unescape(std::string_view inside, std::string& out) {
  static constexpr std::string_view kFrom = "\"\\/bfnrt";
  static constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
  for (size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] != '\\' || i + 1 == inside.size()) {
      out.push_back(inside[i]);
      continue;
    }
    const char c = inside[++i];
    if (c == 'u') {
      i += AppendUnicode(inside, i + 1, out);
    } else if (const size_t at = kFrom.find(c); at != std::string_view::npos) {
      out.push_back(kTo[at]);
    } else {
      out.push_back('\\');
      out.push_back(c);
    }
  }
}

std::string Snippet(std::string_view text) {
  std::string out(text.substr(0, kSnippet));
  for (char& c : out) {
    if (c < 0x20 || c == 0x7F) c = '?';  // also what is beyond ASCII, where char is signed
  }
  if (text.size() > kSnippet) out += "...";
  return out;
}

}  // namespace teller::ingest
