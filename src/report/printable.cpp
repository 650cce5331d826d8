#include "report/printable.hpp"

#include <fmt/format.h>

#include <cstdint>

namespace teller::report {

namespace {

/// One decoded character; `code` is kInvalid for a byte that is no UTF-8 (then bytes is 1).
struct Character {
  uint32_t code = 0;
  size_t bytes = 1;
};
constexpr uint32_t kInvalid = 0xFFFFFFFFu;
constexpr std::string_view kEllipsis = "…";

Character Decode(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[at + i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const size_t n = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || at + n > text.size()) return {kInvalid, 1};
  uint32_t code = first & (0x7Fu >> n);
  for (size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {kInvalid, 1};
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  // Overlong forms, surrogates and codes beyond Unicode are no characters.
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kSmallest[n] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return {kInvalid, 1};
  return {code, n};
}

/// Characters that move the cursor, reorder or hide text.
bool IsUnsafe(uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0xAD || (code >= 0x200B && code <= 0x200F) ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2060 && code <= 0x206F) || code == 0xFEFF ||
         (code >= 0xE0000 && code <= 0xE0FFF);
}

size_t Width(uint32_t code) {
  const bool wide = (code >= 0x1100 && code <= 0x115F) || (code >= 0x2E80 && code <= 0xA4CF) ||
                    (code >= 0xAC00 && code <= 0xD7A3) || (code >= 0xF900 && code <= 0xFAFF) ||
                    (code >= 0xFE30 && code <= 0xFE6F) || (code >= 0xFF00 && code <= 0xFF60) ||
                    (code >= 0x1F300 && code <= 0x1FAFF) || (code >= 0x20000 && code <= 0x3FFFD);
  return wide ? 2 : 1;
}

std::string ShowOne(std::string_view text, size_t at, Character c) {
  if (c.code == '\n' || c.code == '\t' || c.code == '\r') return " ";
  if (c.code == kInvalid || c.code < 0x80) return fmt::format("\\x{:02x}", static_cast<uint8_t>(text[at]));
  return fmt::format("\\u{{{:04x}}}", c.code);
}

}  // namespace

std::string Printable(std::string_view text, size_t max_columns) {
  std::string out;
  size_t columns = 0;
  size_t fits = 0;  // bytes of `out` that leave room for the ellipsis
  for (size_t at = 0; at < text.size();) {
    const Character c = Decode(text, at);
    const bool plain = c.code != kInvalid && !IsUnsafe(c.code);
    const std::string shown = plain ? std::string(text.substr(at, c.bytes)) : ShowOne(text, at, c);
    columns += plain ? Width(c.code) : shown.size();
    if (max_columns != 0 && columns > max_columns) {
      out.resize(fits);
      return out.append(kEllipsis);
    }
    out += shown;
    if (columns < max_columns) fits = out.size();
    at += c.bytes;
  }
  return out;
}

size_t Columns(std::string_view text) {
  size_t columns = 0;
  for (size_t at = 0; at < text.size();) {
    const Character c = Decode(text, at);
    columns += c.code == kInvalid ? 1 : Width(c.code);
    at += c.bytes;
  }
  return columns;
}

std::string ValidUtf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Character c = Decode(text, at);
    if (c.code == kInvalid) {
      out += "\xEF\xBF\xBD";
    } else {
      out += text.substr(at, c.bytes);
    }
    at += c.bytes;
  }
  return out;
}

std::string Shortened(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  size_t end = max_bytes;
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)).append(kEllipsis);
}

}  // namespace teller::report
