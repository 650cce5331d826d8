#include "locate/gap_hits.hpp"

#include <gtest/gtest.h>

namespace teller::locate {
namespace {

TEST(GapHits, NoiseBesideAFaultDoesNotWidenIt) {
  std::vector<GapHit> hits;
  for (uint32_t s = 0; s < 40; s += 2) hits.push_back({s, 4e6});
  for (uint32_t s = 100; s < 140; ++s) hits.push_back({s, 30e6});
  const auto main = MainHits(hits);
  ASSERT_EQ(main.size(), 40u);
  EXPECT_EQ(main.front().step, 100u);
}

TEST(GapHits, EqualOnesAllStay) {
  std::vector<GapHit> hits;
  for (uint32_t s = 0; s < 20; ++s) hits.push_back({s, 4e6 + s * 1e5});
  EXPECT_EQ(MainHits(hits).size(), hits.size());
  EXPECT_TRUE(MainHits({}).empty());
}

TEST(GapHits, AFewLargeOnesDoNotHideTheOthers) {
  std::vector<GapHit> hits;
  for (uint32_t s = 0; s < 10; ++s) hits.push_back({s, 4e6});
  hits.push_back({50, 90e6});
  EXPECT_EQ(MainHits(hits).size(), hits.size());
}

TEST(GapHits, SpreadIsSmallForEqualGaps) {
  EXPECT_EQ(Spread({{0, 1}, {1, 9}}), 0);
  EXPECT_LT(Spread({{0, 30e6}, {1, 31e6}, {2, 29e6}, {3, 30e6}}), 0.1);
  EXPECT_GT(Spread({{0, 5e6}, {1, 60e6}, {2, 20e6}, {3, 8e6}, {4, 40e6}}), 0.8);
}

}  // namespace
}  // namespace teller::locate
