#include "ingest/common/rank.hpp"

#include <gtest/gtest.h>

namespace teller::ingest {
namespace {

TEST(RankFromPath, ReadsTheUsualNames) {
  EXPECT_EQ(RankFromPath("rank3.json.gz"), 3);
  EXPECT_EQ(RankFromPath("a/b/rank-34.Jul_15.pt.trace.json"), 34);
  EXPECT_EQ(RankFromPath("profile_trace_rank_0.json"), 0);
  EXPECT_EQ(RankFromPath("rank00.json"), 0);
  EXPECT_EQ(RankFromPath("worker7_step_12.1694128201553.pt.trace.json"), 7);
  EXPECT_EQ(RankFromPath("1712-TP-3.trace.json.gz"), 3);
  EXPECT_EQ(RankFromPath("dp0_pp0_tp1_rank5.123.pt.trace.json.gz"), 5);
  EXPECT_EQ(RankFromPath("logs/3/stdout.log"), 3);
}

TEST(RankFromPath, DoesNotTakeOtherNumbers) {
  EXPECT_FALSE(RankFromPath("trace.1795986620096818809.json"));
  EXPECT_FALSE(RankFromPath("rank.1795986620096818809.json"));
  EXPECT_FALSE(RankFromPath("rank17959866200.json")) << "a time";
  EXPECT_FALSE(RankFromPath("http3.log")) << "tp inside a word";
  EXPECT_FALSE(RankFromPath("frank3.log")) << "rank inside a word";
  EXPECT_FALSE(RankFromPath("3/server.log"));
  EXPECT_FALSE(RankFromPath(""));
}

}  // namespace
}  // namespace teller::ingest
