#include "tree/graph.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/rng.hpp"
#include "tree/graph_recording_for_test.hpp"
#include "tree/module_path.hpp"

namespace teller::tree {
namespace {

TEST(Graphs, AReplayGetsModulesAndOpsOfItsCapture) {
  Recording run;
  const auto p = run.Process();
  run.Reference(p, MakeModel(12), Shown::kNamedLaunches);
  for (int i = 0; i < 3; ++i) run.Replay(p, MakeModel(12));
  const auto score = run.Attribute();
  EXPECT_EQ(score.kernels, 3 * MakeModel(12).size());
  EXPECT_EQ(score.modules, score.kernels);
  EXPECT_EQ(score.ops, score.kernels);
  EXPECT_EQ(score.sure, score.kernels);
  ASSERT_EQ(run.trees().graph_replays.size(), 3u);
  EXPECT_EQ(run.trees().graph_replays[1].attributed, run.trees().graph_replays[1].work);
}

TEST(Graphs, ATwinFileOfTheRunServesTooAndAnotherRanksWithLessTrust) {
  for (const int rank : {0, 1}) {
    Recording run;
    run.Reference(run.Process(0), MakeModel(6), Shown::kNamedLaunches);
    run.Replay(run.Process(rank), MakeModel(6));
    const auto score = run.Attribute();
    EXPECT_EQ(score.modules, score.kernels);
    for (const auto& origin : run.trees().graph_origins) {
      if (rank == 0) {
        EXPECT_GE(origin.confidence, 0.95F);
      } else {
        EXPECT_LT(origin.confidence, 0.95F);
      }
    }
  }
}

TEST(Graphs, WithoutATwinNothingIsSaid) {
  Recording run;
  run.Replay(run.Process(), MakeModel(6));
  const auto score = run.Attribute();
  EXPECT_EQ(score.attributed, 0u);
  ASSERT_EQ(run.trees().graph_replays.size(), 1u);
  EXPECT_EQ(run.trees().graph_replays[0].work, score.kernels);
}

TEST(Graphs, AnotherProgramIsNoTwin) {
  base::Rng rng(7);
  for (int trial = 0; trial < 50; ++trial) {
    Recording run;
    const auto p = run.Process();
    // The same kernels in another order: what a different program with the same library looks like.
    Model other = MakeModel(8);
    for (size_t i = other.size(); i > 1; --i) std::swap(other[i - 1].name, other[rng.Below(i)].name);
    run.Reference(p, other, Shown::kNamedLaunches);
    run.Replay(p, MakeModel(8));
    EXPECT_EQ(run.Attribute().sure, 0u) << trial;
  }
}

/// Single kernels that are missing, inserted or replaced: what is said surely stays right, and most is said.
TEST(Graphs, DropsInsertionsAndReplacementsDoNotShiftLayers) {
  base::Rng rng(11);
  size_t kernels = 0, modules = 0, sure = 0, wrong = 0;
  for (int trial = 0; trial < 60; ++trial) {
    Recording run;
    const auto p = run.Process();
    const int layers = 4 + static_cast<int>(rng.Below(24));
    run.Reference(p, MakeModel(layers), Shown::kNamedLaunches);
    Model changed;
    for (const Kernel& kernel : MakeModel(layers)) {
      const uint64_t dice = rng.Below(100);
      if (dice < 4) continue;
      if (dice < 8) changed.push_back({"Memcpy-like helper " + std::to_string(rng.Below(3)), kernel.module, ""});
      changed.push_back(kernel);
      if (dice >= 8 && dice < 12) changed.back().name = "nvjet_autotuned_" + std::to_string(rng.Below(5));
    }
    run.Replay(p, changed);
    const auto score = run.Attribute();
    kernels += score.kernels;
    modules += score.modules;
    sure += score.sure;
    wrong += score.sure_wrong;
  }
  EXPECT_GE(static_cast<double>(modules), 0.9 * static_cast<double>(kernels));
  EXPECT_GE(static_cast<double>(sure), 0.8 * static_cast<double>(kernels));
  EXPECT_LE(static_cast<double>(wrong), 0.005 * static_cast<double>(sure));
}

/// With one layer less nobody can know which is missing: no layer is named surely, the class of module is.
TEST(Graphs, AMissingLayerLeavesTheLayerOpen) {
  Recording run;
  const auto p = run.Process();
  run.Reference(p, MakeModel(12), Shown::kNamedLaunches);
  run.Replay(p, MakeModel(11));
  const auto score = run.Attribute();
  EXPECT_LE(score.sure, 5u) << "only what stands outside of the layers";
  EXPECT_EQ(score.sure_wrong, 0u);
  size_t open = 0;
  for (const auto& origin : run.trees().graph_origins) {
    open += run.store().text(origin.module).find("Model_0/Layer_*") == 0;
    const bool layer = run.store().text(origin.module).find("Layer_") != std::string_view::npos;
    EXPECT_FALSE(layer && origin.confidence >= trace::kSureOrigin);
  }
  EXPECT_GE(static_cast<double>(open), 0.8 * static_cast<double>(score.kernels));
}

TEST(Graphs, ACaptureOfAnotherBatchServesAndTheNearestIsTaken) {
  Recording run;
  const auto p = run.Process();
  run.Reference(p, MakeModel(10, 256), Shown::kNamedLaunches, "capture_256_DECODE");
  run.Reference(p, MakeModel(10, 32), Shown::kNamedLaunches, "capture_32_DECODE");
  run.Reference(p, MakeModel(10, 1), Shown::kNamedLaunches, "capture_1_DECODE");
  trace::Step step{.process = trace::ProcessRow(p), .begin = run.now(), .end = run.now() + 100'000};
  step.batch = 24;
  run.steps.push_back(step);
  Model other = MakeModel(10, 24);  // tiles of none of them
  run.Replay(p, other);
  const auto score = run.Attribute();
  EXPECT_EQ(score.modules, score.kernels);
  EXPECT_EQ(score.sure_wrong, 0u);
  // The captures lie one after the other: the second one's launches are the origins.
  const auto& first = run.trees().graph_origins.front();
  ASSERT_TRUE(first.origin.valid());
  const auto& last = run.trees().graph_origins.back();
  size_t captures_before = 0;
  for (uint32_t row = 0; row < first.origin.value(); ++row)
    captures_before += run.store().name(row) == "cudaStreamBeginCapture";
  EXPECT_EQ(captures_before, 2u);
  EXPECT_GT(last.origin, first.origin);
}

TEST(Graphs, AnEagerPassWithOtherAttentionIsAReference) {
  Recording run;
  const auto p = run.Process();
  run.Reference(p, MakeModel(16, 4096, true), Shown::kEager);
  run.Replay(p, MakeModel(16));
  const auto score = run.Attribute();
  EXPECT_GE(static_cast<double>(score.modules), 0.95 * static_cast<double>(score.kernels));
  EXPECT_EQ(score.sure_wrong, 0u);
  for (const auto& origin : run.trees().graph_origins) EXPECT_EQ(origin.source, trace::GraphSource::kEager);
}

/// CUDA captures name calls only: order and number prove it, when the same place always gets the same kernel.
TEST(Graphs, ACaptureWithoutKernelNamesIsProvedByItsRepetition) {
  Recording run;
  const auto p = run.Process();
  run.Reference(p, MakeModel(12), Shown::kPlainLaunches);
  run.Replay(p, MakeModel(12));
  const auto score = run.Attribute();
  EXPECT_EQ(score.modules, score.kernels);
  EXPECT_EQ(score.sure, 0u) << "no name agrees";
}

TEST(Graphs, ACaptureWithoutKernelNamesOfAnotherModelIsRefused) {
  Recording run;
  const auto p = run.Process();
  run.Reference(p, MakeModel(9), Shown::kPlainLaunches);
  run.Replay(p, MakeModel(12));
  EXPECT_EQ(run.Attribute().attributed, 0u);
}

/// As many launches, but each one place further: places repeat as well, and still no kernel does what its place says.
TEST(Graphs, ASlideOfACaptureWithoutKernelNamesIsRefused) {
  Recording run;
  const auto p = run.Process();
  Model slid = MakeModel(12);
  std::rotate(slid.begin(), slid.begin() + 1, slid.end());
  run.Reference(p, slid, Shown::kPlainLaunches);
  run.Replay(p, MakeModel(12));
  EXPECT_EQ(run.Attribute().attributed, 0u);
}

/// The layers of a model as graphs of their own: their kernels are equal, only the order tells them apart.
std::vector<Model> Pieces(int layers) {
  const Model model = MakeModel(layers);
  const auto size = static_cast<std::ptrdiff_t>((model.size() - 3) / static_cast<size_t>(layers));
  std::vector<Model> pieces;
  for (int layer = 0; layer < layers; ++layer)
    pieces.emplace_back(model.begin() + 1 + layer * size, model.begin() + 1 + (layer + 1) * size);
  return pieces;
}

TEST(Graphs, EqualPiecesOfOnePassKeepTheirOrder) {
  Recording run;
  const auto p = run.Process();
  run.Pass(p, Pieces(8), Shown::kNamedLaunches);
  for (int i = 0; i < 3; ++i) {
    trace::Step step{.process = trace::ProcessRow(p), .begin = run.now()};
    for (const Model& piece : Pieces(8)) run.Replay(p, piece);
    step.end = run.now();
    run.steps.push_back(step);
  }
  const auto score = run.Attribute();
  EXPECT_EQ(score.modules, score.kernels);
  EXPECT_EQ(score.sure, score.kernels);
}

TEST(Graphs, EqualPiecesWithoutAnOrderLeaveTheLayerOpen) {
  Recording run;
  const auto p = run.Process();
  for (const Model& piece : Pieces(8)) run.Pass(p, {piece}, Shown::kNamedLaunches);
  for (const Model& piece : Pieces(8)) run.Replay(p, piece);
  const auto score = run.Attribute();
  EXPECT_EQ(score.sure, 0u);
  EXPECT_EQ(score.ops, score.kernels);
  for (const auto& origin : run.trees().graph_origins) {
    EXPECT_TRUE(run.store().text(origin.module).starts_with("Model_0/Layer_*")) << run.store().text(origin.module);
  }
}

TEST(CommonModule, LeavesNumbersOpenAndStopsAtOtherDifferences) {
  EXPECT_EQ(CommonModule("M_0/Layer_3/MLP_3", "M_0/Layer_4/MLP_4"), "M_0/Layer_*/MLP_*");
  EXPECT_EQ(CommonModule("M_0/Layer_*/MLP_*", "M_0/Layer_5/MLP_5"), "M_0/Layer_*/MLP_*");
  EXPECT_EQ(CommonModule("M_0/Layer_3/MLP_3", "M_0/Layer_3/Norm_7"), "M_0/Layer_3");
  EXPECT_EQ(CommonModule("A_0", "B_0"), "");
  EXPECT_EQ(CommonModule("", "B_0"), "");
}

}  // namespace
}  // namespace teller::tree
