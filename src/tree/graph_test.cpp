#include "tree/graph.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "base/rng.hpp"
#include "tree/launch.hpp"
#include "tree/module_path.hpp"
#include "tree/nesting.hpp"

namespace teller::tree {
namespace {

using trace::SpanKind;

/// One kernel of a made-up model: its name, its module path and the operator that launches it.
struct Kernel {
  std::string name;
  std::string module;
  std::string op;
};
using Model = std::vector<Kernel>;

/// Embedding, `layers` equal layers, head. `batch` changes the tiles in the names of GEMMs, `variant` what attention
/// runs.
Model MakeModel(int layers, int batch = 8, bool other_attention = false) {
  Model model;
  const auto gemm = [batch](const char* what) {
    return std::string("gemm_") + what + "_tile_" + std::to_string(batch) + "x64";
  };
  model.push_back({"void gather_kernel<16, long>(char*)", "Model_0/Embedding_0", "aten::embedding"});
  for (int i = 0; i < layers; ++i) {
    const std::string n = std::to_string(i);
    const std::string layer = "Model_0/Layer_" + n + "/";
    model.push_back({"rmsnorm_kernel<256>", layer + "RMSNorm_" + std::to_string(2 * i), "norm::rms"});
    model.push_back({gemm("qkv"), layer + "Attention_" + n + "/QKV_" + n, "aten::mm"});
    model.push_back({"void rope_kernel<bf16>(float*)", layer + "Attention_" + n + "/Rotary_0", "rope::apply"});
    model.push_back({"store_kvcache", layer + "Attention_" + n, "cache::store"});
    if (other_attention) {
      model.push_back({"flash_fwd_split", layer + "Attention_" + n + "/Core_" + n, "flash::fwd"});
      model.push_back({"flash_combine", layer + "Attention_" + n + "/Core_" + n, "flash::fwd"});
    } else {
      model.push_back({"paged_attention_v2<128>", layer + "Attention_" + n + "/Core_" + n, "attn::paged"});
    }
    model.push_back({gemm("out"), layer + "Attention_" + n + "/Out_" + n, "aten::mm"});
    model.push_back({"rmsnorm_kernel<256>", layer + "RMSNorm_" + std::to_string(2 * i + 1), "norm::rms"});
    model.push_back({gemm("up"), layer + "MLP_" + n + "/Up_" + n, "aten::mm"});
    model.push_back({"act_and_mul_kernel", layer + "MLP_" + n + "/Act_" + n, "act::silu"});
    model.push_back({gemm("down"), layer + "MLP_" + n + "/Down_" + n, "aten::mm"});
  }
  model.push_back({"rmsnorm_kernel<256>", "Model_0/Norm_0", "norm::rms"});
  model.push_back({gemm("head"), "Model_0/Head_0", "aten::mm"});
  return model;
}

/// How a reference shows its launches.
enum class Shown { kNamedLaunches, kPlainLaunches, kEager };

/// Writes spans of captures, eager passes and replays into a store; rows are sorted when it is read.
class Recording {
 public:
  Recording() {
    for (int kind = 0; kind < trace::kSpanKinds; ++kind)
      store_.categories.push_back({std::to_string(kind), static_cast<SpanKind>(kind)});
  }

  uint32_t Process(std::optional<int> rank = 0) {
    store_.processes.push_back({.file = trace::FileRow(0), .rank = rank});
    for (const bool stream : {false, true}) {
      store_.tracks.push_back(
          {.process = trace::ProcessRow(static_cast<uint32_t>(store_.processes.size() - 1)), .is_stream = stream});
    }
    return static_cast<uint32_t>(store_.processes.size() - 1);
  }

  /// One forward pass: frames of the modules of each kernel, an operator, a launch; eager passes also run the kernels.
  void Reference(uint32_t process, const Model& model, Shown shown, const std::string& annotation = "") {
    Pass(process, {model}, shown, annotation);
  }

  /// The same, with a capture for each piece.
  void Pass(uint32_t process, const std::vector<Model>& pieces, Shown shown, const std::string& annotation = "") {
    const trace::Nanos begin = now_;
    for (const Model& piece : pieces) {
      if (shown != Shown::kEager) Add(process, 0, SpanKind::kRuntime, "cudaStreamBeginCapture", now_ + 1, 1);
      now_ += 4;
      for (const Kernel& kernel : piece) Launch(process, kernel, shown);
      if (shown != Shown::kEager) Add(process, 0, SpanKind::kRuntime, "cudaStreamEndCapture", now_, 1);
      now_ += 4;
    }
    Add(process, 0, SpanKind::kPython, "nn.Module: " + Parts(pieces[0][0].module)[0], begin, now_ - begin);
    now_ += 10;
    if (!annotation.empty()) Add(process, 0, SpanKind::kAnnotation, annotation, begin - 1, now_ - begin);
    now_ += 10;
  }

  /// One graph launch; the kernels keep their number in `expected`.
  void Replay(uint32_t process, const Model& model) {
    const uint32_t id = ++correlation_;
    Add(process, 0, SpanKind::kRuntime, "cudaGraphLaunch", now_, 2, id);
    now_ += 10;
    for (const Kernel& kernel : model) {
      Add(process, 1, SpanKind::kKernel, kernel.name, now_, 5, id);
      truth_[now_] = kernel;
      now_ += 10;
    }
  }

  struct Score {
    size_t kernels = 0, attributed = 0, modules = 0, ops = 0, sure = 0, sure_wrong = 0;
  };

  Score Attribute() {
    Sort();
    Nest(store_, 1);
    trace::Trees trees;
    LinkLaunches(store_, trees);
    trees.steps = steps;
    AttributeGraphs(store_, trees);
    trees_ = trees;
    Score score;
    for (uint32_t row = 0; row < store_.spans.size(); ++row) {
      if (store_.kind(row) != SpanKind::kKernel) continue;
      const auto found = truth_.find(store_.spans.begin[row]);
      if (found == truth_.end()) continue;
      ++score.kernels;
      const trace::GraphOrigin* origin = trees.OriginOf(trace::SpanRow(row));
      if (origin == nullptr) continue;
      const bool right = store_.text(origin->module) == found->second.module;
      ++score.attributed;
      score.modules += right;
      score.ops += store_.text(origin->op) == found->second.op;
      if (origin->confidence < trace::kSureOrigin) continue;
      ++score.sure;
      score.sure_wrong += !right;
    }
    return score;
  }

  const trace::Store& store() const { return store_; }
  const trace::Trees& trees() const { return trees_; }
  trace::Nanos now() const { return now_; }
  std::vector<trace::Step> steps;

 private:
  struct Row {
    uint32_t track;
    trace::Nanos begin, duration;
    SpanKind kind;
    std::string name, kernel;
    uint32_t correlation;
  };

  void Launch(uint32_t process, const Kernel& kernel, Shown shown) {
    const std::vector<std::string> parts = Parts(kernel.module);
    const trace::Nanos at = now_;
    for (size_t i = 1; i < parts.size(); ++i) {
      Add(process, 0, SpanKind::kPython, "nn.Module: " + parts[i], at + static_cast<int>(i),
          40 - 2 * static_cast<int>(i));
    }
    Add(process, 0, SpanKind::kOp, kernel.op, at + 10, 10);
    const uint32_t id = ++correlation_;
    Add(process, 0, SpanKind::kRuntime, "cudaLaunchKernel", at + 12, 2, id,
        shown == Shown::kNamedLaunches ? kernel.name : "");
    if (shown == Shown::kEager) Add(process, 1, SpanKind::kKernel, kernel.name, at + 20, 5, id);
    now_ = at + 50;
  }

  static std::vector<std::string> Parts(const std::string& path) {
    std::vector<std::string> parts(1);
    for (const char c : path) {
      if (c == '/') {
        parts.emplace_back();
      } else {
        parts.back() += c;
      }
    }
    return parts;
  }

  void Add(uint32_t process, uint32_t lane, SpanKind kind, const std::string& name, trace::Nanos begin,
           trace::Nanos duration, uint32_t correlation = 0, const std::string& kernel = "") {
    rows_.push_back({2 * process + lane, begin, duration, kind, name, kernel, correlation});
  }

  void Sort() {
    std::stable_sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) {
      return std::tuple(a.track, a.begin, -a.duration) < std::tuple(b.track, b.begin, -b.duration);
    });
    for (uint32_t i = 0; i < rows_.size(); ++i) {
      const Row& row = rows_[i];
      auto& track = store_.tracks[row.track];
      if (track.span_count++ == 0) track.first_span = i;
      store_.spans.begin.push_back(row.begin);
      store_.spans.duration.push_back(row.duration);
      store_.spans.name.push_back(store_.strings.Intern(row.name));
      store_.spans.track.push_back(trace::TrackRow(row.track));
      store_.spans.category.push_back(static_cast<uint8_t>(row.kind));
      if (row.correlation != 0) store_.gpu_args.Append(i, {.correlation = row.correlation});
      if (!row.kernel.empty()) {
        store_.attributes.Append(i,
                                 {store_.strings.Intern(trace::kKernelAttribute), store_.strings.Intern(row.kernel)});
      }
    }
  }

  trace::Store store_;
  trace::Trees trees_;
  std::vector<Row> rows_;
  std::map<trace::Nanos, Kernel> truth_;
  trace::Nanos now_ = 1000;
  uint32_t correlation_ = 0;
};

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
