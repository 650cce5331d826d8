#pragma once

#include <cstdint>
#include <limits>

namespace teller::base {

/// Nanoseconds on the trace clock (CLOCK_REALTIME epoch unless the store says otherwise), or a duration.
using Nanos = int64_t;

/// "No time known".
inline constexpr Nanos kNoTime = std::numeric_limits<Nanos>::min();

inline constexpr Nanos kMicro = 1'000;
inline constexpr Nanos kMilli = 1'000'000;
inline constexpr Nanos kSecond = 1'000'000'000;

/// a - b, or the nearest value where that does not fit (never kNoTime).
inline Nanos Minus(Nanos a, Nanos b) {
  Nanos out = 0;
  return __builtin_sub_overflow(a, b, &out)
             ? (b > 0 ? std::numeric_limits<Nanos>::min() + 1 : std::numeric_limits<Nanos>::max())
             : out;
}

}  // namespace teller::base
