#include "trace/clock.hpp"

#include <algorithm>
#include <cmath>

namespace teller::trace {

namespace {

constexpr double kLargestShift = 4e18;  // fits into Nanos with room to round

Nanos Minus(Nanos a, Nanos b) {
  Nanos out = 0;
  if (!__builtin_sub_overflow(a, b, &out)) return out;
  return b > 0 ? INT64_MIN + 1 : INT64_MAX;  // the lowest value means "no time"
}

Nanos Plus(Nanos a, Nanos b) {
  Nanos out = 0;
  if (!__builtin_add_overflow(a, b, &out)) return out;
  return b > 0 ? INT64_MAX : INT64_MIN + 1;
}

}  // namespace

Nanos ProcessClock::ShiftAt(Nanos raw) const {
  const double gained = drift * static_cast<double>(Minus(raw, middle));
  return Plus(offset, std::llround(std::clamp(gained, -kLargestShift, kLargestShift)));
}

Nanos ProcessClock::ToReference(Nanos raw) const {
  if (raw == kNoTime) return raw;
  return std::max(Minus(raw, ShiftAt(raw)), INT64_MIN + 1);
}

Nanos PairError(const std::vector<ProcessClock>& clocks, ProcessRow a, ProcessRow b) {
  if (a == b) return 0;
  if (a.value() >= clocks.size() || b.value() >= clocks.size()) return kUnknownClock;
  const ProcessClock& one = clocks[a.value()];
  const ProcessClock& other = clocks[b.value()];
  if (!one.linked || !other.linked) return kUnknownClock;
  // Both errors are against the reference and can only share a part of it: the sum of squares is not too small.
  return static_cast<Nanos>(std::ceil(std::hypot(static_cast<double>(one.error), static_cast<double>(other.error))));
}

}  // namespace teller::trace
