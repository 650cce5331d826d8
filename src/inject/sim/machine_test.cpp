#include "inject/sim/machine.hpp"

#include <gtest/gtest.h>

#include <map>

namespace teller::inject::sim {
namespace {

using base::kMilli;

constexpr Layout kPair{.engine = Engine::kVllm, .ranks = 4, .parts = 4, .layers = 4};

StepPlan Decode(bool graph) {
  return {.name = "step", .shape = {8, 4000, 0, 8}, .graph = graph};
}

/// Stays of `steps` steps in a row.
std::vector<std::vector<Stay>> Steps(Machine& machine, int steps, const Effects& effects, bool graph) {
  std::vector<std::unique_ptr<TraceFile>> none;
  std::vector<std::vector<Stay>> out;
  Nanos now = base::kSecond;
  for (int k = 0; k < steps; ++k) {
    out.push_back(machine.Step({Decode(graph)}, now, effects, none));
    for (const Stay& stay : out.back()) now = std::max(now, stay.end);
  }
  return out;
}

double Mean(const std::vector<std::vector<Stay>>& stays, int rank) {
  double sum = 0;
  for (const auto& step : stays) sum += static_cast<double>(step[rank].end - step[rank].begin);
  return sum / static_cast<double>(stays.size());
}

TEST(Machine, EqualSeedsGiveEqualTimes) {
  Machine one(kPair, 7);
  Machine two(kPair, 7);
  const auto a = Steps(one, 5, {}, true);
  const auto b = Steps(two, 5, {}, true);
  for (size_t k = 0; k < a.size(); ++k) {
    for (int r = 0; r < kPair.ranks; ++r) EXPECT_EQ(a[k][r].end, b[k][r].end);
  }
}

TEST(Machine, OneSlowDeviceHoldsEverybody) {
  Machine healthy(kPair, 3);
  Machine faulty(kPair, 3);
  Effects slow;
  slow.rank = 2;
  slow.device = 4;
  const auto before = Steps(healthy, 20, {}, true);
  const auto after = Steps(faulty, 20, slow, true);
  const double own = Mean(after, 2) - Mean(before, 2);
  EXPECT_GT(own, 0.2 * Mean(before, 2));
  // What comes after the last collective is the slow one's alone.
  for (int r = 0; r < kPair.ranks; ++r) EXPECT_GT(Mean(after, r) - Mean(before, r), 0.8 * own) << r;
}

TEST(Machine, AStopOfOneHostHoldsEverybodyForItsLength) {
  Machine machine(kPair, 5);
  std::vector<std::unique_ptr<TraceFile>> none;
  const Nanos begin = base::kSecond;
  machine.AddStop(1, {begin + kMilli / 10, begin + 50 * kMilli});
  const auto& stays = machine.Step({Decode(true)}, begin, {}, none);
  for (const Stay& stay : stays) {
    EXPECT_GT(stay.end, begin + 50 * kMilli);
    EXPECT_LT(stay.end, begin + 70 * kMilli);
  }
}

constexpr Layout kPipeline{.engine = Engine::kVllm, .ranks = 4, .parts = 2, .stages = 2, .layers = 4};

TEST(Machine, EveryLayerIsComputedByOneStageAndEveryStageButTheLastSends) {
  Layout whole = kPair;
  whole.parts = 2;
  whole.ranks = 2;
  Layout uneven = kPipeline;
  uneven.stages = 3;
  uneven.ranks = 6;
  for (const Layout& layout : {kPipeline, uneven}) {
    std::map<Role, int> of_whole;
    for (const Op& op : Program(whole)) ++of_whole[op.role];
    std::map<Role, int> of_stages;
    int sent = 0;
    int stage = 0;
    for (const Op& op : Program(layout)) {
      EXPECT_GE(op.stage, stage);
      stage = op.stage;
      if (op.layer >= 0) {
        EXPECT_EQ(op.stage, layout.stage_of_layer(op.layer));
      }
      if (op.role != Role::kPass) {
        ++of_stages[op.role];
        continue;
      }
      sent += op.receives ? -1 : 1;
      EXPECT_LT(op.stage, layout.stages - 1);
      EXPECT_GE(sent, 0) << "received before it was sent";
    }
    EXPECT_EQ(sent, 0);
    EXPECT_EQ(stage, layout.stages - 1);
    EXPECT_EQ(of_stages, of_whole);
  }
}

TEST(Machine, AStageIsFreeForTheNextStepWhileTheLastOneIsAtThis) {
  Machine machine(kPipeline, 3);
  std::vector<std::unique_ptr<TraceFile>> none;
  const std::vector<Stay> one = machine.Step({Decode(true)}, base::kSecond, {}, none);
  EXPECT_LT(one[0].end, one[2].end);
  const std::vector<Stay> two = machine.Step({Decode(true)}, one[0].end, {}, none);
  EXPECT_LT(two[0].begin, one[2].end);
  EXPECT_GE(two[2].begin, one[2].end);
}

TEST(Machine, LaterStagesWaitForASlowOneAndEarlierOnesDoNot) {
  for (const bool graph : {true, false}) {
    Machine healthy(kPipeline, 3);
    Machine faulty(kPipeline, 3);
    Effects slow;
    slow.rank = 1;
    slow.in_step = 20 * kMilli;
    const auto before = Steps(healthy, 10, {}, graph);
    const auto after = Steps(faulty, 10, slow, graph);
    // Its peer of the same stage meets it in collectives, the next stage in what it receives.
    for (const int r : {0, 1, 2, 3}) EXPECT_GT(Mean(after, r) - Mean(before, r), 15e6) << r;
    slow.rank = 3;
    Machine late(kPipeline, 3);
    const auto last = Steps(late, 10, slow, graph);
    for (const int r : {0, 1}) EXPECT_LT(Mean(last, r) - Mean(before, r), 5e6) << r;
    for (const int r : {2, 3}) EXPECT_GT(Mean(last, r) - Mean(before, r), 15e6) << r;
  }
}

TEST(Machine, ASlowLinkBetweenStagesHoldsWhatIsBehindIt) {
  Machine healthy(kPipeline, 3);
  Machine faulty(kPipeline, 3);
  Effects slow;
  slow.link = 1;
  slow.between_stages = true;
  slow.link_scale = 500;
  const auto before = Steps(healthy, 10, {}, true);
  const auto after = Steps(faulty, 10, slow, true);
  for (const int r : {0, 1}) EXPECT_LT(Mean(after, r) - Mean(before, r), 1e6) << r;
  for (const int r : {2, 3}) EXPECT_GT(Mean(after, r) - Mean(before, r), 2e6) << r;
}

TEST(Machine, LaunchingOneByOneIsSlowerThanAGraph) {
  Machine one(kPair, 5);
  Machine two(kPair, 5);
  Effects fallback;
  fallback.no_graph = true;
  EXPECT_GT(Mean(Steps(two, 10, fallback, true), 0), Mean(Steps(one, 10, {}, true), 0));
}

TEST(Machine, ADraftModelCostsTimeAndACheckpointHoldsEverybody) {
  Layout layout = kPair;
  layout.drafts = 4;
  Machine plain(layout, 5);
  Machine drafting(layout, 5);
  std::vector<std::unique_ptr<TraceFile>> none;
  StepPlan plan = Decode(true);
  const Nanos without = plain.Step({plan}, base::kSecond, {}, none).front().end;
  plan.drafts = 4;
  const auto with = drafting.Step({plan}, base::kSecond, {}, none);
  EXPECT_GT(with.front().end, without);
  const std::vector<Nanos> writes = {5 * kMilli, 90 * kMilli, 5 * kMilli, 5 * kMilli};
  const Nanos before = with.front().end;
  for (const Stay& stay : drafting.Save(1'000'000, writes, none)) {
    EXPECT_GT(stay.end, before + 90 * kMilli);
    EXPECT_LT(stay.end, before + 110 * kMilli);
  }
}

TEST(Machine, EveryEffectCostsTime) {
  const double usual = [] {
    Machine machine(kPair, 9);
    return Mean(Steps(machine, 10, {}, false), 0);
  }();
  std::vector<Effects> wrong(6);
  wrong[0].host = 5;
  wrong[1].role = Role::kDown;
  wrong[1].role_scale = 20;
  wrong[2].link = 1;
  wrong[2].link_scale = 60;
  wrong[3].transfer = 10;
  wrong[4].syncs = 8;
  wrong[5].in_step = 20 * kMilli;
  for (const Effects& effects : wrong) {
    Machine machine(kPair, 9);
    EXPECT_GT(Mean(Steps(machine, 10, effects, false), 0), usual);
  }
}

TEST(Tables, DurationsGrowWithTheShapeAndShrinkWithTheParts) {
  const Tables& tables = StandardTables();
  for (size_t role = 0; role < static_cast<size_t>(Role::kReduce); ++role) {
    const Role r = static_cast<Role>(role);
    const double small = tables.Typical(r, {8, 4000, 0, 8}, 1);
    const double large = tables.Typical(r, {4096, 4000, 4096 * 2048, 8}, 1);
    EXPECT_GT(small, 0);
    EXPECT_GE(large, small) << role;
    EXPECT_LE(tables.Typical(r, {8, 4000, 0, 8}, 4), small) << role;
  }
}

TEST(Tables, DrawsStayInsideAndHaveTheMedian) {
  base::Rng rng(1);
  const Quantiles& q = StandardTables().long_spread;
  int below = 0;
  for (int k = 0; k < 10000; ++k) {
    const double x = q.Draw(rng);
    EXPECT_GE(x, q.values.front());
    EXPECT_LE(x, q.values.back());
    below += x < q.Median();
  }
  EXPECT_NEAR(below, 5000, 250);
}

}  // namespace
}  // namespace teller::inject::sim
