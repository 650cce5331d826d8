#include "encode/forest.hpp"

#include <gtest/gtest.h>

#include <set>

#include "encode/attributes.hpp"
#include "encode/run_for_test.hpp"
#include "tpe/forest.hpp"

namespace teller::encode {
namespace {

using trace::SpanKind;
using trace::SpanRow;

std::vector<std::string> Names(const Forest& forest, const SymbolTable& table) {
  std::vector<std::string> out;
  for (size_t i = 0; i < forest.size(); ++i) {
    out.push_back(std::string(forest.depth[i], ' ') + std::string(Name(table.At(forest.symbol[i]).layer)) + " " +
                  table.At(forest.symbol[i]).name);
  }
  return out;
}

/// Checks what every forest of every run promises; gives the nodes of all segments.
void ExpectEverySpanOnce(const TestRun& run) {
  SymbolTable table;
  ForestBuilder builder(run.store, run.trees, table);
  std::set<uint32_t> seen;
  uint64_t nodes = 0;
  uint64_t structure = 0;
  for (const Segment& segment : SegmentsOf(run.store, run.trees)) {
    const Forest forest = builder.Build(segment);
    EXPECT_TRUE(tpe::ValidateForest(View(forest.symbol, forest)).ok());
    nodes += forest.size();
    structure += forest.structure;
    for (const SpanRow span : forest.span) {
      if (!span.valid()) continue;
      EXPECT_TRUE(seen.insert(span.value()).second);
    }
    for (const trace::Nanos self : forest.self) EXPECT_GE(self, 0);
  }
  EXPECT_EQ(seen.size(), builder.traced_spans());
  EXPECT_EQ(nodes, builder.traced_spans() + structure);
}

TEST(Forest, HoldsEverySpanOnce) {
  for (uint64_t seed = 1; seed <= 60; ++seed)
    ExpectEverySpanOnce(TestRun::Random(seed, static_cast<uint32_t>(1 + seed % 7)));
}

TEST(Forest, HoldsEverySpanOnceWhateverTheSpans) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    base::Rng rng(seed);
    std::vector<TestSpan> spans;
    for (size_t i = rng.Below(60); i-- > 0;) {
      const auto track = static_cast<uint32_t>(rng.Below(4));
      TestSpan span{track, static_cast<trace::Nanos>(rng.Below(500)), static_cast<trace::Nanos>(rng.Below(200)),
                    "n" + std::to_string(rng.Below(5))};
      const bool stream = track >= 2;
      span.kind = stream ? (rng.Below(4) == 0 ? SpanKind::kGpuAnnotation : SpanKind::kKernel)
                         : (rng.Below(3) == 0 ? SpanKind::kRuntime : SpanKind::kOp);
      if (span.kind == SpanKind::kRuntime || span.kind == SpanKind::kKernel)
        span.correlation = static_cast<uint32_t>(rng.Below(10));
      spans.push_back(span);
    }
    TestRun run(std::move(spans), 4, 2);
    trace::Nanos at = 0;
    for (size_t s = rng.Below(4); s-- > 0;) {
      at += static_cast<trace::Nanos>(rng.Below(80));
      const auto end = at + static_cast<trace::Nanos>(rng.Below(150));
      run.AddStep(at, end);  // some overlap
      at += 1;
    }
    ExpectEverySpanOnce(run);
  }
}

TEST(Forest, PutsGpuWorkUnderItsLaunchAndOtherWorkUnderItsStream) {
  TestRun run({{0, 0, 100, "aten::mm"},
               {0, 10, 20, "cudaLaunchKernel", SpanKind::kRuntime, 7},
               {0, 12, 5, "cudaFuncGetAttributes", SpanKind::kRuntime, 0},
               {0, 200, 10, "aten::t"},
               {1, 300, 50, "void work_kernel<float>(int)", SpanKind::kKernel, 7},
               {1, 400, 50, "lost_kernel", SpanKind::kKernel, 99}},
              2, 1);
  SymbolTable table;
  const Forest forest = ForestBuilder(run.store, run.trees, table).Build(SegmentsOf(run.store, run.trees).front());
  EXPECT_EQ(Names(forest, table), (std::vector<std::string>{"thread main", " op aten::mm", "  runtime cudaLaunchKernel",
                                                            "   kernel work_kernel", "   runtime cudaFuncGetAttributes",
                                                            " op aten::t", "stream stream", " kernel lost_kernel"}));
  EXPECT_EQ(forest.structure, 2u);
  EXPECT_EQ(forest.self[1], 80);
  EXPECT_EQ(forest.self[2], 15);
  EXPECT_EQ(forest.total[0], 110);
}

TEST(Forest, ASpanBelongsToTheSegmentInWhichItBegins) {
  TestRun run({{0, 0, 500, "loop", SpanKind::kPython},
               {0, 90, 20, "across"},
               {0, 120, 10, "gap"},
               {0, 210, 5, "late"},
               {0, 100, 10, "cudaLaunchKernel", SpanKind::kRuntime, 3},
               {1, 450, 10, "far_kernel", SpanKind::kKernel, 3}},
              2, 1);
  run.AddStep(50, 100);
  run.AddStep(150, 200);
  SymbolTable table;
  ForestBuilder builder(run.store, run.trees, table);
  std::vector<std::vector<std::string>> names;
  for (const Segment& segment : SegmentsOf(run.store, run.trees)) names.push_back(Names(builder.Build(segment), table));
  ASSERT_EQ(names.size(), 4u);
  EXPECT_EQ(names[0], (std::vector<std::string>{"thread main", " python loop"}));
  EXPECT_EQ(names[1], (std::vector<std::string>{"thread main", " op across"}));
  EXPECT_EQ(names[2],
            (std::vector<std::string>{"thread main", " runtime cudaLaunchKernel", "  kernel far_kernel", " op gap"}));
  EXPECT_EQ(names[3], (std::vector<std::string>{"thread main", " op late"}));
}

TEST(Forest, ThreadsOfAPoolAreOneNodeInTimeOrder) {
  TestRun run(
      {{0, 0, 100, "main work"}, {0, 100, 100, "main work"}, {1, 20, 10, "b"}, {2, 5, 10, "a"}, {2, 50, 10, "c"}}, 3,
      3);
  run.store.tracks[1].name = "thread 11 (pt_gloo_runloop)";
  run.store.tracks[2].name = "thread 12 (pt_gloo_runloop)";
  SymbolTable table;
  const Forest forest = ForestBuilder(run.store, run.trees, table).Build(SegmentsOf(run.store, run.trees).front());
  EXPECT_EQ(Names(forest, table), (std::vector<std::string>{"thread main", " op main work", " op main work",
                                                            "thread pt_gloo_runloop", " op a", " op b", " op c"}));
}

TEST(Forest, ASegmentCostsWhatIsInItWhateverTheThreadsAndSteps) {
  // One driving thread, and as many short-lived ones as steps, each with one call.
  constexpr uint32_t kMany = 3'000;
  constexpr trace::Nanos kStep = 100;
  std::vector<TestSpan> spans;
  for (uint32_t i = 0; i < kMany; ++i) {
    const trace::Nanos at = i * kStep;
    spans.push_back({0, at, kStep - 1, "step"});
    spans.push_back({0, at + 10, 5, "call"});
    spans.push_back({1 + i, at + 20, 5, "work"});
  }
  TestRun run(std::move(spans), 1 + kMany, 1 + kMany);
  for (uint32_t i = 0; i < kMany; ++i) run.AddStep(i * kStep, (i + 1) * kStep);
  SymbolTable table;
  ForestBuilder builder(run.store, run.trees, table);
  const auto segments = SegmentsOf(run.store, run.trees);
  ASSERT_EQ(segments.size(), kMany + 2);
  for (const Segment& segment : segments) {
    const uint64_t before = builder.visits();
    const Forest forest = builder.Build(segment);
    ASSERT_LE(builder.visits() - before, forest.size());
    if (segment.kind != Segment::Kind::kStep) continue;
    ASSERT_EQ(Names(forest, table),
              (std::vector<std::string>{"thread main", " op step", "  op call", "thread thread", " op work"}));
  }
  EXPECT_EQ(builder.visits(), 3 * kMany);
}

TEST(Forest, SegmentsMayBeBuiltInAnyOrder) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const TestRun run = TestRun::Random(seed, 6);
    const auto segments = SegmentsOf(run.store, run.trees);
    SymbolTable table;
    ForestBuilder builder(run.store, run.trees, table);
    std::vector<std::vector<SpanRow>> forward;
    for (const Segment& segment : segments) forward.push_back(builder.Build(segment).span);
    for (size_t i = segments.size(); i-- > 0;) EXPECT_EQ(builder.Build(segments[i]).span, forward[i]);
  }
}

TEST(Forest, DeepCallsNeedNoRecursion) {
  std::vector<TestSpan> spans;
  constexpr trace::Nanos kDeep = 60'000;
  for (trace::Nanos i = 0; i < kDeep; ++i) spans.push_back({0, i, 3 * kDeep - 2 * i, "f"});
  TestRun run(std::move(spans), 1, 1);
  SymbolTable table;
  const Forest forest = ForestBuilder(run.store, run.trees, table).Build(SegmentsOf(run.store, run.trees).front());
  ASSERT_EQ(forest.size(), static_cast<size_t>(kDeep) + 1);
  EXPECT_EQ(forest.depth.back(), kDeep);
}

TEST(Forest, SliceKeepsTheTreeAsFarAsItHoldsIt) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const TestRun run = TestRun::Random(seed, 3);
    base::Rng rng(seed);
    const SpanRow symptom(static_cast<uint32_t>(rng.Below(run.store.spans.size())));
    const auto budget = 1 + static_cast<uint32_t>(rng.Below(30));
    const slice::Slice slice = slice::CausalSlice(run.store, run.trees, symptom, {.budget = budget});
    SymbolTable table;
    const Forest forest = ForestBuilder(run.store, run.trees, table).Build(slice);
    ASSERT_EQ(forest.size(), slice.nodes.size());
    EXPECT_TRUE(tpe::ValidateForest(View(forest.symbol, forest)).ok());
    std::set<uint32_t> in_slice, in_forest;
    for (const auto& node : slice.nodes) in_slice.insert(node.span.value());
    for (const SpanRow span : forest.span) in_forest.insert(span.value());
    EXPECT_EQ(in_slice, in_forest);
    // A node whose parent is there stands below it.
    for (size_t i = 0; i < forest.size(); ++i) {
      const SpanRow parent = run.store.spans.parent[forest.span[i].value()];
      if (!parent.valid() || in_slice.count(parent.value()) == 0) continue;
      size_t above = i;
      while (above > 0 && forest.depth[above] != forest.depth[i] - 1) --above;
      EXPECT_EQ(forest.span[above], parent) << seed;
    }
  }
}

}  // namespace
}  // namespace teller::encode
