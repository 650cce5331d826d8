#include "ingest/common/text.hpp"

#include <gtest/gtest.h>

namespace teller::ingest {
namespace {

std::string Unescaped(std::string_view text) {
  std::string out;
  Unescape(text, out);
  return out;
}

TEST(Unescape, ResolvesEscapes) {
  EXPECT_EQ(Unescaped(R"(a\"b\\c\/d\n\t)"), "a\"b\\c/d\n\t");
  EXPECT_EQ(Unescaped(R"(\u0041\u00e9\u20ac)"), "A\xC3\xA9\xE2\x82\xAC");
  EXPECT_EQ(Unescaped(R"(\ud83d\ude00)"), "\xF0\x9F\x98\x80");
}

TEST(Unescape, LeavesDamageHarmless) {
  EXPECT_EQ(Unescaped(R"(\ud83d)"), "\xEF\xBF\xBD");
  EXPECT_EQ(Unescaped(R"(\ud83d\u0041)"),
            "\xEF\xBF\xBD"
            "A");
  EXPECT_EQ(Unescaped(R"(\u12)"), "\\u12");
  EXPECT_EQ(Unescaped(R"(\q)"), "\\q");
  EXPECT_EQ(Unescaped("\\"), "\\");
}

TEST(MakeValidText, ReplacesOnlyWhatIsWrong) {
  std::string out;
  EXPECT_FALSE(MakeValidText("{\"a\":\n \"\xC3\xA9\"}", out));
  EXPECT_EQ(out, "{\"a\":  \"\xC3\xA9\"}");
  out.clear();
  EXPECT_TRUE(MakeValidText("\"\xFFx\xC3\"", out));
  EXPECT_EQ(out, "\"\xEF\xBF\xBDx\xEF\xBF\xBD\"");
  out.clear();
  EXPECT_TRUE(MakeValidText("\"a\x1b[31m\"", out));
  EXPECT_EQ(out, "\"a [31m\"");
  out.clear();
  EXPECT_TRUE(MakeValidText("\"\xED\xA0\x80\"", out)) << "a surrogate is not UTF-8";
  out.clear();
  EXPECT_TRUE(MakeValidText("\"\\\xFF\"", out)) << "an escaped bad byte is still bad";
}

TEST(Snippet, IsShortAndPrintable) {
  EXPECT_EQ(Snippet("a\x1b[0mb\xC3\xA9"), "a?[0mb??");
  EXPECT_LE(Snippet(std::string(1000, 'x')).size(), 50u);
}

}  // namespace
}  // namespace teller::ingest
