#include "ingest/kineto/splitter.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/rng.hpp"

namespace teller::ingest {
namespace {

TEST(FindCut, StopsBehindTheLastWholeElement) {
  const std::string text = R"({"a": "}]"}, {"b": [1, {"c": "\"}"}]}, {"d)";
  const Cut cut = FindCut(text);
  EXPECT_EQ(text.substr(0, cut.boundary), R"({"a": "}]"}, {"b": [1, {"c": "\"}"}]})");
  EXPECT_EQ(cut.array_end, Cut::kNone);
}

TEST(FindCut, FindsTheEndOfTheArray) {
  const std::string text = R"({"a": 1} ], "more": [{}])";
  EXPECT_EQ(FindCut(text).array_end, 9u);
  EXPECT_EQ(FindCut("]").array_end, 0u);
  EXPECT_EQ(FindCut("").boundary, 0u);
}

/// Random text of the characters that matter, so that escapes and quotes fall on every place of a block.
TEST(FindCut, AgreesWithThePlainTwin) {
  base::Rng rng(7);
  const std::string alphabet = "{}[]\"\\ax,";
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    const size_t n = rng.Below(300);
    for (size_t i = 0; i < n; ++i) {
      // Mostly plain characters: brackets deep inside blocks and strings that span blocks.
      text.push_back(rng.Below(4) == 0 ? alphabet[rng.Below(alphabet.size())] : 'x');
    }
    const Cut fast = FindCut(text);
    const Cut plain = FindCutPlain(text);
    ASSERT_EQ(fast.boundary, plain.boundary) << text;
    ASSERT_EQ(fast.array_end, plain.array_end) << text;
    ASSERT_GE(fast.deepest, plain.deepest) << text;
  }
}

TEST(FindElementAfter, IsNotFooledByStrings) {
  const std::string text = R"({"name": "x}, {\"ph\": 1", "a": "},{"}, {"ph": "X"})";
  EXPECT_EQ(FindElementAfter(text, 0), text.rfind("{\"ph\""));
  EXPECT_EQ(FindElementAfter("{}", 0), Cut::kNone);
}

}  // namespace
}  // namespace teller::ingest
