#include "report/units.hpp"

#include <fmt/format.h>

#include <ctime>

namespace teller::report {

using base::kSecond;
using base::Nanos;

namespace {

/// Three significant digits, without an exponent.
std::string ThreeDigits(double value) {
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f}", value, decimals);
}

}  // namespace

std::string Duration(Nanos ns) {
  if (ns == base::kNoTime) return "unknown";
  if (ns < 0) return "-" + Duration(-ns);
  const double value = static_cast<double>(ns);
  if (ns < 1'000) return fmt::format("{} ns", ns);
  if (ns < 999'500) return ThreeDigits(value / 1e3) + " us";
  if (ns < 999'500'000) return ThreeDigits(value / 1e6) + " ms";
  if (ns < 60 * kSecond) return ThreeDigits(value / 1e9) + " s";
  const int64_t seconds = (ns + kSecond / 2) / kSecond;
  if (seconds < 3600) return fmt::format("{} m {} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {} m", seconds / 3600, seconds / 60 % 60);
}

bool IsEpoch(Nanos at) {
  return at >= 1'000'000'000 * kSecond;
}

std::string Time(Nanos at) {
  if (at == base::kNoTime) return "unknown";
  if (!IsEpoch(at)) return fmt::format("t{:+.6f} s", static_cast<double>(at) / 1e9);
  const std::time_t seconds = at / kSecond;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:03}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                     utc.tm_hour, utc.tm_min, utc.tm_sec, at % kSecond / base::kMilli);
}

std::string TimeOfDay(Nanos at) {
  const std::string text = Time(at);
  return at != base::kNoTime && IsEpoch(at) ? text.substr(11) : text;
}

std::string Count(uint64_t n) {
  std::string digits = std::to_string(n);
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string Count(uint64_t n, const char* noun) {
  return Count(n) + " " + noun + (n == 1 ? "" : "s");
}

std::string Bytes(uint64_t n) {
  if (n < 1024) return fmt::format("{} B", n);
  const char* const units[] = {"KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(n) / 1024;
  size_t unit = 0;
  for (; value >= 1024 && unit < 3; ++unit) value /= 1024;
  return ThreeDigits(value) + " " + units[unit];
}

}  // namespace teller::report
