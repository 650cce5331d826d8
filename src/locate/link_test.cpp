#include "locate/link.hpp"

#include <gtest/gtest.h>

#include "locate/test_run.hpp"

namespace teller::locate {
namespace {

/// Four ranks whose clocks are known to 10 us. From the 60th collective on each leaves later by `late` ns.
struct Leaving {
  TestRun run{4};
  std::vector<uint32_t> slow;

  explicit Leaving(const std::vector<Nanos>& late) {
    run.trees.clocks.resize(4);
    for (auto& clock : run.trees.clocks) {
      clock.linked = true;
      clock.error = 10'000;
    }
    for (uint32_t c = 0; c < 80; ++c) {
      trace::Collective collective;
      const Nanos at = base::kSecond + static_cast<Nanos>(c) * base::kMilli;
      for (int r = 0; r < 4; ++r) {
        trace::CollectiveMember member;
        member.rank = r;
        member.process = trace::ProcessRow(static_cast<uint32_t>(r));
        member.arrival = at;
        const Nanos offset = 5'000 * r;  // of the clocks
        member.end =
            at + offset + run.Noisy(50'000) / 50 + (c >= 60 ? late.at(static_cast<size_t>(r)) + 40'000 : 20'000);
        collective.members.push_back(member);
      }
      if (c >= 60) slow.push_back(c);
      run.trees.collectives.push_back(collective);
    }
  }
};

TEST(Link, WhatChangesIsKnownBetterThanWhatTheClocksSay) {
  const Leaving slow_rank({0, 7'900, 7'850, 4'000});  // rank 1 towards both neighbours
  const SlowLink link = FindSlowLink(slow_rank.run.scene(), slow_rank.slow);
  EXPECT_EQ(link.sender, 1);
  EXPECT_TRUE(link.both_ways);
}

TEST(Link, LeavingAsEverNamesNoLink) {
  const Leaving all({0, 0, 0, 0});
  EXPECT_FALSE(FindSlowLink(all.run.scene(), all.slow).sender.has_value());
}

}  // namespace
}  // namespace teller::locate
