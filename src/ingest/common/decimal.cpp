#include "ingest/common/decimal.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace teller::ingest {

namespace {

constexpr bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

/// Digits with a decimal exponent: value = digits * 10^exponent.
struct Scaled {
  uint64_t digits = 0;
  int exponent = 0;
  bool negative = false;
};

constexpr uint64_t kDigitsFull = 1'000'000'000'000'000'000ULL;  // one more digit still fits 64 bits

/// Splits the text; digits beyond 19 significant ones only move the exponent.
bool Scan(std::string_view text, Scaled& out) {
  size_t i = 0;
  if (i < text.size() && text[i] == '-') {
    out.negative = true;
    ++i;
  }
  size_t seen = 0;
  for (; i < text.size() && IsDigit(text[i]); ++i, ++seen) {
    if (out.digits < kDigitsFull) {
      out.digits = out.digits * 10 + static_cast<uint64_t>(text[i] - '0');
    } else {
      ++out.exponent;
    }
  }
  if (seen == 0) return false;
  if (i < text.size() && text[i] == '.') {
    ++i;
    const size_t fraction = i;
    for (; i < text.size() && IsDigit(text[i]); ++i) {
      if (out.digits < kDigitsFull) {
        out.digits = out.digits * 10 + static_cast<uint64_t>(text[i] - '0');
        --out.exponent;
      }
    }
    if (i == fraction) return false;
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && text[i] == '+') ++i;
    int exponent = 0;
    const auto [end, error] = std::from_chars(text.data() + i, text.data() + text.size(), exponent);
    if (error != std::errc()) return false;
    out.exponent += std::clamp(exponent, -1000, 1000);
    i = static_cast<size_t>(end - text.data());
  }
  return i == text.size();
}

/// Value of eight digits at `p`, or nothing when one of them is none. Eight at a time: times are most of a trace's
/// text.
std::optional<uint32_t> EightDigits(const char* p) {
  uint64_t chunk;
  std::memcpy(&chunk, p, 8);
  const uint64_t high_nibbles = chunk & 0xF0F0F0F0F0F0F0F0ULL;
  const uint64_t carried = (chunk + 0x0606060606060606ULL) & 0xF0F0F0F0F0F0F0F0ULL;  // above '9' the nibble changes
  if (high_nibbles != 0x3030303030303030ULL || carried != 0x3030303030303030ULL) return std::nullopt;
  chunk -= 0x3030303030303030ULL;
  chunk = chunk * 10 + (chunk >> 8);  // pairs, then fours, then all eight
  return static_cast<uint32_t>(((chunk & 0x000000FF000000FFULL) * 0x000F424000000064ULL +
                                ((chunk >> 16) & 0x000000FF000000FFULL) * 0x0000271000000001ULL) >>
                               32);
}

/// Appends the digits of `text` to `value`.
bool AppendDigits(std::string_view text, uint64_t& value) {
  while (text.size() >= 8) {
    const auto eight = EightDigits(text.data());
    if (!eight) return false;
    value = value * 100'000'000 + *eight;
    text.remove_prefix(8);
  }
  for (const char c : text) {
    if (!IsDigit(c)) return false;
    value = value * 10 + static_cast<uint64_t>(c - '0');
  }
  return true;
}

/// The usual shape: up to 16 digits, a dot, up to 3 digits; nothing else.
bool ScanPlain(std::string_view text, base::Nanos& out) {
  static constexpr uint64_t kScale[] = {1000, 100, 10, 1};
  size_t fraction = 0;
  for (size_t n = 2; n <= 4 && n < text.size(); ++n) {
    if (text[text.size() - n] == '.') fraction = n - 1;
  }
  const size_t whole = fraction > 0 ? text.size() - fraction - 1 : text.size();
  if (whole == 0 || whole > 16) return false;
  uint64_t value = 0;
  if (!AppendDigits(text.substr(0, whole), value)) return false;
  if (fraction > 0 && !AppendDigits(text.substr(whole + 1), value)) return false;
  value *= kScale[fraction];  // below 1e19: fits
  out = static_cast<base::Nanos>(value);
  return value <= static_cast<uint64_t>(kMaxNanos);
}

}  // namespace

NumberFault ParseMicros(std::string_view text, base::Nanos& out) {
  if (text.size() <= 20 && ScanPlain(text, out)) return NumberFault::kNone;
  Scaled scaled;
  if (!Scan(text, scaled)) return NumberFault::kNotANumber;
  int exponent = scaled.exponent + 3;  // microseconds to nanoseconds
  uint64_t value = scaled.digits;
  while (exponent < 0 && value > 0) {
    const bool last = exponent == -1;
    value = last ? (value + 5) / 10 : value / 10;
    ++exponent;
  }
  const auto limit = static_cast<uint64_t>(kMaxNanos);
  while (exponent > 0 && value > 0 && value <= limit / 10) {
    value *= 10;
    --exponent;
  }
  const bool too_large = value > limit || (exponent > 0 && value > 0);
  const auto magnitude = static_cast<base::Nanos>(std::min(value, limit));
  out = scaled.negative ? -magnitude : magnitude;
  if (too_large) {
    out = scaled.negative ? -kMaxNanos : kMaxNanos;
    return NumberFault::kTooLarge;
  }
  return NumberFault::kNone;
}

std::optional<int64_t> ParseInteger(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  std::string_view rest = text.substr(static_cast<size_t>(end - text.data()));
  if (!rest.empty()) {
    if (rest.front() != '.') return std::nullopt;
    rest.remove_prefix(1);
    if (rest.empty() || rest.find_first_not_of('0') != std::string_view::npos) return std::nullopt;
  }
  return value;
}

uint64_t ParseId(std::string_view text) {
  const bool hex = text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
  const std::string_view digits = hex ? text.substr(2) : text;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, hex ? 16 : 10);
  if (error == std::errc() && end == digits.data() + digits.size()) return value;
  uint64_t hash = 0xCBF29CE484222325ULL;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return hash;
}

}  // namespace teller::ingest
