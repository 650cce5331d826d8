#include "ingest/log/stamp.hpp"

#include <array>

#include "base/nanos.hpp"

namespace teller::ingest::log {

namespace {

using base::kMicro;
using base::kMilli;
using base::kSecond;

constexpr trace::Nanos kDay = 86'400 * kSecond;
constexpr int64_t kYearForOpen = 1972;  // leap year: 02-29 exists

struct TimeOfDay {
  trace::Nanos ns = 0;
  trace::Nanos error = kSecond / 2;
};

/// Digits after . or , as nanoseconds; more than nine are cut.
bool ReadFraction(Cursor& c, TimeOfDay& time) {
  if ((c.peek() != '.' && c.peek() != ',') || !IsDigit(c.peek(1))) return false;
  c.Eat(c.peek());
  trace::Nanos unit = kSecond;
  trace::Nanos value = 0;
  while (IsDigit(c.peek())) {
    if (unit > 1) {
      unit /= 10;
      value += (c.peek() - '0') * unit;
    }
    c.Eat(c.peek());
  }
  time.ns += value;
  time.error = unit / 2;
  return true;
}

/// HH:MM:SS with optional fraction.
bool ReadClock(Cursor& cursor, TimeOfDay& time) {
  Cursor c = cursor;
  int64_t h = 0;
  int64_t m = 0;
  int64_t s = 0;
  if (!c.Number(2, 2, h) || !c.Eat(':') || !c.Number(2, 2, m) || !c.Eat(':') || !c.Number(2, 2, s)) return false;
  if (h > 23 || m > 59 || s > 60) return false;
  time.ns = ((h * 60 + m) * 60 + s) * kSecond;
  ReadFraction(c, time);
  cursor = c;
  return true;
}

bool ValidDate(int64_t year, int64_t month, int64_t day) {
  return year >= 1970 && year <= 2200 && month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

void Set(Stamp& stamp, int64_t year, int64_t month, int64_t day, const TimeOfDay& time, uint8_t open) {
  stamp.present = true;
  stamp.at = DaysFromCivil(year, month, day) * kDay + time.ns;
  stamp.error = time.error;
  stamp.open = open;
}

/// "Z", "+00:00", "+0000", "-07"; false when no zone is written.
bool ReadZone(Cursor& cursor, trace::Nanos& offset) {
  Cursor c = cursor;
  if (c.Eat('Z')) {
    offset = 0;
    cursor = c;
    return true;
  }
  const char sign = c.peek();
  if (sign != '+' && sign != '-') return false;
  c.Eat(sign);
  int64_t h = 0;
  int64_t m = 0;
  if (c.Number(4, 4, h)) {
    m = h % 100;
    h /= 100;
  } else if (c.Number(2, 2, h)) {
    if (c.Eat(':') && !c.Number(2, 2, m)) return false;
  } else {
    return false;
  }
  if (h > 14 || m > 59) return false;
  offset = (h * 60 + m) * 60 * kSecond * (sign == '-' ? -1 : 1);
  cursor = c;
  return true;
}

bool ReadMonthName(Cursor& cursor, int64_t& month) {
  static constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                               "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  for (size_t i = 0; i < kMonths.size(); ++i) {
    if (cursor.Eat(kMonths[i])) {
      month = static_cast<int64_t>(i) + 1;
      return true;
    }
  }
  return false;
}

}  // namespace

int64_t DaysFromCivil(int64_t year, int64_t month, int64_t day) {
  // Source: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms": years begin in March.
  year -= month <= 2 ? 1 : 0;
  const int64_t era = (year >= 0 ? year : year - 399) / 400;
  const int64_t yoe = year - era * 400;
  const int64_t doy = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const int64_t doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
  return era * 146097 + doe - 719468;
}

trace::Nanos BeginOfYear(int64_t year) {
  return DaysFromCivil(year, 1, 1) * kDay;
}

int64_t YearOf(trace::Nanos at) {
  int64_t year = 1970 + at / (kDay * 366);
  while (BeginOfYear(year + 1) <= at) ++year;
  while (BeginOfYear(year) > at) --year;
  return year;
}

bool ReadDateTime(Cursor& cursor, Stamp& stamp) {
  Cursor c = cursor;
  int64_t year = 0;
  int64_t month = 0;
  int64_t day = 0;
  if (!c.Number(4, 4, year)) return false;
  const char between = c.peek();
  if (between != '-' && between != '/') return false;
  if (!c.Eat(between) || !c.Number(2, 2, month) || !c.Eat(between) || !c.Number(2, 2, day)) return false;
  if (!c.Eat(' ') && !c.Eat('T')) return false;
  c.SkipSpaces();
  TimeOfDay time;
  if (!ValidDate(year, month, day) || !ReadClock(c, time)) return false;
  trace::Nanos offset = 0;
  const bool zone = ReadZone(c, offset);
  Set(stamp, year, month, day, time, zone ? trace::kNothingOpen : trace::kZoneOpen);
  stamp.at -= offset;
  cursor = c;
  return true;
}

bool ReadMonthDayTime(Cursor& cursor, Stamp& stamp) {
  Cursor c = cursor;
  int64_t month = 0;
  int64_t day = 0;
  TimeOfDay time;
  if (!c.Number(2, 2, month) || !c.Eat('-') || !c.Number(2, 2, day) || !c.Eat(' ')) return false;
  if (!ValidDate(kYearForOpen, month, day) || !ReadClock(c, time)) return false;
  Set(stamp, kYearForOpen, month, day, time, trace::kYearOpen | trace::kZoneOpen);
  cursor = c;
  return true;
}

bool ReadUsDateTime(Cursor& cursor, Stamp& stamp) {
  Cursor c = cursor;
  int64_t month = 0;
  int64_t day = 0;
  int64_t year = 0;
  TimeOfDay time;
  if (!c.Number(2, 2, month) || !c.Eat('/') || !c.Number(2, 2, day) || !c.Eat('/') || !c.Number(4, 4, year))
    return false;
  if ((!c.Eat('-') && !c.Eat(' ')) || !ValidDate(year, month, day) || !ReadClock(c, time)) return false;
  Set(stamp, year, month, day, time, trace::kZoneOpen);
  cursor = c;
  return true;
}

bool ReadTimeOfDay(Cursor& cursor, Stamp& stamp) {
  TimeOfDay time;
  if (!ReadClock(cursor, time)) return false;
  Set(stamp, 1970, 1, 1, time, trace::kDateOpen | trace::kZoneOpen);
  return true;
}

bool ReadGlogTime(Cursor& cursor, Stamp& stamp) {
  Cursor c = cursor;
  int64_t date = 0;
  TimeOfDay time;
  if (!c.Number(3, 8, date) || !c.Eat(' ') || !ReadClock(c, time)) return false;
  int64_t year = kYearForOpen;
  uint8_t open = trace::kYearOpen | trace::kZoneOpen;
  if (date > 9999) {
    year = date / 10000;
    open = trace::kZoneOpen;
  }
  const int64_t month = date / 100 % 100;
  if (!ValidDate(year, month, date % 100)) return false;
  Set(stamp, year, month, date % 100, time, open);
  cursor = c;
  return true;
}

bool ReadMonthNameTime(Cursor& cursor, Stamp& stamp) {
  Cursor c = cursor;
  int64_t month = 0;
  int64_t day = 0;
  int64_t year = kYearForOpen;
  TimeOfDay time;
  if (!ReadMonthName(c, month)) return false;
  c.SkipSpaces();
  if (!c.Number(1, 2, day) || !c.Eat(' ')) return false;
  uint8_t open = trace::kZoneOpen;
  if (!(c.Number(4, 4, year) && c.Eat(' '))) {
    year = kYearForOpen;
    open |= trace::kYearOpen;
  }
  if (!ValidDate(year, month, day) || !ReadClock(c, time)) return false;
  Set(stamp, year, month, day, time, open);
  cursor = c;
  return true;
}

bool ReadCtime(Cursor& cursor, Stamp& stamp) {
  Cursor c = cursor;
  if (c.Word().size() != 3 || !c.Eat(' ')) return false;
  int64_t month = 0;
  int64_t day = 0;
  int64_t year = 0;
  TimeOfDay time;
  if (!ReadMonthName(c, month)) return false;
  c.SkipSpaces();
  if (!c.Number(1, 2, day) || !c.Eat(' ') || !ReadClock(c, time) || !c.Eat(' ') || !c.Number(4, 4, year)) return false;
  if (!ValidDate(year, month, day)) return false;
  Set(stamp, year, month, day, time, trace::kZoneOpen);
  cursor = c;
  return true;
}

bool ReadMonthDayMinute(Cursor& cursor, Stamp& stamp) {
  Cursor c = cursor;
  int64_t month = 0;
  int64_t day = 0;
  int64_t hour = 0;
  int64_t minute = 0;
  if (!ReadMonthName(c, month) || !c.Number(2, 2, day) || !c.Eat(' ') || !c.Number(2, 2, hour) || !c.Eat(':') ||
      !c.Number(2, 2, minute) || hour > 23 || minute > 59 || !ValidDate(kYearForOpen, month, day)) {
    return false;
  }
  Set(stamp, kYearForOpen, month, day, {.ns = (hour * 60 + minute) * 60 * kSecond, .error = 30 * kSecond},
      trace::kZoneOpen | trace::kYearOpen);
  cursor = c;
  return true;
}

bool ReadSecondsSinceStart(Cursor& cursor, Stamp& stamp) {
  Cursor c = cursor;
  int64_t seconds = 0;
  if (!c.Number(1, 9, seconds) || c.peek() != '.') return false;
  TimeOfDay time;
  time.ns = seconds * kSecond;
  if (!ReadFraction(c, time)) return false;
  stamp = {.present = true, .at = time.ns, .error = time.error, .open = trace::kStartOpen};
  cursor = c;
  return true;
}

bool ReadMinuteDots(Cursor& cursor, Stamp& stamp) {
  Cursor c = cursor;
  int64_t minutes = 0;
  int64_t seconds = 0;
  int64_t ms = 0;
  int64_t us = 0;
  if (!c.Number(1, 7, minutes) || !c.Eat('.') || !c.Number(2, 2, seconds) || !c.Eat('.') || !c.Number(3, 3, ms) ||
      !c.Eat('.') || !c.Number(3, 3, us)) {
    return false;
  }
  stamp.present = true;
  stamp.at = (minutes * 60 + seconds) * kSecond + ms * kMilli + us * kMicro;
  stamp.error = kMicro / 2;
  stamp.open = trace::kStartOpen;
  cursor = c;
  return true;
}

}  // namespace teller::ingest::log
