#pragma once

#include <optional>
#include <string_view>

#include "base/nanos.hpp"

namespace teller::ingest {

/// Decimal epoch time of unknown unit ("1795986612.5", "1795986612032", "1795986612032631000", also with an exponent)
/// to nanoseconds. Seconds, milliseconds, microseconds and nanoseconds of the same date differ by a factor of 1000, so
/// for dates from 1973 to 2096 the size of the number tells the unit. None when the text is no number, or no such date.
std::optional<base::Nanos> EpochFromDecimal(std::string_view text);

/// Seconds as a double, as engines state durations. None for NaN, negative ones and more than kMaxDuration.
std::optional<base::Nanos> DurationFromSeconds(double seconds);

/// Name of a file without its folders.
std::string_view FileName(std::string_view path);

/// Epoch time in the digits of a file's name ("metrics_1795986612.prom", "scrape-1795986612032631000.txt"): the only
/// run of 10, 13, 16 or 19 digits, when it is a date from 2001 to 2096. None otherwise.
std::optional<base::Nanos> EpochFromFileName(std::string_view path);

}  // namespace teller::ingest
