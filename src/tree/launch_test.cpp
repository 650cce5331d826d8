#include "tree/launch.hpp"

#include <gtest/gtest.h>

namespace teller::tree {
namespace {

using trace::SpanKind;
using trace::SpanRow;

/// A store that is built span by span; tracks do not matter here but for their process.
class Builder {
 public:
  Builder() {
    for (int kind = 0; kind < trace::kSpanKinds; ++kind) {
      store.categories.push_back({std::to_string(kind), static_cast<SpanKind>(kind)});
    }
  }
  uint32_t Process() {
    store.processes.push_back({});
    store.tracks.push_back({.process = trace::ProcessRow(static_cast<uint32_t>(store.processes.size() - 1))});
    return static_cast<uint32_t>(store.tracks.size() - 1);
  }
  SpanRow Add(uint32_t track, SpanKind kind, trace::Nanos begin, uint32_t correlation, uint64_t node = 0) {
    const auto row = static_cast<uint32_t>(store.spans.size());
    store.spans.begin.push_back(begin);
    store.spans.duration.push_back(1);
    store.spans.name.push_back(trace::StringId(0));
    store.spans.track.push_back(trace::TrackRow(track));
    store.spans.category.push_back(static_cast<uint8_t>(kind));
    store.gpu_args.Append(row, {.graph_node = node, .correlation = correlation});
    return SpanRow(row);
  }
  trace::Trees Link() const {
    trace::Trees trees;
    LinkLaunches(store, trees);
    return trees;
  }
  SpanRow LaunchOf(SpanRow work) const {
    for (const auto& link : Link().launches) {
      if (link.work == work) return link.launch;
    }
    return {};
  }

  trace::Store store;
};

TEST(LinkLaunches, JoinsWithinOneProcessOnly) {
  Builder b;
  const auto p = b.Process();
  const auto q = b.Process();
  const auto launch_p = b.Add(p, SpanKind::kRuntime, 10, 7);
  const auto launch_q = b.Add(q, SpanKind::kDriver, 10, 7);
  const auto kernel_p = b.Add(p, SpanKind::kKernel, 20, 7);
  const auto kernel_q = b.Add(q, SpanKind::kKernel, 20, 7);
  EXPECT_EQ(b.LaunchOf(kernel_p), launch_p);
  EXPECT_EQ(b.LaunchOf(kernel_q), launch_q);
}

TEST(LinkLaunches, OneGraphLaunchHasAllItsKernels) {
  Builder b;
  const auto p = b.Process();
  const auto launch = b.Add(p, SpanKind::kRuntime, 10, 7);
  for (uint64_t node = 1; node <= 500; ++node) b.Add(p, SpanKind::kKernel, 20, 7, node);
  const auto trees = b.Link();
  EXPECT_EQ(trees.gpu_work, 500u);
  EXPECT_EQ(trees.gpu_work_linked, 500u);
  for (const auto& link : trees.launches) EXPECT_EQ(link.launch, launch);
}

TEST(LinkLaunches, CountsWorkWhoseLaunchIsNotInTheFile) {
  Builder b;
  const auto p = b.Process();
  b.Add(p, SpanKind::kRuntime, 10, 7);
  b.Add(p, SpanKind::kKernel, 20, 8);
  b.Add(p, SpanKind::kCopy, 20, 7);
  b.Add(p, SpanKind::kKernel, 20, 0);
  const auto trees = b.Link();
  EXPECT_EQ(trees.gpu_work, 2u) << "work without an id cannot be linked at all";
  EXPECT_EQ(trees.gpu_work_linked, 1u);
  EXPECT_EQ(trees.gpu_work_unlaunched, 1u);
}

TEST(LinkLaunches, ARecycledIdMeansTheLastCallBefore) {
  Builder b;
  const auto p = b.Process();
  const auto first = b.Add(p, SpanKind::kRuntime, 10, 7);
  const auto second = b.Add(p, SpanKind::kRuntime, 1000, 7);
  const auto early = b.Add(p, SpanKind::kKernel, 20, 7);
  const auto late = b.Add(p, SpanKind::kKernel, 1020, 7);
  const auto skewed = b.Add(p, SpanKind::kKernel, 2, 7);
  EXPECT_EQ(b.LaunchOf(early), first);
  EXPECT_EQ(b.LaunchOf(late), second);
  EXPECT_EQ(b.LaunchOf(skewed), first) << "clocks of host and device differ";
}

TEST(LinkLaunches, ManyShuffledIdsAreAllFound) {
  Builder b;
  const auto p = b.Process();
  for (uint32_t i = 1; i <= 1000; ++i) b.Add(p, SpanKind::kRuntime, i, (i * 7919) % 10007);
  for (uint32_t i = 1; i <= 1000; ++i) b.Add(p, SpanKind::kKernel, 2000 + i, (i * 7919) % 10007);
  EXPECT_EQ(b.Link().gpu_work_linked, 1000u);
}

}  // namespace
}  // namespace teller::tree
