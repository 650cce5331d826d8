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

}  // namespace teller::base
