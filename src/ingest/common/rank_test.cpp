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

TEST(RankFromPath, ReadsKeysOfObjectStores) {
  EXPECT_EQ(RankFromPath("bucket/prefix/rank=3/trace.json.gz"), 3);
  EXPECT_EQ(RankFromPath("bucket/prefix/rank%3D12/trace.json.gz"), 12);
  EXPECT_EQ(RankFromPath("runs/worker-7/trace.json.zst"), 7);
  EXPECT_EQ(RankFromPath("run.tar!/worker-1/rank_5.json"), 5) << "the file's own name first";
  EXPECT_EQ(RankFromPath("a/rank_1/b/rank_2/trace.json"), 2) << "the innermost folder";
  EXPECT_EQ(RankFromPath("profile_r12_step3.json"), 12);
  EXPECT_EQ(RankFromPath("profile_r4.json.gz"), 4);
  EXPECT_EQ(RankFromPath("node0/gpu5.json"), 5);
  EXPECT_EQ(RankFromPath("traces/gpu5/trace.json"), 5);
  EXPECT_EQ(RankFromPath("1712-TP-3-DP-0.trace.json.gz"), 3);
}

TEST(RankFromPath, ALocalRankOfALaterNodeIsNoRank) {
  EXPECT_FALSE(RankFromPath("node2/gpu5/trace.json"));
  EXPECT_FALSE(RankFromPath("host-1/local_rank3.json"));
  EXPECT_EQ(RankFromPath("host-0/local_rank_3.json"), 3);
  EXPECT_EQ(RankFromPath("node2/gpu5/rank21.json"), 21);
}

TEST(RankFromPath, DoesNotTakeOtherNumbers) {
  EXPECT_FALSE(RankFromPath("deepseek_r1_trace.json"));
  EXPECT_FALSE(RankFromPath("model_r1b.json"));
  EXPECT_FALSE(RankFromPath("rank%3"));
  EXPECT_FALSE(RankFromPath("%%%zz%4"));
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
