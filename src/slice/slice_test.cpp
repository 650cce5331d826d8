#include "slice/slice.hpp"

#include <gtest/gtest.h>

#include <set>

#include "base/rng.hpp"

namespace teller::slice {
namespace {

using trace::SpanRow;

/// Random nested spans on one thread per process, sorted as ingest leaves them, with parents filled.
struct RandomRun {
  trace::Store store;
  trace::Trees trees;

  explicit RandomRun(uint64_t seed, uint32_t processes) {
    base::Rng rng(seed);
    store.categories.push_back({"cpu_op", trace::SpanKind::kOp});
    store.files.push_back({});
    for (uint32_t p = 0; p < processes; ++p) AddProcess(rng, p);
  }

  void AddProcess(base::Rng& rng, uint32_t p) {
    trace::Process process;
    process.file = trace::FileRow(0);
    process.rank = static_cast<int>(p);
    store.processes.push_back(process);
    trace::Track track;
    track.process = trace::ProcessRow(p);
    track.first_span = static_cast<uint32_t>(store.spans.size());
    AddTree(rng, p, 0, 100'000, SpanRow(), 0);
    track.span_count = static_cast<uint32_t>(store.spans.size()) - track.first_span;
    store.tracks.push_back(track);
  }

  void AddTree(base::Rng& rng, uint32_t track, trace::Nanos from, trace::Nanos to, SpanRow parent, uint16_t depth) {
    trace::Nanos at = from;
    while (to - at > 50 && depth < 6) {
      const auto begin = at + static_cast<trace::Nanos>(rng.Below(20));
      const auto length = 10 + static_cast<trace::Nanos>(rng.Below(static_cast<uint64_t>(std::max<trace::Nanos>(1, (to - begin) / 2))));
      if (begin + length > to) break;
      const SpanRow row(static_cast<uint32_t>(store.spans.size()));
      store.spans.begin.push_back(begin);
      store.spans.duration.push_back(length);
      store.spans.name.push_back(store.strings.Intern("op" + std::to_string(rng.Below(9))));
      store.spans.track.push_back(trace::TrackRow(track));
      store.spans.category.push_back(0);
      store.spans.parent.push_back(parent);
      store.spans.depth.push_back(depth);
      AddTree(rng, track, begin, begin + length, row, static_cast<uint16_t>(depth + 1));
      at = begin + length;
      if (rng.Below(3) == 0) break;
    }
  }
};

TEST(Slice, HoldsTheSymptomWithinBudgetAndEachNodeOnce) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    RandomRun run(seed, 2);
    base::Rng rng(seed + 1000);
    const SpanRow symptom(static_cast<uint32_t>(rng.Below(run.store.spans.size())));
    const auto budget = 1 + static_cast<uint32_t>(rng.Below(40));
    const Slice slice = CausalSlice(run.store, run.trees, symptom, {.budget = budget});
    ASSERT_FALSE(slice.nodes.empty());
    EXPECT_EQ(slice.nodes.front().span, symptom);
    EXPECT_LE(slice.nodes.size(), budget);
    std::set<uint32_t> seen;
    for (const Node& node : slice.nodes) {
      if (node.span.valid()) {
        EXPECT_TRUE(seen.insert(node.span.value()).second) << seed;
      }
    }
  }
}

TEST(Slice, UnchangedByUnrelatedProcesses) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    RandomRun one(seed, 1);
    RandomRun two(seed, 2);  // the first process is drawn first, so it is the same
    const SpanRow symptom(static_cast<uint32_t>(one.store.spans.size() / 2));
    const Slice a = CausalSlice(one.store, one.trees, symptom);
    const Slice b = CausalSlice(two.store, two.trees, symptom);
    ASSERT_EQ(a.nodes.size(), b.nodes.size());
    for (size_t i = 0; i < a.nodes.size(); ++i) EXPECT_EQ(a.nodes[i].span, b.nodes[i].span);
  }
}

TEST(Slice, PeersOfItsCollectivesAndWarningsComeAlong) {
  RandomRun run(3, 2);
  const auto& tracks = run.store.tracks;
  const uint32_t mine = tracks[0].first_span;
  const uint32_t theirs = tracks[1].first_span;
  trace::Collective collective;
  collective.members.push_back({.rank = 0, .process = trace::ProcessRow(0), .span = SpanRow(mine)});
  collective.members.push_back({.rank = 1, .process = trace::ProcessRow(1), .span = SpanRow(theirs)});
  run.trees.collectives.push_back(collective);
  trace::LogRecord record;
  record.at = run.store.spans.begin[mine];
  record.level = trace::LogLevel::kWarning;
  record.trace_process = trace::ProcessRow(0);
  run.store.logs.push_back(record);
  const Slice slice = CausalSlice(run.store, run.trees, SpanRow(mine));
  bool peer = false;
  bool log = false;
  for (const Node& node : slice.nodes) {
    peer = peer || (node.relation == Relation::kPeer && node.span == SpanRow(theirs));
    log = log || node.relation == Relation::kLog;
  }
  EXPECT_TRUE(peer);
  EXPECT_TRUE(log);
}

}  // namespace
}  // namespace teller::slice
