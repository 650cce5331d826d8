#include "ingest/log/duration_text.hpp"

#include <array>
#include <charconv>
#include <string>

#include "ingest/common/decimal.hpp"
#include "ingest/log/cursor.hpp"

namespace teller::ingest::log {

namespace {

constexpr size_t kLongest = 48;  // more than any float or duration is printed with

/// "12.5" times ten to the power of `exponent`, in nanoseconds.
std::optional<base::Nanos> Scaled(std::string_view digits, int exponent) {
  // The reader of microseconds does the exact work: a microsecond is ten to the third nanoseconds.
  std::string text(digits);
  text += 'e';
  text += std::to_string(exponent - 3);
  base::Nanos out = 0;
  if (ParseMicros(text, out) != NumberFault::kNone) return std::nullopt;
  return out;
}

}  // namespace

std::optional<base::Nanos> ParseSeconds(std::string_view text) {
  if (text.empty() || text.size() > kLongest) return std::nullopt;
  int exponent = 0;
  const size_t e = text.find_first_of("eE");
  if (e != std::string_view::npos) {
    std::string_view power = text.substr(e + 1);
    if (!power.empty() && power.front() == '+') power.remove_prefix(1);
    const auto [end, error] = std::from_chars(power.data(), power.data() + power.size(), exponent);
    if (error != std::errc() || end != power.data() + power.size() || exponent > 18 || exponent < -400)
      return std::nullopt;
    text = text.substr(0, e);
  }
  return Scaled(text, exponent + 9);
}

std::optional<base::Nanos> ParseRustDuration(std::string_view text) {
  struct Unit {
    std::string_view name;
    int exponent;
  };
  // Longer names first: "ms" ends in "s" too.
  static constexpr std::array<Unit, 6> kUnits = {Unit{"ns", 0}, {"\xc2\xb5s", 3}, {"\xce\xbcs", 3},
                                                 {"us", 3},     {"ms", 6},        {"s", 9}};
  if (text.empty() || text.size() > kLongest || !IsDigit(text.front())) return std::nullopt;
  for (const auto& unit : kUnits) {
    if (EndsWith(text, unit.name)) return Scaled(text.substr(0, text.size() - unit.name.size()), unit.exponent);
  }
  return std::nullopt;
}

}  // namespace teller::ingest::log
