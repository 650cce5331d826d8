#include <gtest/gtest.h>

#include "base/rng.hpp"
#include "retime/step_times.hpp"
#include "tree/build.hpp"

namespace teller::retime {
namespace {

using trace::Nanos;
using trace::SpanKind;
using trace::SpanRow;

constexpr Nanos kUs = 1000;

/// Builds a store span by span; Finish sorts as ingest does and builds the trees.
class Recording {
 public:
  trace::Store store;
  trace::Trees trees;

  Recording() {
    for (int kind = 0; kind < trace::kSpanKinds; ++kind) store.categories.push_back({"c", static_cast<SpanKind>(kind)});
    store.files.push_back({});
  }

  uint32_t Process(int rank) {
    trace::Process process;
    process.file = trace::FileRow(0);
    process.rank = rank;
    store.processes.push_back(process);
    return static_cast<uint32_t>(store.processes.size() - 1);
  }
  uint32_t Track(uint32_t process, bool is_stream) {
    trace::Track track;
    track.process = trace::ProcessRow(process);
    track.is_stream = is_stream;
    store.tracks.push_back(track);
    return static_cast<uint32_t>(store.tracks.size() - 1);
  }
  void Span(uint32_t track, SpanKind kind, const std::string& name, Nanos begin, Nanos length,
            uint32_t correlation = 0) {
    spans_.push_back({track, kind, name, begin, length, correlation});
  }

  void Finish() {
    std::stable_sort(spans_.begin(), spans_.end(), [](const Draft& a, const Draft& b) {
      return std::tuple(a.track, a.begin, -a.length) < std::tuple(b.track, b.begin, -b.length);
    });
    for (const Draft& draft : spans_) {
      trace::Track& track = store.tracks[draft.track];
      if (track.span_count++ == 0) track.first_span = static_cast<uint32_t>(store.spans.size());
      const auto row = static_cast<uint32_t>(store.spans.size());
      store.spans.begin.push_back(draft.begin);
      store.spans.duration.push_back(draft.length);
      store.spans.name.push_back(store.strings.Intern(draft.name));
      store.spans.track.push_back(trace::TrackRow(draft.track));
      store.spans.category.push_back(static_cast<uint8_t>(draft.kind));
      if (draft.correlation != 0) {
        trace::GpuArgs args;
        args.correlation = draft.correlation;
        store.gpu_args.Append(row, args);
      }
    }
    trees = tree::Build(store, 1);
  }

  SpanRow Find(const std::string& name, size_t nth = 0) const {
    for (uint32_t row = 0; row < store.spans.size(); ++row) {
      if (store.name(row) == name && nth-- == 0) return SpanRow(row);
    }
    return {};
  }

 private:
  struct Draft {
    uint32_t track;
    SpanKind kind;
    std::string name;
    Nanos begin;
    Nanos length;
    uint32_t correlation;
  };
  std::vector<Draft> spans_;
};

/// A thread that launches kernels, each 100 us, and synchronizes after every fourth.
Recording HostAndDevice(int rounds) {
  Recording r;
  const uint32_t p = r.Process(0);
  const uint32_t thread = r.Track(p, false);
  const uint32_t stream = r.Track(p, true);
  uint32_t id = 1;
  Nanos at = base::kSecond;
  Nanos stream_end = 0;
  for (int round = 0; round < rounds; ++round) {
    for (int k = 0; k < 4; ++k) {
      r.Span(thread, SpanKind::kOp, "op" + std::to_string(k), at, 20 * kUs);
      r.Span(thread, SpanKind::kRuntime, "cudaLaunchKernel", at + 10 * kUs, 5 * kUs, id);
      const Nanos begin = std::max(at + 18 * kUs, stream_end + kUs);
      r.Span(stream, SpanKind::kKernel, "kernel" + std::to_string(k), begin, 100 * kUs, id++);
      stream_end = begin + 100 * kUs;
      at += 25 * kUs;
    }
    r.Span(thread, SpanKind::kRuntime, "cudaStreamSynchronize", at, stream_end + 3 * kUs - at);
    at = stream_end + 3 * kUs + 30 * kUs;
  }
  r.Finish();
  return r;
}

Nanos LastEnd(const Recording& r, const Times& times) {
  Nanos last = 0;
  for (uint32_t row = 0; row < r.store.spans.size(); ++row) last = std::max(last, times.end(SpanRow(row)));
  return last;
}

TEST(Retime, RegularRunComesOutAsRecorded) {
  const Recording r = HostAndDevice(20);
  const Graph graph = BuildGraph(r.store, r.trees);
  const Times times = Replay(r.store, r.trees, graph);
  EXPECT_EQ(graph.kept_idle, 0U);
  EXPECT_EQ(times.dependencies_cut, 0U);
  for (uint32_t row = 0; row < r.store.spans.size(); ++row) {
    EXPECT_NEAR(static_cast<double>(times.begin(SpanRow(row))), static_cast<double>(r.store.spans.begin[row]), 2e3)
        << r.store.name(row);
    EXPECT_NEAR(static_cast<double>(times.end(SpanRow(row))), static_cast<double>(r.store.spans.end(row)), 2e3)
        << r.store.name(row);
  }
}

TEST(Retime, SlowerKernelMovesTheSynchronizationAndAllBehindIt) {
  const Recording r = HostAndDevice(20);
  const Graph graph = BuildGraph(r.store, r.trees);
  const Times plain = Replay(r.store, r.trees, graph);
  Changes changes;
  changes.spans.push_back({r.Find("kernel1", 5), 4});
  const Times slow = Replay(r.store, r.trees, graph, changes);
  EXPECT_EQ(LastEnd(r, slow) - LastEnd(r, plain), 300 * kUs);
  EXPECT_EQ(slow.begin(r.Find("op0", 4)), plain.begin(r.Find("op0", 4)));
  EXPECT_EQ(slow.begin(r.Find("op0", 6)) - plain.begin(r.Find("op0", 6)), 300 * kUs);
}

TEST(Retime, HostTimeBehindABusyDeviceCostsNothing) {
  const Recording r = HostAndDevice(20);
  const Graph graph = BuildGraph(r.store, r.trees);
  Changes changes;
  changes.spans.push_back({r.Find("op2", 7), 3});  // 40 us more while the stream has 300 us of work
  const Times times = Replay(r.store, r.trees, graph, changes);
  EXPECT_EQ(LastEnd(r, times), LastEnd(r, Replay(r.store, r.trees, graph)));
}

TEST(Retime, PauseBeforeAnIdleDeviceCountsInFull) {
  const Recording r = HostAndDevice(20);
  const Graph graph = BuildGraph(r.store, r.trees);
  Changes changes;
  changes.pauses.push_back({r.Find("op0", 7), 70 * kUs});
  const Times times = Replay(r.store, r.trees, graph, changes);
  EXPECT_EQ(LastEnd(r, times) - LastEnd(r, Replay(r.store, r.trees, graph)), 70 * kUs);
}

/// Ranks that compute and meet in a collective of their own streams; rank `late` computes longer.
Recording Ranks(int ranks, int rounds, int late, Nanos late_by, uint64_t seed) {
  Recording r;
  base::Rng rng(seed);
  std::vector<uint32_t> streams;
  for (int rank = 0; rank < ranks; ++rank) streams.push_back(r.Track(r.Process(rank), true));
  Nanos at = base::kSecond;
  for (int round = 0; round < rounds; ++round) {
    std::vector<Nanos> arrivals;
    for (int rank = 0; rank < ranks; ++rank) {
      const Nanos length = (200 + static_cast<Nanos>(rng.Below(20))) * kUs + (rank == late ? late_by : 0);
      r.Span(streams[static_cast<size_t>(rank)], SpanKind::kKernel, "gemm", at, length);
      arrivals.push_back(at + length + kUs);
    }
    const Nanos end = *std::max_element(arrivals.begin(), arrivals.end()) + 50 * kUs;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto i = static_cast<size_t>(rank);
      r.Span(streams[i], SpanKind::kKernel, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", arrivals[i], end - arrivals[i]);
    }
    at = end + kUs;
  }
  r.Finish();
  return r;
}

TEST(Retime, WithoutTheLateRanksExtraTimeAllRanksGoFaster) {
  const int rounds = 30;
  const Recording slow = Ranks(4, rounds, 2, 500 * kUs, 7);
  const Recording fast = Ranks(4, rounds, 2, 0, 7);
  const Graph graph = BuildGraph(slow.store, slow.trees);
  ASSERT_EQ(graph.meetings.size(), static_cast<size_t>(rounds));
  Changes changes;
  for (uint32_t row = 0; row < slow.store.spans.size(); ++row) {
    const auto& process = slow.store.process_of(row);
    if (process.rank != 2 || slow.store.name(row) != "gemm") continue;
    const double length = static_cast<double>(slow.store.spans.duration[row]);
    changes.spans.push_back({SpanRow(row), (length - 500e3) / length});
  }
  const Times times = Replay(slow.store, slow.trees, graph, changes);
  Nanos fast_end = 0;
  for (uint32_t row = 0; row < fast.store.spans.size(); ++row) fast_end = std::max(fast_end, fast.store.spans.end(row));
  EXPECT_NEAR(static_cast<double>(LastEnd(slow, times) - base::kSecond), static_cast<double>(fast_end - base::kSecond),
              0.01 * static_cast<double>(fast_end - base::kSecond));
}

TEST(Retime, SlowerWaitingRankChangesNothingAndSlowerLinkEverything) {
  const int rounds = 30;
  const Recording r = Ranks(3, rounds, 1, 400 * kUs, 3);
  const Graph graph = BuildGraph(r.store, r.trees);
  const Nanos plain = LastEnd(r, Replay(r.store, r.trees, graph));
  Changes waiting;
  waiting.ranks.push_back({0, 1, 1.5});  // still earlier than rank 1
  EXPECT_EQ(LastEnd(r, Replay(r.store, r.trees, graph, waiting)), plain);
  Changes link;
  link.links.push_back({0, -1, 3});
  EXPECT_EQ(LastEnd(r, Replay(r.store, r.trees, graph, link)) - plain, rounds * 100 * kUs);
}

TEST(Retime, MoreTimeNeverMakesAnythingEarlier) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    base::Rng rng(seed);
    const Recording r = seed % 2 == 0 ? HostAndDevice(6) : Ranks(3, 6, 1, 100 * kUs, seed);
    const Graph graph = BuildGraph(r.store, r.trees);
    const Times plain = Replay(r.store, r.trees, graph);
    Changes changes;
    for (int i = 0; i < 3; ++i) {
      const SpanRow row(static_cast<uint32_t>(rng.Below(r.store.spans.size())));
      if (rng.Below(2) == 0) {
        changes.spans.push_back({row, 1 + static_cast<double>(rng.Below(5))});
      } else {
        changes.pauses.push_back({row, static_cast<Nanos>(rng.Below(900)) * kUs});
      }
    }
    const Times times = Replay(r.store, r.trees, graph, changes);
    for (size_t point = 0; point < times.at.size(); ++point) {
      ASSERT_GE(times.at[point], plain.at[point]) << "seed " << seed << " point " << point;
    }
  }
}

TEST(Retime, ScalesBackToWhatItWas) {
  const Recording r = HostAndDevice(10);
  const Graph graph = BuildGraph(r.store, r.trees);
  Changes same;
  for (uint32_t row = 0; row < r.store.spans.size(); ++row) same.spans.push_back({SpanRow(row), 1});
  EXPECT_EQ(Replay(r.store, r.trees, graph, same).at, Replay(r.store, r.trees, graph).at);
}

/// Two ranks whose main threads hand an all-reduce to a worker and go on when it is done. In round `kept` all threads
/// of rank 1 stand still for 150 ms after the hand-over.
Recording HandsOver(int rounds, int kept) {
  constexpr Nanos kStood = 150'000 * kUs;
  Recording r;
  std::vector<uint32_t> mains;
  std::vector<uint32_t> workers;
  for (int rank = 0; rank < 2; ++rank) {
    const uint32_t process = r.Process(rank);
    mains.push_back(r.Track(process, false));
    workers.push_back(r.Track(process, false));
  }
  Nanos at = base::kSecond;
  for (int round = 0; round < rounds; ++round) {
    const Nanos late = round == kept ? kStood : 0;
    const Nanos end = at + 400 * kUs + late + 300 * kUs;
    for (size_t rank = 0; rank < 2; ++rank) {
      r.Span(mains[rank], SpanKind::kOp, "aten::mm", at, 300 * kUs);
      r.Span(mains[rank], SpanKind::kOp, "c10d::allreduce_", at + 310 * kUs, 50 * kUs);
      const Nanos begin = at + 400 * kUs + (rank == 1 ? late : 0);
      r.Span(workers[rank], SpanKind::kAnnotation, "gloo:all_reduce", begin, end - begin);
    }
    at = end + 60 * kUs;
  }
  r.Finish();
  return r;
}

TEST(Retime, WhatKeptAWorkerFromItsWorkIsItsOwnTime) {
  const int rounds = 12;
  const Recording r = HandsOver(rounds, 5);
  const Recording calm = HandsOver(rounds, -1);
  const Graph graph = BuildGraph(r.store, r.trees);
  ASSERT_EQ(graph.meetings.size(), static_cast<size_t>(rounds));
  const auto length = [](const Recording& run, const Times& times) {
    return static_cast<double>(LastEnd(run, times) - base::kSecond);
  };
  const Graph other = BuildGraph(calm.store, calm.trees);
  const double usual = length(calm, Replay(calm.store, calm.trees, other));
  EXPECT_NEAR(length(r, Replay(r.store, r.trees, graph)), usual + 150e6, 1e6);
  // Repaired on the worker, the main thread goes on at once: it only waited.
  Changes changes;
  const SpanRow kept = r.Find("gloo:all_reduce", static_cast<size_t>(rounds) + 5);
  const trace::TrackRow worker = r.store.spans.track[kept.value()];
  ASSERT_EQ(r.store.process_of(kept.value()).rank, 1);
  const Nanos begin = r.store.spans.begin[kept.value()];
  changes.times.push_back({worker, begin - 150'000 * kUs, begin, 0});
  EXPECT_NEAR(length(r, Replay(r.store, r.trees, graph, changes)), usual, 1e6);
}

TEST(Retime, AWorkersFirstCollectiveBeginsAsLateAsItDid) {
  Recording r;
  for (int rank = 0; rank < 2; ++rank) {
    const uint32_t process = r.Process(rank);
    const uint32_t main = r.Track(process, false);
    const uint32_t worker = r.Track(process, false);
    r.Span(main, SpanKind::kOp, "c10d::allreduce_", base::kSecond, 50 * kUs);
    r.Span(worker, SpanKind::kAnnotation, "gloo:all_reduce", base::kSecond + 40'000 * kUs, 300 * kUs);
  }
  r.Finish();
  const Graph graph = BuildGraph(r.store, r.trees);
  EXPECT_NEAR(static_cast<double>(Replay(r.store, r.trees, graph).begin(r.Find("gloo:all_reduce")) - base::kSecond),
              40e6, 1e6);
}

TEST(Retime, DependenciesThatContradictEachOtherAreCutAndCounted) {
  Recording r;
  const uint32_t p = r.Process(0);
  const uint32_t a = r.Track(p, false);
  const uint32_t b = r.Track(p, false);
  r.Span(a, SpanKind::kOp, "a", base::kSecond, 10 * kUs);
  r.Span(b, SpanKind::kOp, "b", base::kSecond, 20 * kUs);
  r.Finish();
  Graph graph = BuildGraph(r.store, r.trees);
  const SpanRow first = r.Find("a");
  const SpanRow second = r.Find("b");
  graph.waits = {{graph.position[BeginOf(first)], EndOf(second), 0, DependencyKind::kHandOver},
                 {graph.position[BeginOf(second)], EndOf(first), 0, DependencyKind::kHandOver}};
  std::sort(graph.waits.begin(), graph.waits.end(), [](const auto& x, const auto& y) { return x.at < y.at; });
  const Times times = Replay(r.store, r.trees, graph);
  EXPECT_EQ(times.dependencies_cut, 1U);
  EXPECT_EQ(times.begin(first), base::kSecond);
  EXPECT_EQ(times.begin(second), base::kSecond + 10 * kUs);
}

TEST(Retime, EmptyStoreAndStretchedTimesAreFine) {
  Recording r;
  r.Finish();
  EXPECT_TRUE(Replay(r.store, r.trees, BuildGraph(r.store, r.trees)).at.empty());
  Recording far;
  const uint32_t thread = far.Track(far.Process(0), false);
  far.Span(thread, SpanKind::kOp, "a", INT64_MAX / 2, INT64_MAX / 2);
  far.Finish();
  const Graph graph = BuildGraph(far.store, far.trees);
  Changes changes;
  changes.spans.push_back({SpanRow(0), 1e12});
  EXPECT_EQ(Replay(far.store, far.trees, graph, changes).end(SpanRow(0)), INT64_MAX);
}

}  // namespace
}  // namespace teller::retime
