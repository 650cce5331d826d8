#include "score/children.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>

namespace teller::score {
namespace {

TEST(InChildren, WhateverOneDoesTheOthersAreDone) {
  const ChildLimits limits{.workers = 2, .timeout_s = 1};
  const auto statuses = InChildren(5, limits, [](size_t i) -> int {
    if (i == 1) throw std::runtime_error("broken");
    if (i == 2) raise(SIGKILL);
    if (i == 3) pause();
    return i == 4 ? 7 : 0;
  });
  ASSERT_TRUE(statuses);
  EXPECT_EQ(EndText((*statuses)[0], limits), "");
  EXPECT_NE(EndText((*statuses)[1], limits), "");
  EXPECT_EQ(EndText((*statuses)[2], limits), "died of signal 9");
  EXPECT_EQ(EndText((*statuses)[3], limits), "took longer than 1 s");
  EXPECT_EQ(EndText((*statuses)[4], limits), "ended with status 7");
}

TEST(InChildren, AnExceptionDoesNotUnwindWhatIsTheParents) {
  struct Cleans {
    int end = -1;
    ~Cleans() { (void)!write(end, "x", 1); }
  };
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  {
    Cleans cleans{ends[1]};
    ASSERT_TRUE(InChildren(3, {}, [](size_t) -> int { throw std::bad_alloc(); }));
  }
  close(ends[1]);
  char text[8];
  EXPECT_EQ(read(ends[0], text, sizeof text), 1) << "the parent's alone";
  close(ends[0]);
}

}  // namespace
}  // namespace teller::score
