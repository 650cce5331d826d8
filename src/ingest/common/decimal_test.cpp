#include "ingest/common/decimal.hpp"

#include <gtest/gtest.h>

#include <string>

namespace teller::ingest {
namespace {

base::Nanos Micros(std::string_view text) {
  base::Nanos out = 0;
  EXPECT_EQ(ParseMicros(text, out), NumberFault::kNone) << text;
  return out;
}

TEST(ParseMicros, KeepsEveryNanosecondOfEpochTimes) {
  EXPECT_EQ(Micros("1795984843700369.092"), 1795984843700369092);
  EXPECT_EQ(Micros("1795984843700369"), 1795984843700369000);
  EXPECT_EQ(Micros("5129590706927.034"), 5129590706927034);
  EXPECT_EQ(Micros("0.5"), 500);
  EXPECT_EQ(Micros("0"), 0);
  EXPECT_EQ(Micros("18.12"), 18120);
}

TEST(ParseMicros, ReadsEveryDigitInEveryPlace) {
  for (uint64_t power = 1; power <= 1'000'000'000'000'000ULL; power *= 10) {
    for (uint64_t digit = 1; digit <= 9; ++digit) {
      if (digit > 3 && power == 1'000'000'000'000'000ULL) continue;
      const std::string text = std::to_string(digit * power);
      EXPECT_EQ(Micros(text), static_cast<base::Nanos>(digit * power * 1000)) << text;
      EXPECT_EQ(Micros(text + ".007"), static_cast<base::Nanos>(digit * power * 1000 + 7)) << text;
    }
  }
  EXPECT_EQ(Micros("1234567890123.456"), 1234567890123456);
  base::Nanos out = 0;
  for (const char c : {':', '/', ' ', 'a', '\x80', '?'}) {
    std::string text = "12345678";
    for (size_t i = 0; i < text.size(); ++i) {
      std::string bad = text;
      bad[i] = c;
      EXPECT_EQ(ParseMicros(bad, out), NumberFault::kNotANumber) << bad;
    }
  }
}

TEST(ParseMicros, ReadsExponentsSignsAndLongFractions) {
  EXPECT_EQ(Micros("1.5e3"), 1500000);
  EXPECT_EQ(Micros("1E+2"), 100000);
  EXPECT_EQ(Micros("25e-3"), 25);
  EXPECT_EQ(Micros("-7.25"), -7250);
  EXPECT_EQ(Micros("1.0004999999999999999999999"), 1000);
  EXPECT_EQ(Micros("1.0005"), 1001);
  EXPECT_EQ(Micros("1623142623460111.00000000000000000000"), 1623142623460111000);
}

TEST(ParseMicros, RefusesWhatIsNoNumber) {
  base::Nanos out = 0;
  for (const char* text :
       {"", "NaN", "Infinity", "-", ".", "1.", "1.2.3", "\"1\"", "null", "1e", "0x10", "1 2", "true"}) {
    EXPECT_EQ(ParseMicros(text, out), NumberFault::kNotANumber) << text;
  }
}

TEST(ParseMicros, RefusesWhatIsTooLarge) {
  base::Nanos out = 0;
  for (const char* text : {"1e300", "99999999999999999999999999", "9223372036854775807", "-1e30", "4000000000000001"}) {
    EXPECT_EQ(ParseMicros(text, out), NumberFault::kTooLarge) << text;
    EXPECT_LE(out, kMaxNanos);
    EXPECT_GE(out, -kMaxNanos);
  }
  EXPECT_EQ(ParseMicros("4000000000000000", out), NumberFault::kNone);
  EXPECT_EQ(ParseMicros("0e999999999", out), NumberFault::kNone);
}

TEST(ParseInteger, TakesIntegersOnly) {
  EXPECT_EQ(ParseInteger("42"), 42);
  EXPECT_EQ(ParseInteger("-1"), -1);
  EXPECT_EQ(ParseInteger("7.0"), 7);
  EXPECT_FALSE(ParseInteger("7.5"));
  EXPECT_FALSE(ParseInteger("9223372036854775808"));
  EXPECT_FALSE(ParseInteger(""));
  EXPECT_FALSE(ParseInteger("x"));
}

TEST(ParseId, EqualTextsGiveEqualIds) {
  EXPECT_EQ(ParseId("0x402"), 0x402u);
  EXPECT_EQ(ParseId("17"), 17u);
  EXPECT_EQ(ParseId("request-a"), ParseId("request-a"));
  EXPECT_NE(ParseId("request-a"), ParseId("request-b"));
}

}  // namespace
}  // namespace teller::ingest
