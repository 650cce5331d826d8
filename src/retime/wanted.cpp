#include <array>
#include <charconv>
#include <cmath>

#include "retime/what_if.hpp"

namespace teller::retime {

namespace {

struct Unit {
  std::string_view name;
  double ns;
};
constexpr std::array<Unit, 5> kUnits = {{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 6e10}}};

/// Longest time that can be asked for: a day.
constexpr double kMostNanos = 86'400e9;
constexpr double kMostFactor = 1e6;

}  // namespace

base::Result<Wanted> ParseWanted(const std::string& text) {
  Wanted wanted;
  if (text == "normal") return wanted;
  const base::Error wrong{
      base::Code::kUsage,
      "\"" + text + "\" is no time to change to: give \"normal\", a factor as 0.5x, or a duration as 200us"};
  double number = 0;
  const char* last = text.data() + text.size();
  auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc() || !std::isfinite(number) || number < 0) return wrong;
  while (end != last && *end == ' ') ++end;
  const std::string_view unit(end, last);
  if (unit == "x") {
    if (number > kMostFactor) return wrong;
    wanted.kind = Wanted::Kind::kFactor;
    wanted.factor = number;
    return wanted;
  }
  for (const Unit& known : kUnits) {
    if (unit != known.name) continue;
    if (number * known.ns > kMostNanos) return wrong;
    wanted.kind = Wanted::Kind::kDuration;
    wanted.duration = static_cast<trace::Nanos>(number * known.ns);
    return wanted;
  }
  return wrong;
}

}  // namespace teller::retime
