#pragma once

#include <cstdint>

#include "ingest/log/cursor.hpp"
#include "trace/log_record.hpp"

namespace teller::ingest::log {

/// A time as a line states it. Only what was written is set.
struct Stamp {
  bool present = false;
  trace::Nanos at = 0;     ///< UTC if `open` lacks kZoneOpen; see StampGap for what stands for open parts
  trace::Nanos error = 0;  ///< half width of what the digits leave open
  uint8_t open = trace::kNothingOpen;
  bool since_previous = false;  ///< `at` is the time since the record before, whose stamp counts
};

/// Days since 1970-01-01 of a proleptic Gregorian date.
int64_t DaysFromCivil(int64_t year, int64_t month, int64_t day);
/// Year of a time, and nanoseconds of the first instant of a year, both in UTC.
int64_t YearOf(trace::Nanos at);
trace::Nanos BeginOfYear(int64_t year);

/// Each reads one form at the cursor and moves past it, or leaves the cursor and returns false.
/// "2026-11-29 20:25:33,798", "2026-11-29T20:25:09.820Z", "2025-01-17T17:10:43+0000", also with / in the date.
bool ReadDateTime(Cursor& cursor, Stamp& stamp);
/// "11-29 19:49:57"
bool ReadMonthDayTime(Cursor& cursor, Stamp& stamp);
/// "11/29/2026-19:49:57"
bool ReadUsDateTime(Cursor& cursor, Stamp& stamp);
/// "07:25:31", optionally with a fraction
bool ReadTimeOfDay(Cursor& cursor, Stamp& stamp);
/// "1129 21:13:10.693000", "822 16:06:04.53", "20261129 ..." (c10, glog, klog), after the level letter
bool ReadGlogTime(Cursor& cursor, Stamp& stamp);
/// "Sun Feb 23 16:24:18 2025"
bool ReadCtime(Cursor& cursor, Stamp& stamp);
/// "Feb 14 05:03:41" (syslog) or "Dec 18 2024 20:50:46"
bool ReadMonthNameTime(Cursor& cursor, Stamp& stamp);
/// "Nov30 12:21": the minute (dmesg --reltime)
bool ReadMonthDayMinute(Cursor& cursor, Stamp& stamp);
/// "1843.308145": seconds since boot
bool ReadSecondsSinceStart(Cursor& cursor, Stamp& stamp);
/// "0.35.412.409": minutes, seconds, milliseconds, microseconds since start
bool ReadMinuteDots(Cursor& cursor, Stamp& stamp);

}  // namespace teller::ingest::log
