#include "tree/nesting.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "base/rng.hpp"

namespace teller::tree {
namespace {

using trace::SpanKind;

struct Planned {
  std::string name;
  trace::Nanos begin = 0;
  trace::Nanos end = 0;
  SpanKind kind = SpanKind::kOp;
};

/// One track of these spans, sorted as the store wants them.
trace::Store MakeStore(std::vector<Planned> spans, bool stream = false) {
  std::stable_sort(spans.begin(), spans.end(), [](const Planned& a, const Planned& b) {
    return std::tuple(a.begin, -a.end) < std::tuple(b.begin, -b.end);
  });
  trace::Store store;
  store.files.push_back({.path = "test"});
  store.processes.push_back({.file = trace::FileRow(0)});
  store.tracks.push_back(
      {.process = trace::ProcessRow(0), .is_stream = stream, .span_count = static_cast<uint32_t>(spans.size())});
  for (int kind = 0; kind < trace::kSpanKinds; ++kind) {
    store.categories.push_back({std::to_string(kind), static_cast<SpanKind>(kind)});
  }
  for (const auto& span : spans) {
    store.spans.begin.push_back(span.begin);
    store.spans.duration.push_back(span.end - span.begin);
    store.spans.name.push_back(store.strings.Intern(span.name));
    store.spans.track.push_back(trace::TrackRow(0));
    store.spans.category.push_back(static_cast<uint8_t>(span.kind));
  }
  return store;
}

std::string ParentOf(const trace::Store& store, std::string_view name) {
  for (size_t i = 0; i < store.spans.size(); ++i) {
    if (store.name(i) != name) continue;
    return store.spans.parent[i].valid() ? std::string(store.name(store.spans.parent[i].value())) : "-";
  }
  return "?";
}

TEST(Nest, TheInnermostSpanThatContainsItIsTheParent) {
  auto store = MakeStore({{"a", 0, 100}, {"b", 10, 50}, {"c", 20, 30}, {"d", 50, 60}, {"e", 100, 110}});
  Nest(store, 1);
  EXPECT_EQ(ParentOf(store, "a"), "-");
  EXPECT_EQ(ParentOf(store, "b"), "a");
  EXPECT_EQ(ParentOf(store, "c"), "b");
  EXPECT_EQ(ParentOf(store, "d"), "a") << "intervals are half open";
  EXPECT_EQ(ParentOf(store, "e"), "-");
  EXPECT_EQ(store.spans.depth[2], 2);
}

TEST(Nest, EqualSpansNestInInputOrderAndEmptyOnesHoldNothing) {
  auto store = MakeStore({{"first", 0, 10}, {"second", 0, 10}, {"empty", 5, 5}, {"after", 5, 6}, {"at_end", 10, 10}});
  Nest(store, 1);
  EXPECT_EQ(ParentOf(store, "second"), "first");
  EXPECT_EQ(ParentOf(store, "empty"), "after") << "the longer one stands first";
  EXPECT_EQ(ParentOf(store, "after"), "second");
  EXPECT_EQ(ParentOf(store, "at_end"), "-");
}

TEST(Nest, APartialOverlapBecomesASiblingAndIsCounted) {
  auto store = MakeStore({{"a", 0, 100}, {"b", 10, 50}, {"cross", 40, 60}, {"inside", 45, 48}, {"later", 55, 58}});
  Nest(store, 1);
  EXPECT_EQ(ParentOf(store, "cross"), "a");
  EXPECT_EQ(ParentOf(store, "inside"), "cross");
  EXPECT_EQ(ParentOf(store, "later"), "cross");
  EXPECT_EQ(store.diagnostics.Count("tree.overlap"), 1u);
  EXPECT_FALSE(store.diagnostics.LostInput());
}

TEST(Nest, CrossingsOfInterpreterFramesAreCountedApart) {
  auto store = MakeStore({{"frame", 0, 50, SpanKind::kPython}, {"range", 40, 60, SpanKind::kAnnotation}});
  Nest(store, 1);
  EXPECT_EQ(ParentOf(store, "range"), "-");
  EXPECT_EQ(store.diagnostics.Count("tree.overlap_python"), 1u);
  EXPECT_EQ(store.diagnostics.Count("tree.overlap"), 0u);
}

TEST(Nest, KernelsNeverHoldKernels) {
  auto store = MakeStore({{"range", 0, 100, SpanKind::kGpuAnnotation},
                          {"k1", 10, 40, SpanKind::kKernel},
                          {"k2", 20, 30, SpanKind::kKernel},
                          {"k3", 90, 120, SpanKind::kKernel},
                          {"k4", 95, 99, SpanKind::kKernel}},
                         true);
  Nest(store, 1);
  EXPECT_EQ(ParentOf(store, "k1"), "range");
  EXPECT_EQ(ParentOf(store, "k2"), "range");
  EXPECT_EQ(ParentOf(store, "k3"), "-");
  EXPECT_EQ(ParentOf(store, "k4"), "range") << "a kernel that crosses the range does not close it";
  EXPECT_EQ(store.diagnostics.Count("tree.overlap_stream"), 2u);
  EXPECT_EQ(store.diagnostics.Count("tree.overlap_range"), 1u);
}

TEST(Nest, DepthIsBounded) {
  std::vector<Planned> spans;
  for (int i = 0; i < 70000; ++i) spans.push_back({"s", i, 200000 - i});
  auto store = MakeStore(spans);
  Nest(store, 1);
  EXPECT_EQ(*std::max_element(store.spans.depth.begin(), store.spans.depth.end()), 65000);
  EXPECT_EQ(store.diagnostics.Count("tree.too_deep"), 70000u - 65001u);
}

/// Random intervals: every parent contains its child, stands before it, and no closer container was passed over.
TEST(Nest, ParentsContainTheirChildrenOnRandomInput) {
  base::Rng rng(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<Planned> spans;
    for (int i = 0; i < 60; ++i) {
      const auto begin = static_cast<trace::Nanos>(rng.Below(100));
      spans.push_back({"s", begin, begin + static_cast<trace::Nanos>(rng.Below(40))});
    }
    auto store = MakeStore(spans);
    Nest(store, 2);
    for (size_t row = 0; row < store.spans.size(); ++row) {
      const auto parent = store.spans.parent[row];
      ASSERT_EQ(store.spans.depth[row], parent.valid() ? store.spans.depth[parent.value()] + 1 : 0);
      if (!parent.valid()) continue;
      ASSERT_LT(parent.value(), row);
      ASSERT_LE(store.spans.begin[parent.value()], store.spans.begin[row]);
      ASSERT_GE(store.spans.end(parent.value()), store.spans.end(row));
      for (size_t other = parent.value() + 1; other < row; ++other) {
        const bool contains =
            store.spans.end(other) >= store.spans.end(row) && store.spans.end(other) > store.spans.begin[row];
        ASSERT_FALSE(contains) << "a later begun span contains it too";
      }
    }
  }
}

}  // namespace
}  // namespace teller::tree
