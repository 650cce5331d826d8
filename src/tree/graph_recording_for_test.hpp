#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tree/graph.hpp"
#include "tree/graph_sequence.hpp"
#include "tree/launch.hpp"
#include "tree/nesting.hpp"

namespace teller::tree {

/// One kernel of a made-up model: its name, its module path and the operator that launches it.
struct Kernel {
  std::string name;
  std::string module;
  std::string op;
};
using Model = std::vector<Kernel>;

/// Embedding, `layers` equal layers, head. `batch` changes the tiles in the names of GEMMs, `variant` what attention
/// runs.
inline Model MakeModel(int layers, int batch = 8, bool other_attention = false) {
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
      store_.categories.push_back({std::to_string(kind), static_cast<trace::SpanKind>(kind)});
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
      if (shown != Shown::kEager) Add(process, 0, trace::SpanKind::kRuntime, "cudaStreamBeginCapture", now_ + 1, 1);
      now_ += 4;
      for (const Kernel& kernel : piece) Launch(process, kernel, shown);
      if (shown != Shown::kEager) Add(process, 0, trace::SpanKind::kRuntime, "cudaStreamEndCapture", now_, 1);
      now_ += 4;
    }
    Add(process, 0, trace::SpanKind::kPython, "nn.Module: " + Parts(pieces[0][0].module)[0], begin, now_ - begin);
    now_ += 10;
    if (!annotation.empty()) Add(process, 0, trace::SpanKind::kAnnotation, annotation, begin - 1, now_ - begin);
    now_ += 10;
  }

  /// One graph launch; the kernels keep their number in `expected`.
  void Replay(uint32_t process, const Model& model) {
    const uint32_t id = ++correlation_;
    Add(process, 0, trace::SpanKind::kRuntime, "cudaGraphLaunch", now_, 2, id);
    now_ += 10;
    for (const Kernel& kernel : model) {
      Add(process, 1, trace::SpanKind::kKernel, kernel.name, now_, 5, id);
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
      if (store_.kind(row) != trace::SpanKind::kKernel) continue;
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

  /// What a learned file would hold; after Attribute.
  std::vector<trace::LearnedSequence> Learn() {
    left_out = 0;
    return LearnSequences(store_, trees_, left_out);
  }

  /// Takes sequences that `from` learned, as a file of this run.
  void Believe(const Recording& from, std::vector<trace::LearnedSequence> sequences) {
    const auto file = base::FileRow(next_file_++);
    const auto here = [&](trace::StringId id) {
      return id.valid() ? store_.strings.Intern(from.store().text(id)) : trace::StringId();
    };
    for (trace::LearnedSequence& sequence : sequences) {
      sequence.file = file;
      for (trace::LearnedLaunch& launch : sequence.launches)
        launch = {launch.kind, here(launch.family), here(launch.stem), here(launch.module), here(launch.op)};
      store_.learned_graphs.push_back(std::move(sequence));
    }
  }

  uint64_t left_out = 0;
  const trace::Store& store() const { return store_; }
  const trace::Trees& trees() const { return trees_; }
  trace::Nanos now() const { return now_; }
  std::vector<trace::Step> steps;

 private:
  struct Row {
    uint32_t track;
    trace::Nanos begin, duration;
    trace::SpanKind kind;
    std::string name, kernel;
    uint32_t correlation;
  };

  void Launch(uint32_t process, const Kernel& kernel, Shown shown) {
    const std::vector<std::string> parts = Parts(kernel.module);
    const trace::Nanos at = now_;
    for (size_t i = 1; i < parts.size(); ++i) {
      Add(process, 0, trace::SpanKind::kPython, "nn.Module: " + parts[i], at + static_cast<int>(i),
          40 - 2 * static_cast<int>(i));
    }
    Add(process, 0, trace::SpanKind::kOp, kernel.op, at + 10, 10);
    const uint32_t id = ++correlation_;
    Add(process, 0, trace::SpanKind::kRuntime, "cudaLaunchKernel", at + 12, 2, id,
        shown == Shown::kNamedLaunches ? kernel.name : "");
    if (shown == Shown::kEager) Add(process, 1, trace::SpanKind::kKernel, kernel.name, at + 20, 5, id);
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

  void Add(uint32_t process, uint32_t lane, trace::SpanKind kind, const std::string& name, trace::Nanos begin,
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
  uint32_t next_file_ = 1;
};

}  // namespace teller::tree
