#include <gtest/gtest.h>

#include "tree/graph_recording_for_test.hpp"

namespace teller::tree {
namespace {

using Sequences = std::vector<trace::LearnedSequence>;

/// A run that shows a reference of a model.
struct Taught {
  Recording run;
  Sequences sequences;

  explicit Taught(const Model& model, Shown shown = Shown::kNamedLaunches, const std::string& annotation = "") {
    run.Reference(run.Process(), model, shown, annotation);
    run.Attribute();
    sequences = run.Learn();
  }
};

TEST(LearnedGraphs, AReplayAloneGetsItsModulesFromAnEarlierCapture) {
  const Taught taught(MakeModel(12, 32));
  Recording run;
  run.Believe(taught.run, taught.sequences);
  run.Replay(run.Process(), MakeModel(12, 8));  // another batch: other tiles
  const auto score = run.Attribute();
  EXPECT_EQ(score.modules, score.kernels);
  EXPECT_EQ(score.ops, score.kernels);
  EXPECT_EQ(score.sure, score.kernels);
  for (const auto& origin : run.trees().graph_origins) {
    EXPECT_EQ(origin.source, trace::GraphSource::kLearned);
    EXPECT_TRUE(origin.learned.valid());
    EXPECT_FALSE(origin.origin.valid());
    EXPECT_LT(origin.confidence, 0.9F) << "never as sure as a capture of the run itself";
  }
}

TEST(LearnedGraphs, AnEagerPassTeachesToo) {
  const Taught taught(MakeModel(16, 4096, true), Shown::kEager);
  Recording run;
  run.Believe(taught.run, taught.sequences);
  run.Replay(run.Process(), MakeModel(16));
  const auto score = run.Attribute();
  EXPECT_GE(static_cast<double>(score.modules), 0.95 * static_cast<double>(score.kernels));
  EXPECT_EQ(score.sure_wrong, 0u);
}

TEST(LearnedGraphs, WhatTheRunItselfShowsComesFirst) {
  const Taught taught(MakeModel(6));
  Recording run;
  run.Believe(taught.run, taught.sequences);
  const auto p = run.Process();
  run.Reference(p, MakeModel(6), Shown::kNamedLaunches);
  run.Replay(p, MakeModel(6));
  run.Attribute();
  for (const auto& origin : run.trees().graph_origins) EXPECT_EQ(origin.source, trace::GraphSource::kCapture);
}

TEST(LearnedGraphs, AnotherModelsSequencesSayNothingSure) {
  // More and fewer layers, another order of the same kernels, other kernels.
  Model turned = MakeModel(12);
  std::reverse(turned.begin(), turned.end());
  Model other;
  for (int i = 0; i < 130; ++i)
    other.push_back({"conv_" + std::string(1, static_cast<char>('a' + i % 7)), "Net_0/Block_" + std::to_string(i / 7),
                     "aten::conv2d"});
  for (const Model& wrong : {MakeModel(11), MakeModel(13), MakeModel(24), turned, other}) {
    const Taught taught(wrong);
    Recording run;
    run.Believe(taught.run, taught.sequences);
    run.Replay(run.Process(), MakeModel(12));
    const auto score = run.Attribute();
    EXPECT_EQ(score.sure_wrong, 0u) << wrong.size();
    EXPECT_LE(score.sure, 5u) << wrong.size() << ": only what stands outside of the layers";
  }
}

TEST(LearnedGraphs, TwoModelsWithTheSameKernelsLeaveTheModelOpen) {
  Model renamed = MakeModel(12);
  for (Kernel& kernel : renamed) kernel.module.replace(0, 5, "Other");
  const Taught first(MakeModel(12));
  const Taught second(renamed);
  Recording run;
  run.Believe(first.run, first.sequences);
  run.Believe(second.run, second.sequences);
  run.Replay(run.Process(), MakeModel(12));
  const auto score = run.Attribute();
  EXPECT_EQ(score.sure, 0u);
}

TEST(LearnedGraphs, EqualOnesAreKeptOnceAndFilesMerge) {
  Recording run;
  const auto p = run.Process();
  for (const int batch : {8, 16, 32})  // tiles differ, and nothing else
    run.Reference(p, MakeModel(6, batch), Shown::kNamedLaunches, "capture_" + std::to_string(batch));
  run.Reference(p, MakeModel(6), Shown::kEager);
  run.Attribute();
  const Sequences one = run.Learn();
  ASSERT_EQ(one.size(), 2u);
  EXPECT_EQ(one[0].source, trace::GraphSource::kCapture);
  EXPECT_EQ(one[0].batch, 8);
  EXPECT_EQ(one[1].source, trace::GraphSource::kEager);

  const Taught other(MakeModel(9));
  Recording merged;
  merged.Believe(run, one);
  merged.Believe(run, one);
  merged.Believe(other.run, other.sequences);
  merged.Attribute();
  const Sequences all = merged.Learn();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].model, all[2].model) << "capture and step of one process";
  EXPECT_NE(all[0].model, all[1].model);
}

TEST(LearnedGraphs, PiecesOfOnePassKeepTheirOrder) {
  Recording taught;
  const auto p = taught.Process();
  std::vector<Model> pieces;
  for (int layer = 0; layer < 8; ++layer) {
    const Model model = MakeModel(8);
    const auto size = static_cast<std::ptrdiff_t>((model.size() - 3) / 8);
    pieces.emplace_back(model.begin() + 1 + layer * size, model.begin() + 1 + (layer + 1) * size);
  }
  taught.Pass(p, pieces, Shown::kNamedLaunches);
  taught.Attribute();
  Recording run;
  run.Believe(taught, taught.Learn());
  const auto q = run.Process();
  trace::Step step{.process = trace::ProcessRow(q), .begin = run.now()};
  for (const Model& piece : pieces) run.Replay(q, piece);
  step.end = run.now();
  run.steps.push_back(step);
  const auto score = run.Attribute();
  EXPECT_EQ(score.modules, score.kernels);
  EXPECT_EQ(score.sure, score.kernels);
}

TEST(LearnedGraphs, WhatIsLearnedIsBoundedAndCounted) {
  Recording run;
  const Taught taught(MakeModel(3));
  Sequences many;
  for (uint32_t i = 0; i < trace::kMaxLearnedSequences + 10; ++i) {
    trace::LearnedSequence sequence{.whole = true};
    for (uint32_t bit = 0; bit < 14; ++bit)  // each differs from all others
      sequence.launches.push_back({.kind = (i >> bit & 1) != 0 ? trace::SpanKind::kCopy : trace::SpanKind::kMemset});
    many.push_back(std::move(sequence));
  }
  run.Believe(taught.run, many);
  run.Attribute();
  EXPECT_EQ(run.Learn().size(), trace::kMaxLearnedSequences);
  EXPECT_EQ(run.left_out, 10u);
}

}  // namespace
}  // namespace teller::tree
