#pragma once

#include <cstdint>
#include <string>

#include "base/nanos.hpp"

namespace teller::report {

/// A duration with three digits and its unit: "41.2 ms", "980 ns", "1 m 12 s".
std::string Duration(base::Nanos ns);

/// A point on the trace clock as UTC, "2026-01-31 12:00:00.123"; seconds ("t+12.345 s") where the clock is no epoch.
std::string Time(base::Nanos at);
/// The same without the date.
std::string TimeOfDay(base::Nanos at);
/// True when `at` can be a point since 1970 (later than 2001) and not since boot.
bool IsEpoch(base::Nanos at);

/// 1234567 as "1,234,567".
std::string Count(uint64_t n);
/// "1 rank", "2 ranks".
std::string Count(uint64_t n, const char* noun);
/// Bytes with a binary unit: "12.3 MiB".
std::string Bytes(uint64_t n);

}  // namespace teller::report
