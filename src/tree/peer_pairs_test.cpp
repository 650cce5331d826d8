#include "tree/peer_pairs.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.hpp"
#include "tree/collectives.hpp"

namespace teller::tree {
namespace {

using base::kMicro;
using base::kMilli;
using trace::Nanos;

/// Stages of a pipeline: each receives from the one before and sends to the next, over gloo or NCCL.
class Pipeline {
 public:
  /// `told`: args say of each NCCL kernel whether it sends and to whom; its group is that of all stages.
  Pipeline(int ranks, int rounds, bool nccl, bool barrier, uint64_t seed, bool told = false)
      : rng_(seed), spans_(static_cast<size_t>(ranks)) {
    store_.categories.push_back(nccl ? trace::Category{"kernel", trace::SpanKind::kKernel}
                                     : trace::Category{"user_annotation", trace::SpanKind::kAnnotation});
    const char* send = nccl ? "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)" : "gloo:send";
    const char* receive = nccl ? send : "gloo:recv";
    std::vector<Nanos> at(spans_.size(), base::kSecond);
    for (int round = 0; round < rounds; ++round) {
      for (size_t r = 0; r < spans_.size(); ++r) {
        at[r] += kMilli + static_cast<Nanos>(rng_.Below(3 * kMilli));
        if (r + 1 == spans_.size()) break;
        const Nanos end = std::max(at[r], at[r + 1]) + 100 * kMicro;
        spans_[r].push_back({at[r], end, send, told ? static_cast<int>(r + 1) : -1, true});
        spans_[r + 1].push_back({at[r + 1], end + static_cast<Nanos>(rng_.Below(5 * kMicro)), receive,
                                 told ? static_cast<int>(r) : -1, false});
        truth_.emplace_back(static_cast<int>(r), end);
        at[r] = at[r + 1] = end + 10 * kMicro;
      }
      if (!barrier) continue;
      const Nanos end = *std::max_element(at.begin(), at.end()) + 50 * kMicro;
      for (size_t r = 0; r < spans_.size(); ++r) {
        spans_[r].push_back({at[r], end + static_cast<Nanos>(rng_.Below(5 * kMicro)),
                             nccl ? "ncclDevKernel_AllReduce_Sum_f32_RING_LL()" : "gloo:all_reduce"});
        at[r] = end + 10 * kMicro;
      }
    }
    for (size_t r = 0; r < spans_.size(); ++r) Emit(r);
  }

  /// How many of the transfers were paired as they were, and how many pairs there are.
  std::pair<size_t, size_t> Match() {
    trace::Trees trees;
    MatchCollectives(store_, trees);
    size_t right = 0;
    size_t pairs = 0;
    for (const auto& c : trees.collectives) {
      if (!c.point_to_point) continue;
      ++pairs;
      EXPECT_EQ(c.members.size(), 2u);
      const bool neighbours = c.members[1].rank == c.members[0].rank + 1;
      right += neighbours && std::any_of(truth_.begin(), truth_.end(), [&](const auto& t) {
                 return t.first == c.members[0].rank && std::abs(t.second - c.members[0].end) < kMicro &&
                        std::abs(t.second - c.members[1].end) < 6 * kMicro;
               });
    }
    return {right, pairs};
  }

  size_t transfers() const { return truth_.size(); }

 private:
  struct Row {
    Nanos begin;
    Nanos end;
    const char* name;
    int peer = -1;
    bool sends = false;
  };

  void Emit(size_t r) {
    trace::Process process;
    process.file = trace::FileRow(0);
    process.rank = static_cast<int>(r);
    store_.processes.push_back(process);
    trace::Track track;
    track.process = trace::ProcessRow(static_cast<uint32_t>(r));
    track.first_span = static_cast<uint32_t>(store_.spans.size());
    track.span_count = static_cast<uint32_t>(spans_[r].size());
    for (const Row& row : spans_[r]) {
      store_.spans.begin.push_back(row.begin);
      store_.spans.duration.push_back(row.end - row.begin);
      store_.spans.name.push_back(store_.strings.Intern(row.name));
      store_.spans.track.push_back(trace::TrackRow(static_cast<uint32_t>(r)));
      store_.spans.category.push_back(0);
      store_.spans.parent.emplace_back();
      store_.spans.depth.push_back(0);
      if (row.peer < 0) continue;
      trace::CommArgs args;
      args.collective = store_.strings.Intern(row.sends ? "send" : "recv");
      args.group = store_.strings.Intern("5");
      args.group_ranks = store_.strings.Intern("[0, 1, 2, 3]");
      args.peer = row.peer;
      store_.comm_args.Append(static_cast<uint32_t>(store_.spans.size() - 1), args);
    }
    store_.tracks.push_back(track);
  }

  base::Rng rng_;
  trace::Store store_;
  std::vector<std::vector<Row>> spans_;
  std::vector<std::pair<int, Nanos>> truth_;  // (sender, end)
};

TEST(PeerPairs, StagesOfAPipelineArePairedWithTheirNeighbours) {
  for (const bool nccl : {false, true}) {
    Pipeline pipeline(4, 30, nccl, true, 5);
    const auto [right, pairs] = pipeline.Match();
    EXPECT_GE(right * 100, pipeline.transfers() * 97) << nccl;
    EXPECT_LE(pairs - right, pairs / 50) << nccl;
  }
}

TEST(PeerPairs, TwoRanksNeedNoOtherCollective) {
  Pipeline pipeline(2, 30, false, false, 6);
  const auto [right, pairs] = pipeline.Match();
  EXPECT_EQ(right, pipeline.transfers());
  EXPECT_EQ(pairs, pipeline.transfers());
}

TEST(PeerPairs, WhereArgsNameThePeerEveryTransferIsFoundWithoutAClock) {
  for (const int ranks : {2, 4}) {
    Pipeline pipeline(ranks, 30, true, false, 8, true);
    const auto [right, pairs] = pipeline.Match();
    EXPECT_EQ(right, pipeline.transfers()) << ranks;
    EXPECT_EQ(pairs, pipeline.transfers()) << ranks;
  }
}

TEST(PeerPairs, WithoutAClockNothingIsPaired) {
  Pipeline pipeline(4, 30, false, false, 7);
  EXPECT_EQ(pipeline.Match().second, 0u) << "no collective ties the clocks, so ends prove nothing";
}

TEST(PeerPairs, EndsAreReadFromNames) {
  EXPECT_EQ(PeerEndOf("gloo:send"), PeerEnd::kSend);
  EXPECT_EQ(PeerEndOf("c10d::recv_any_source_"), PeerEnd::kReceive);
  EXPECT_EQ(PeerEndOf("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*)"), PeerEnd::kEither);
  EXPECT_EQ(PeerEndOf("gloo:all_reduce"), PeerEnd::kNone);
}

}  // namespace
}  // namespace teller::tree
