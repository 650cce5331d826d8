#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/nanos.hpp"

namespace teller::ingest {

/// Largest magnitude of a time or duration that is believed: sums of two stay inside int64 (the year 2096).
inline constexpr base::Nanos kMaxNanos = 4'000'000'000'000'000'000;

/// Earliest time that is believed. Files that count from a start of their own may begin a little before it; anything
/// else lies after 1970.
inline constexpr base::Nanos kMinNanos = -86'400 * base::kSecond;

/// Longest duration of one span that is believed: 30 days.
inline constexpr base::Nanos kMaxDuration = 30 * 86'400 * base::kSecond;

/// What became of a number's text.
enum class NumberFault : uint8_t { kNone = 0, kNotANumber = 1, kTooLarge = 2 };

/// Decimal microseconds ("1795984843700369.092", also with an exponent) to nanoseconds, without floating point.
/// A digit below one nanosecond rounds half away from zero.
/// Errors: kNotANumber (also NaN, Infinity, quoted text), kTooLarge (beyond kMaxNanos; `out` is clamped).
NumberFault ParseMicros(std::string_view text, base::Nanos& out);

/// Decimal integer that fits int64; a fraction of zeros is allowed ("7.0").
std::optional<int64_t> ParseInteger(std::string_view text);

/// Id as Kineto and Chrome write it: decimal, or hexadecimal with 0x. Texts that are neither are hashed, so that equal
/// ids stay equal.
uint64_t ParseId(std::string_view text);

}  // namespace teller::ingest
