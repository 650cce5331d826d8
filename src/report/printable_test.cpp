#include "report/printable.hpp"

#include <gtest/gtest.h>

namespace teller::report {
namespace {

TEST(Printable, ShowsControlBytesAndEscapes) {
  EXPECT_EQ(Printable("a\x1b[31mb\x07"), "a\\x1b[31mb\\x07");
  EXPECT_EQ(Printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(Printable("a\nb\tc\rd"), "a b c d");
}

TEST(Printable, ShowsC1ControlsAndDirectionOverrides) {
  EXPECT_EQ(Printable("\xC2\x9B"
                      "1m"),
            "\\u{009b}1m");  // a one-character escape sequence start
  EXPECT_EQ(Printable("a\xE2\x80\xAE"
                      "b"),
            "a\\u{202e}b");
}

TEST(Printable, KeepsTextAndShowsBrokenUtf8) {
  EXPECT_EQ(Printable("größe 模型"), "größe 模型");
  EXPECT_EQ(Printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(Printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate is no character
}

TEST(Printable, CutsAtColumns) {
  EXPECT_EQ(Printable("abcdef", 6), "abcdef");
  EXPECT_EQ(Printable("abcdefg", 6), "abcde…");
  EXPECT_EQ(Columns(Printable("模型模型模型", 5)), 5u);
}

TEST(ValidUtf8, ReplacesOnlyWhatIsBroken) {
  EXPECT_EQ(ValidUtf8("ok \xff!"), "ok \xEF\xBF\xBD!");
  EXPECT_EQ(ValidUtf8("größe"), "größe");
}

TEST(Shortened, CutsBetweenCharacters) {
  EXPECT_EQ(Shortened("größe", 3), "gr…");
  EXPECT_EQ(Shortened("abc", 3), "abc");
}

}  // namespace
}  // namespace teller::report
