#include "locate/parts.hpp"

#include <gtest/gtest.h>

namespace teller::locate {
namespace {

/// Six steps of five parts, each of which takes so many times as long as usual.
std::vector<Parts> Steps(const std::vector<double>& factors) {
  Parts parts;
  for (const double factor : factors) parts.push_back({100 * factor, 100});
  return std::vector<Parts>(6, parts);
}

TEST(Parts, MostOfAStepHasToBeStretched) {
  EXPECT_TRUE(AreBroad(Steps({2, 2, 2, 1, 1}), 2));
  EXPECT_TRUE(AreBroad(Steps({1.5, 1.5, 4, 1, 1}), 2));
  EXPECT_FALSE(AreBroad(Steps({6, 1, 1, 1, 1}), 2));
  EXPECT_FALSE(AreBroad(Steps({1.3, 1.3, 1.3, 1.3, 1.3}), 2));
}

TEST(Parts, LargePartsCountForMore) {
  std::vector<Parts> steps = Steps({2, 1, 1, 1, 1});
  for (Parts& parts : steps) parts.front() = {2000, 1000};
  EXPECT_TRUE(AreBroad(steps, 2));
}

TEST(Parts, ThoseThatDifferAsEverAreStretchedAlike) {
  const std::vector<Parts> others = Steps({0.9, 1, 1, 1.1, 1.2});
  EXPECT_TRUE(AreStretchedAlike(Steps({2.7, 3, 3, 3.3, 3.6}), others));
  EXPECT_FALSE(AreStretchedAlike(Steps({1, 6, 1.5, 3, 1}), others));
}

TEST(Parts, APartThatTookNothingSaysNothing) {
  EXPECT_TRUE(AreStretchedAlike(Steps({2, 2.2, 0, 0, 0}), Steps({1, 1, 1, 1, 1})));
  EXPECT_TRUE(AreStretchedAlike({}, {}));
}

}  // namespace
}  // namespace teller::locate
