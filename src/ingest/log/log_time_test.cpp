#include <gtest/gtest.h>

#include "ingest/log/log_reader.hpp"
#include "ingest/log/stamp.hpp"

namespace teller::ingest {
namespace {

using base::kMilli;
using base::kSecond;

constexpr trace::Nanos kNoon = 1'796'040'000LL * kSecond;  // 2026-11-30 12:00:00 UTC
static_assert(kNoon > 0);

trace::Store ReadAt(std::string_view text, trace::Nanos trace_begin, trace::Nanos trace_end) {
  trace::Store store;
  store.files.emplace_back();
  auto source = base::OpenMemory(text);
  EXPECT_TRUE(ReadLog(*source, trace::FileRow(0), store, {}).ok());
  if (trace_begin != trace::kNoTime) {
    store.spans.begin.push_back(trace_begin);
    store.spans.duration.push_back(trace_end - trace_begin);
  }
  return store;
}

std::string PlaceOf(const trace::Store& store, std::string_view code) {
  for (const auto& row : store.diagnostics.All()) {
    if (row.kind->code == code && !row.places.empty()) return row.places[0];
  }
  return {};
}

TEST(LogTime, TakesTheYearFromTheTracesAndSaysSo) {
  auto store = ReadAt("INFO 11-30 12:00:01 [a.py:1] x\n", kNoon, kNoon + 10 * kSecond);
  ResolveLogTimes(store);
  EXPECT_EQ(store.logs[0].at, kNoon + 1500 * kMilli);  // the middle of the second
  EXPECT_EQ(store.logs[0].at_error, 500 * kMilli);
  EXPECT_NE(PlaceOf(store, "log.year-chosen").find("2026"), std::string::npos);
}

TEST(LogTime, FindsTheZoneInWhichLogAndTraceOverlap) {
  auto store = ReadAt("INFO 11-30 17:30:01 [a.py:1] x\nINFO 11-30 17:30:09 [a.py:1] y\n", kNoon, kNoon + 10 * kSecond);
  ResolveLogTimes(store);
  EXPECT_EQ(store.logs[0].at, kNoon + 1500 * kMilli);
  EXPECT_NE(PlaceOf(store, "log.zone-chosen").find("UTC+5:30"), std::string::npos);
}

TEST(LogTime, CountsTheYearUpOverNewYear) {
  auto store = ReadAt("INFO 12-31 23:59:59 [a.py:1] x\nINFO 01-01 00:00:01 [a.py:1] y\n", log::BeginOfYear(2027),
                      log::BeginOfYear(2027) + 10 * kSecond);
  ResolveLogTimes(store);
  EXPECT_EQ(store.logs[0].at, log::BeginOfYear(2027) - 500 * kMilli);
  EXPECT_EQ(store.logs[1].at, log::BeginOfYear(2027) + 1500 * kMilli);
}

TEST(LogTime, CorrectsTheFractionOfC10ByNeighbours) {
  auto store = ReadAt(
      "2026-11-30 12:00:00,700 INFO a: x\n[W1130 12:00:00.012345678 socket.cpp:1] y\n2026-11-30 12:00:00,800 INFO a: "
      "z\n",
      kNoon, kNoon + kSecond);
  ResolveLogTimes(store);
  EXPECT_GE(store.logs[1].at, kNoon + 700 * kMilli);
  EXPECT_LE(store.logs[1].at, kNoon + 801 * kMilli);
  EXPECT_LE(store.logs[1].at_error, 51 * kMilli);
}

TEST(LogTime, LendsTheNeighboursTime) {
  auto store =
      ReadAt("2026-11-30T12:00:00.000Z INFO a: x\nINFO:     Shutting down\n2026-11-30T12:00:03.000Z INFO a: z\n",
             trace::kNoTime, 0);
  ResolveLogTimes(store);
  EXPECT_EQ(store.logs[1].basis, trace::TimeBasis::kNeighbour);
  EXPECT_EQ(store.logs[1].at, store.logs[0].at);
  EXPECT_EQ(store.logs[1].at_error, 3 * kSecond);
}

TEST(LogTime, TheErrorOfALentTimeNeverSpansHours) {
  auto store =
      ReadAt("2026-11-30T12:00:00.000Z INFO a: x\nINFO:     Shutting down\n2026-11-30T18:00:00.000Z INFO a: z\n",
             trace::kNoTime, 0);
  ResolveLogTimes(store);
  EXPECT_EQ(store.logs[1].at, store.logs[0].at);
  EXPECT_EQ(store.logs[1].at_error, 60 * kSecond);
  EXPECT_EQ(store.diagnostics.Count("log.neighbours-far"), 1u);
}

TEST(LogTime, ASpanThatIsNoEpochTimeDoesNotHideTheOthers) {
  for (const trace::Nanos stray : {trace::Nanos(0), trace::Nanos(5), 900'000'000 * kSecond}) {
    for (const bool first : {true, false}) {
      auto store = ReadAt("INFO 11-30 17:30:01 [a.py:1] x\n", kNoon, kNoon + 10 * kSecond);
      store.spans.begin.insert(first ? store.spans.begin.begin() : store.spans.begin.end(), stray);
      store.spans.duration.insert(first ? store.spans.duration.begin() : store.spans.duration.end(), 1);
      ResolveLogTimes(store);
      EXPECT_EQ(store.logs[0].at, kNoon + 1500 * kMilli);
      EXPECT_EQ(store.diagnostics.Count("log.span-no-epoch"), 1u);
    }
  }
}

TEST(LogTime, ArrivalTimesWin) {
  auto store =
      ReadAt("0.02.074.554 I slot launch_slot_: id  3\n\tcontinued\n0.02.074.999 I srv x: y\n", kNoon, kNoon + kSecond);
  store.files.emplace_back();
  auto arrivals = base::OpenMemory("1796040000000000001\n1796040000000000002\nabc\n");
  ASSERT_TRUE(ReadLogArrivals(*arrivals, trace::FileRow(1), trace::FileRow(0), store).ok());
  ResolveLogTimes(store);
  EXPECT_EQ(store.logs[0].at, 1'796'040'000'000'000'001);
  EXPECT_EQ(store.logs[0].basis, trace::TimeBasis::kArrival);
  EXPECT_EQ(store.logs[1].basis, trace::TimeBasis::kNeighbour);
  EXPECT_EQ(store.diagnostics.Count("log.arrival-bad"), 1u);
}

TEST(LogTime, WithoutAnAnchorARelativeClockGivesNoTime) {
  auto store = ReadAt("0.02.074.554 I slot launch_slot_: id  3\n", kNoon, kNoon + kSecond);
  ResolveLogTimes(store);
  EXPECT_EQ(store.logs[0].at, trace::kNoTime);
  EXPECT_EQ(store.diagnostics.Count("log.no-anchor"), 1u);
}

TEST(LogTime, KnowsTheCalendar) {
  EXPECT_EQ(log::DaysFromCivil(1970, 1, 1), 0);
  EXPECT_EQ(log::DaysFromCivil(2000, 3, 1), 11017);
  EXPECT_EQ(log::YearOf(log::BeginOfYear(2026)), 2026);
  EXPECT_EQ(log::YearOf(log::BeginOfYear(2026) - 1), 2025);
}

}  // namespace
}  // namespace teller::ingest
