#include "ingest/common/epoch.hpp"

#include <charconv>
#include <cmath>
#include <string>

#include "ingest/common/decimal.hpp"

namespace teller::ingest {

namespace {

constexpr base::Nanos kEarliest =
    100'000'000 * base::kSecond;  // March 1973: below it seconds and ms cannot be told apart
constexpr base::Nanos kEarliestName = 1'000'000'000 * base::kSecond;  // September 2001: the first with ten digits
constexpr double kUnitStep = 1000;

/// Powers of ten that turn a number of this size into microseconds; none when it is no date in any unit.
std::optional<int> ToMicros(double value) {
  double top = 1e11;  // seconds; a thousand times as much in the next smaller unit
  for (const int exponent : {6, 3, 0, -3}) {
    if (value < top) return exponent;
    top *= kUnitStep;
  }
  return std::nullopt;
}

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace

std::optional<base::Nanos> EpochFromDecimal(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value > 0)) return std::nullopt;
  const auto shift = ToMicros(value);
  if (!shift) return std::nullopt;
  const size_t at = text.find_first_of("eE");
  int exponent = 0;
  if (at != std::string_view::npos) {
    std::string_view power = text.substr(at + 1);
    if (!power.empty() && power.front() == '+') power.remove_prefix(1);
    std::from_chars(power.data(), power.data() + power.size(), exponent);  // from_chars above has accepted it
    if (exponent < -1000 || exponent > 1000) return std::nullopt;
  }
  const std::string micros = std::string(text.substr(0, at)) + "e" + std::to_string(exponent + *shift);
  base::Nanos out = 0;
  if (ParseMicros(micros, out) != NumberFault::kNone || out < kEarliest) return std::nullopt;
  return out;
}

std::optional<base::Nanos> DurationFromSeconds(double seconds) {
  const double nanos = seconds * static_cast<double>(base::kSecond);
  if (!(nanos >= 0) || nanos > static_cast<double>(kMaxDuration)) return std::nullopt;
  return static_cast<base::Nanos>(std::llround(nanos));
}

std::string_view FileName(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::optional<base::Nanos> EpochFromFileName(std::string_view path) {
  const std::string_view name = FileName(path);
  std::optional<base::Nanos> found;
  for (size_t i = 0; i < name.size();) {
    if (!IsDigit(name[i])) {
      ++i;
      continue;
    }
    const size_t begin = i;
    while (i < name.size() && IsDigit(name[i])) ++i;
    const size_t length = i - begin;
    if (length != 10 && length != 13 && length != 16 && length != 19) continue;
    const auto at = EpochFromDecimal(name.substr(begin, length));
    if (!at || *at < kEarliestName) continue;
    if (found) return std::nullopt;
    found = at;
  }
  return found;
}

}  // namespace teller::ingest
