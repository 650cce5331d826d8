#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "ingest/run.hpp"
#include "retime/calls.hpp"
#include "retime/step_times.hpp"
#include "tests/real_files.hpp"
#include "tree/build.hpp"

namespace teller {
namespace {

using base::Nanos;

/// A recorded run with a known fault in some of its steps.
struct Run {
  trace::Store store;
  trace::Trees trees;
  retime::Graph graph;

  explicit Run(const std::string& name) {
    ingest::RunInputs inputs;
    inputs.paths.push_back("../shared/data/lab/fsdp/" + name + "/traces");
    auto read = ingest::ReadRun(inputs, {});
    EXPECT_TRUE(read) << name;
    if (!read) return;
    store = std::move(*read);
    trees = tree::Build(store, 1);
    graph = retime::BuildGraph(store, trees);
  }

  /// Index into the steps; -1 when there is none.
  int Step(int rank, const std::string& name, size_t nth = 0) const {
    for (size_t s = 0; s < trees.steps.size(); ++s) {
      if (trees.steps[s].rank == rank && trees.steps[s].name == name && nth-- == 0) return static_cast<int>(s);
    }
    return -1;
  }

  /// Decode steps of the rank that no label names.
  std::vector<uint32_t> Healthy(int rank, const std::vector<uint32_t>& faulty) const {
    std::vector<uint32_t> out;
    for (uint32_t s = 0; s < trees.steps.size(); ++s) {
      const trace::Step& step = trees.steps[s];
      const bool near = std::any_of(faulty.begin(), faulty.end(), [&](uint32_t f) {
        return std::abs(static_cast<int>(trees.steps[f].index) - static_cast<int>(step.index)) <= 1;
      });
      if (step.rank == rank && step.name.starts_with("decode") && !near) out.push_back(s);
    }
    return out;
  }

  /// How long step `s` takes with the changes: as recorded, but for what they add.
  Nanos Predict(uint32_t s, const retime::Changes& changes) const {
    const auto before = retime::StepTimes(store, trees, graph, retime::Replay(store, trees, graph));
    const auto after = retime::StepTimes(store, trees, graph, retime::Replay(store, trees, graph, changes));
    return trees.steps[s].duration() + after[s].replayed - before[s].replayed;
  }
};

/// Errors of predicted faulty steps against the real ones.
struct Twins {
  std::vector<double> errors;

  void Compare(const char* name, Nanos real, std::vector<Nanos> predicted) {
    ASSERT_FALSE(predicted.empty()) << name;
    std::sort(predicted.begin(), predicted.end());
    const Nanos middle = predicted[predicted.size() / 2];
    const double error = std::fabs(static_cast<double>(middle - real)) / static_cast<double>(real);
    std::printf("  %-22s really %6.1f ms, planted into %zu healthy steps %6.1f ms: error %.1f %%\n", name, static_cast<double>(real) / 1e6,
                predicted.size(), static_cast<double>(middle) / 1e6, 100 * error);
    errors.push_back(error);
  }
};

/// The slow call of the real step is planted at the same place of the healthy ones.
void SlowOperator(Twins& twins) {
  const Run run("slow_mm_tp_w2");
  const retime::CallFinder finder(run.store, run.trees);
  const base::StringId mm = run.store.strings.Find("aten::mm");
  const std::vector<uint32_t> faulty = {3, 4};  // steps 7 and 8 of the run; the trace begins at 4
  const std::vector<uint32_t> mine = [&] {
    std::vector<uint32_t> out;
    for (uint32_t s = 0; s < run.trees.steps.size(); ++s) {
      if (run.trees.steps[s].rank == 1 && std::count(faulty.begin(), faulty.end(), run.trees.steps[s].index) > 0) out.push_back(s);
    }
    return out;
  }();
  ASSERT_EQ(mine.size(), 2U);
  for (const uint32_t bad : mine) {
    const auto calls = finder.CallsIn(bad, mm).calls;
    const auto slow = std::max_element(calls.begin(), calls.end(), [&](auto a, auto b) {
      return run.store.spans.duration[a.value()] < run.store.spans.duration[b.value()];
    });
    std::vector<Nanos> predicted;
    for (const uint32_t good : run.Healthy(1, mine)) {
      const auto same = finder.CallsIn(good, mm).calls;
      if (same.size() != calls.size()) continue;
      const trace::SpanRow call = same[static_cast<size_t>(slow - calls.begin())];
      retime::Changes changes;
      finder.Scale(call, static_cast<double>(run.store.spans.duration[slow->value()]) / static_cast<double>(run.store.spans.duration[call.value()]), changes);
      predicted.push_back(run.Predict(good, changes));
    }
    twins.Compare("slow_mm_tp_w2", run.trees.steps[bad].duration(), predicted);
  }
}

/// A stop of known length before the n-th operator of the healthy steps, on the rank that was stopped.
void Stop(Twins& twins, const std::string& name, int rank, const std::vector<uint32_t>& indices, const std::vector<double>& milliseconds) {
  const Run run(name);
  std::vector<uint32_t> faulty;
  for (uint32_t s = 0; s < run.trees.steps.size(); ++s) {
    if (run.trees.steps[s].rank == rank && std::count(indices.begin(), indices.end(), run.trees.steps[s].index) > 0) faulty.push_back(s);
  }
  ASSERT_EQ(faulty.size(), indices.size()) << name;
  for (size_t i = 0; i < faulty.size(); ++i) {
    std::vector<Nanos> predicted;
    for (const uint32_t good : run.Healthy(rank, faulty)) {
      const trace::Step& step = run.trees.steps[good];
      const trace::Track& track = run.store.track_of(step.span.value());
      std::vector<uint32_t> ops;
      for (uint32_t row = track.first_span; row < track.first_span + track.span_count; ++row) {
        const bool inside = run.store.spans.begin[row] > step.begin && run.store.spans.end(row) < step.end;
        if (inside && run.store.kind(row) == trace::SpanKind::kOp) ops.push_back(row);
      }
      if (ops.empty()) continue;
      retime::Changes changes;
      changes.pauses.push_back({trace::SpanRow(ops[ops.size() / 3]), static_cast<Nanos>(milliseconds[i] * 1e6)});
      predicted.push_back(run.Predict(good, changes));
    }
    twins.Compare(name.c_str(), run.trees.steps[faulty[i]].duration(), predicted);
  }
}

/// Transfers of the healthy steps take as long as those at the same place of the real one.
void SlowLink(Twins& twins) {
  const Run run("net_rate_fsdp_w2");
  const auto inside = [&](uint32_t s) {
    std::vector<uint32_t> out;
    for (uint32_t c = 0; c < run.trees.collectives.size(); ++c) {
      const Nanos at = run.trees.collectives[c].members.front().arrival;
      if (at >= run.trees.steps[s].begin && at < run.trees.steps[s].end) out.push_back(c);
    }
    return out;
  };
  std::vector<uint32_t> faulty;
  for (const char* name : {"decode step 1", "decode step 2", "decode step 3"}) {
    // The limit began with the third request's first decode step: the longest of each name.
    int longest = -1;
    for (size_t nth = 0; run.Step(0, name, nth) >= 0; ++nth) {
      const int s = run.Step(0, name, nth);
      if (longest < 0 || run.trees.steps[static_cast<size_t>(s)].duration() > run.trees.steps[static_cast<size_t>(longest)].duration()) longest = s;
    }
    ASSERT_GE(longest, 0);
    faulty.push_back(static_cast<uint32_t>(longest));
  }
  for (const uint32_t bad : faulty) {
    const auto slow = inside(bad);
    std::vector<Nanos> predicted;
    for (const uint32_t good : run.Healthy(0, faulty)) {
      const auto same = inside(good);
      if (same.size() != slow.size()) continue;
      retime::Changes changes;
      for (size_t i = 0; i < same.size(); ++i) {
        const auto usual = static_cast<double>(std::max<Nanos>(1, run.trees.collectives[same[i]].transfer));
        changes.transfers.push_back({same[i], static_cast<double>(run.trees.collectives[slow[i]].transfer) / usual});
      }
      predicted.push_back(run.Predict(good, changes));
    }
    twins.Compare("net_rate_fsdp_w2", run.trees.steps[bad].duration(), predicted);
  }
}

// A healthy step with the known fault planted takes as long as the real step that had it.
TEST(RetimeReal, PlantedFaultsTakeAsLongAsRealOnes) {
  TELLER_NEED_REAL_FILES();
  Twins twins;
  SlowOperator(twins);
  Stop(twins, "late_host_fsdp_w2", 0, {3}, {161.719});
  Stop(twins, "sigstop_tp_w4", 2, {8, 9}, {251.794, 250.418});
  SlowLink(twins);
  ASSERT_GE(twins.errors.size(), 8U);
  std::sort(twins.errors.begin(), twins.errors.end());
  const double median = twins.errors[twins.errors.size() / 2];
  std::printf("  median error over %zu faulty steps: %.1f %%\n", twins.errors.size(), 100 * median);
  EXPECT_LE(median, 0.10);
}

}  // namespace
}  // namespace teller
