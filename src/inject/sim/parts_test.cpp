#include "inject/sim/parts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "inject/sim/client_net.hpp"

namespace teller::inject::sim {
namespace {

using base::kMilli;

TEST(Parts, EveryPartIsThereInHealthyRunsAndAlwaysWhereAKindIsAboutIt) {
  std::set<int> drafts;
  std::set<KvSource> sources;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    base::Rng rng(seed);
    const Parts parts = DrawParts(Kind::kNone, Engine::kVllm, rng);
    drafts.insert(parts.drafts);
    sources.insert(parts.kv);
    EXPECT_TRUE(parts.drafts == 0 || parts.kv == KvSource::kNone);
    base::Rng same(seed);
    EXPECT_GT(DrawParts(Kind::kSpecCollapse, Engine::kVllm, same).drafts, 0);
    EXPECT_EQ(same.Next(), rng.Next()) << "another number of draws";
    base::Rng third(seed);
    EXPECT_EQ(DrawParts(Kind::kKvTransfer, Engine::kSglang, third).kv, KvSource::kPrefill);
    base::Rng fourth(seed);
    EXPECT_GT(DrawParts(Kind::kSlowCheckpoint, Engine::kFsdp, fourth).save_every, 0);
  }
  EXPECT_GT(drafts.size(), 2u);
  EXPECT_EQ(sources.size(), 3u);
}

TEST(Parts, MeanAcceptedIsOneWithoutDraftsAndAllWhenAllAreRight) {
  EXPECT_DOUBLE_EQ(MeanAccepted({}), 1);
  EXPECT_DOUBLE_EQ(MeanAccepted({.drafts = 3, .accept = 1}), 4);
  EXPECT_NEAR(MeanAccepted({.drafts = 2, .accept = 0.5}), 1.75, 1e-12);
}

TEST(KvLink, TransfersFollowOneAnotherAndWhatMovedAddsUp) {
  KvLink link(2, 1000, 50, 7);
  Nanos last = 0;
  int64_t bytes = 0;
  for (int k = 0; k < 20; ++k) {
    const KvLink::Fetched fetched = link.Fetch(10 + k, 100 * k);
    EXPECT_GE(fetched.begin, last);
    EXPECT_GT(fetched.end, fetched.begin);
    last = fetched.end;
    bytes += fetched.bytes;
  }
  int64_t moved = 0;
  for (Nanos at = 0; at <= last; at += 777) moved += link.Moved(at, at + 777);
  EXPECT_NEAR(static_cast<double>(moved), static_cast<double>(bytes), 0.01 * static_cast<double>(bytes));
}

TEST(KvLink, ADisturbedLinkIsSlower) {
  KvLink quick(1, 1, 0, 3);
  KvLink slow(1, 1, 0, 3);
  slow.Disturb(10, 0);
  const Nanos usual = quick.Fetch(1'000'000, 0).end;
  EXPECT_NEAR(static_cast<double>(slow.Fetch(1'000'000, 0).end), 10.0 * static_cast<double>(usual), 10);
}

Request Streamed(int tokens) {
  Request request;
  for (int k = 1; k <= tokens; ++k) request.tokens.push_back(k * 5 * kMilli);
  return request;
}

TEST(ClientNet, KeepsTheOrderOfTokensAndLosesNone) {
  for (const double loss : {0.0, 0.05}) {
    ClientNet net(5);
    net.Disturb(loss, 0, 2 * kMilli);
    Request request = Streamed(200);
    net.Deliver(request);
    ASSERT_EQ(request.gone, 0);
    ASSERT_EQ(request.seen.size(), request.tokens.size());
    EXPECT_TRUE(std::is_sorted(request.seen.begin(), request.seen.end()));
    Nanos latest = 0;
    for (size_t k = 0; k < request.seen.size(); ++k) {
      EXPECT_GE(request.seen[k], request.tokens[k] + 2 * kMilli);
      latest = std::max(latest, request.seen[k] - request.tokens[k]);
    }
    if (loss > 0)
      EXPECT_GT(latest, 15 * kMilli);
    else
      EXPECT_LT(latest, 3 * kMilli);
  }
}

TEST(ClientNet, WhoWaitsTooLongIsGone) {
  ClientNet net(5);
  net.Disturb(0.6, 0, 0);
  Request request = Streamed(400);
  net.Deliver(request);
  EXPECT_GT(request.gone, ClientNet::kPatience);
  EXPECT_LT(request.seen.size(), request.tokens.size());
}

TEST(ClientNet, ABrokenConnectionEndsTheStream) {
  ClientNet net(5);
  net.Disturb(0, 0.1, 0);
  Request request = Streamed(400);
  net.Deliver(request);
  EXPECT_GT(request.gone, request.seen.back());
  EXPECT_LT(request.seen.size(), 200u);
}

}  // namespace
}  // namespace teller::inject::sim
