#include "align/request_ids.hpp"

#include <gtest/gtest.h>

namespace teller::align {
namespace {

TEST(RequestIds, AnyFormFindsTheRequest) {
  RequestIds ids;
  ids.Add("", "cmpl-9343dbea37f30b45-0", 7);
  for (const char* form : {"cmpl-9343dbea37f30b45-0", "cmpl-9343dbea37f30b45-0-aa5d99a9", "9343dbea37f30b45-0",
                           "9343dbea37f30b45", "cmpl-9343dbea37f30b45"}) {
    EXPECT_EQ(ids.Find("", form), 7u) << form;
  }
  EXPECT_EQ(ids.Find("", "cmpl-9343dbea37f30b46-0"), RequestIds::kNone);
  EXPECT_EQ(ids.Find("", ""), RequestIds::kNone);
}

TEST(RequestIds, TheLongFormMayComeFirst) {
  RequestIds ids;
  ids.Add("", "chatcmpl-7e1c-0-94880aa5", 3);
  EXPECT_EQ(ids.Find("", "chatcmpl-7e1c-0"), 3u);
  EXPECT_EQ(ids.Find("", "7e1c"), 3u);
}

TEST(RequestIds, AFormThatTwoShareFindsNeither) {
  RequestIds ids;
  ids.Add("", "cmpl-abcdef-0", 1);
  ids.Add("", "cmpl-abcdef-1", 2);
  EXPECT_EQ(ids.Find("", "cmpl-abcdef"), RequestIds::kNone);
  EXPECT_EQ(ids.Find("", "cmpl-abcdef-0"), 1u);
  EXPECT_EQ(ids.Find("", "cmpl-abcdef-1-0a0b0c0d"), 2u);
}

TEST(RequestIds, SiblingsAreNotOneAnother) {
  RequestIds ids;
  ids.Add("", "bench-00000001", 1);
  EXPECT_EQ(ids.Find("", "bench-00000002"), RequestIds::kNone);
  ids.Add("", "cmpl-abcdef12-0", 2);
  EXPECT_EQ(ids.Find("", "cmpl-abcdef12-1"), RequestIds::kNone);
  EXPECT_EQ(ids.Find("", "cmpl-abcdef12-1-00aa11bb"), RequestIds::kNone);
  EXPECT_EQ(ids.Find("", "abcdef12"), 2u);
}

TEST(RequestIds, ANumberThatTheClientChoseIsPartOfTheId) {
  RequestIds ids;
  ids.Add("", "0025-006", 6);
  ids.Add("", "0025-007", 7);
  EXPECT_EQ(ids.Find("", "0025-006"), 6u);
  EXPECT_EQ(ids.Find("", "0025-007"), 7u);
  EXPECT_EQ(ids.Find("", "0025"), RequestIds::kNone);
}

TEST(RequestIds, NumbersOfOneProcessStayInIt) {
  EXPECT_TRUE(RequestIds::IsLocal("task 12"));
  EXPECT_TRUE(RequestIds::IsLocal("12"));
  EXPECT_FALSE(RequestIds::IsLocal("0025-006"));
  RequestIds ids;
  ids.Add("0/", "task 12", 1);
  ids.Add("1/", "task 12", 2);
  EXPECT_EQ(ids.Find("0/", "task 12"), 1u);
  EXPECT_EQ(ids.Find("1/", "task 12"), 2u);
  EXPECT_EQ(ids.Find("2/", "task 12"), RequestIds::kNone);
}

}  // namespace
}  // namespace teller::align
