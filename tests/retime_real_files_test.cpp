#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "ingest/run.hpp"
#include "retime/step_times.hpp"
#include "tests/real_files.hpp"
#include "tree/build.hpp"

namespace teller {
namespace {

/// Errors of the replayed step times of one kind of runs.
struct Errors {
  double sum = 0;
  double recomputed = 0;  ///< shares of the steps' time
  int steps = 0;

  void Add(const retime::StepTime& step) {
    sum += std::fabs(static_cast<double>(step.replayed - step.recorded)) / static_cast<double>(step.recorded);
    // What is recomputed on the host or on the device; of the two the larger part, as both go on at the same time.
    recomputed += static_cast<double>(std::max(step.host_wait, step.gpu_idle)) / static_cast<double>(step.recorded);
    ++steps;
  }
  double mean() const { return steps == 0 ? 0 : sum / steps; }
  void Print(const char* name) const {
    std::printf("  %-44s %4d steps, error %.2f %%, recomputed %.0f %% of their time\n", name, steps, 100 * mean(),
                steps == 0 ? 0 : 100 * recomputed / steps);
  }
};

class Replayed {
 public:
  Errors gpu_bound, host_bound, collectives;

  /// Replays a run from durations and dependencies alone, every step counted; runs without steps count as one.
  void Run(const std::string& path) {
    ingest::RunInputs inputs;
    inputs.paths.push_back(std::string("../shared/data/") + path);
    auto store = ingest::ReadRun(inputs, {});
    ASSERT_TRUE(store) << path;
    const auto trees = tree::Build(*store, 1);
    const auto graph = retime::BuildGraph(*store, trees);
    const auto times = retime::Replay(*store, trees, graph);
    Errors run;
    const auto add = [&](const retime::StepTime& step) {
      if (step.recorded <= 0) return;
      run.Add(step);
      (!graph.meetings.empty() ? collectives : step.gpu_bound ? gpu_bound : host_bound).Add(step);
    };
    if (trees.steps.empty()) {
      for (uint32_t p = 0; p < store->processes.size(); ++p) {
        add(retime::WholeTime(*store, trees, graph, times, trace::ProcessRow(p)));
      }
    }
    for (const auto& step : retime::StepTimes(*store, trees, graph, times)) add(step);
    run.Print(path.c_str());
  }
};

// Lumos reports 3.3 % and dPRO 14 % for whole training steps; wanted here: 3 % on average.
TEST(RetimeReal, UnchangedTracesComeOutAsRecorded) {
  TELLER_NEED_REAL_FILES();
  Replayed all;
  for (const char* path : {"traces/hta/alexnet_cuda_sync.json.gz",
                           "traces/hta/cuda_event_sync.json.gz",
                           "traces/hta/ddp2_nccl_meta_rank0.json.gz",
                           "traces/hta/dlrm128_sampled_rank0.json.gz",
                           "traces/hta/gpu_user_annotation.json.gz",
                           "traces/hta/mi250_minitoy_rocm62.json.gz",
                           "traces/kineto/old_schema_resnet50.json.gz",
                           "traces/nsys/nsys2022.2_saxpy_mpi.sqlite",
                           "traces/nsys/nsys2026.2_fastvideo_mfu_after.sqlite",
                           "traces/nsys/nsys2026.2_fastvideo_mfu_before.sqlite",
                           "traces/param_dlrm8",
                           "traces/tracelens/bert_small_h100.json.gz",
                           "traces/tracelens/norm_layers_mi300.json.gz",
                           "traces/tracelens/qwen15_0.5b_h100.json.gz",
                           "traces/tracelens/sglang_qwen3_8b_decode",
                           "traces/tracelens/sglang_qwen3_8b_extend_step.json.gz",
                           "traces/tracelens/torch_compile_triton.json.gz",
                           "traces/tracelens/vllm_b200_eager_tp8_rank.json.gz",
                           "traces/tracelens/vllm_mixed_piecewise_step.json.gz",
                           "traces/tracelens/xdit_sd35_pair",
                           "lab/fsdp/cpu_hogs_fsdp2_w2",
                           "lab/fsdp/healthy_fsdp2_w2",
                           "lab/fsdp/imbalance_fsdp_w2",
                           "lab/fsdp/late_host_fsdp_w2",
                           "lab/fsdp/long_prefill_tp_w2",
                           "lab/fsdp/net_rate_fsdp_w2",
                           "lab/fsdp/sigstop_tp_w4",
                           "lab/fsdp/slow_mm_tp_w2"}) {
    all.Run(path);
  }
  all.gpu_bound.Print("GPU-bound");
  all.host_bound.Print("host-bound");
  all.collectives.Print("with collectives over recorded ranks");
  for (const Errors* errors : {&all.gpu_bound, &all.host_bound, &all.collectives}) {
    EXPECT_GT(errors->steps, 10);
    EXPECT_LE(errors->mean(), 0.03);
  }
}

}  // namespace
}  // namespace teller
