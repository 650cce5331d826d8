#include "report/units.hpp"

#include <gtest/gtest.h>

namespace teller::report {
namespace {

TEST(Duration, HasThreeDigitsAndAUnit) {
  EXPECT_EQ(Duration(0), "0 ns");
  EXPECT_EQ(Duration(980), "980 ns");
  EXPECT_EQ(Duration(1'500), "1.50 us");
  EXPECT_EQ(Duration(41'230'000), "41.2 ms");
  EXPECT_EQ(Duration(999'600'000), "1.00 s");
  EXPECT_EQ(Duration(72 * base::kSecond), "1 m 12 s");
  EXPECT_EQ(Duration(3 * 3600 * base::kSecond + 5 * 60 * base::kSecond), "3 h 5 m");
  EXPECT_EQ(Duration(-2'000), "-2.00 us");
  EXPECT_EQ(Duration(base::kNoTime), "unknown");
}

TEST(Time, IsUtcForAnEpochAndSecondsOtherwise) {
  EXPECT_EQ(Time(1'700'000'000'123'456'789), "2023-11-14 22:13:20.123");
  EXPECT_EQ(TimeOfDay(1'700'000'000'123'456'789), "22:13:20.123");
  EXPECT_EQ(Time(12'345'678'000), "t+12.345678 s");
  EXPECT_EQ(Time(base::kNoTime), "unknown");
}

TEST(Count, SeparatesThousands) {
  EXPECT_EQ(Count(7), "7");
  EXPECT_EQ(Count(1234567), "1,234,567");
  EXPECT_EQ(Count(1, "rank"), "1 rank");
  EXPECT_EQ(Count(1000, "span"), "1,000 spans");
}

TEST(Bytes, HasBinaryUnits) {
  EXPECT_EQ(Bytes(1023), "1023 B");
  EXPECT_EQ(Bytes(1536), "1.50 KiB");
  EXPECT_EQ(Bytes(3ull << 30), "3.00 GiB");
}

}  // namespace
}  // namespace teller::report
