#include <fmt/format.h>

#include <algorithm>

#include "inject/sim/service_log.hpp"

namespace teller::inject::sim {

namespace {

using base::kMilli;
using base::kSecond;

constexpr int kShards = 4;
constexpr int kMost = 64;  // workers that tell of their start

std::string Clock(double seconds) {
  const auto whole = static_cast<int64_t>(seconds);
  if (whole < 3600) return fmt::format("{:02}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

/// A progress bar's line, as it stands in a file.
std::string Shards(int done, double seconds) {
  const double each = done == 0 ? 0 : seconds / done;
  const std::string pace = done == 0    ? "?, ?it/s"
                           : each > 1.0 ? fmt::format("{}, {:5.2f}s/it", Clock(each * (kShards - done)), each)
                                        : fmt::format("{}, {:5.2f}it/s", Clock(each * (kShards - done)), 1 / each);
  return fmt::format("Loading safetensors checkpoint shards: {:3}% Completed | {}/{} [{}<{}]", 100 * done / kShards,
                     done, kShards, Clock(seconds), pace);
}

Nanos After(Nanos at, double seconds) {
  return at + static_cast<Nanos>(seconds * 1e9);
}

}  // namespace

/// Reading the weights, from `begin` on.
void ServiceLog::Loading(Nanos begin, double load) {
  const double memory = 16.1 / layout_.ranks_in_replica();
  for (int r = 0; r < std::min(layout_.ranks, kMost); ++r) {
    const double own = load * (0.97 + 0.06 * rng_.Unit());
    const Nanos end = After(begin, own);
    if (layout_.engine == Engine::kFsdp) {
      for (int k = 1; k <= kShards; ++k) {
        const Nanos at = After(begin, own * k / kShards);
        Of(r).Add(at, fmt::format("{} [rank{}] INFO serve: loaded weight shard {}/{} in {:.2f} s", StampPython(at), r,
                                  k, kShards, own / kShards));
      }
      continue;
    }
    const bool vllm = layout_.engine == Engine::kVllm;
    const std::string who =
        vllm ? fmt::format("({} pid={}) ", WorkerName(r), processes_.workers[static_cast<size_t>(r)]) : "";
    for (int k = 0; k <= kShards && r == 0; ++k) {
      const Nanos at = After(begin, own * k / kShards);
      Front(at, who + (vllm ? "\r" : "") + Shards(k, own * k / kShards));
    }
    if (vllm) {
      const char* name = "default_loader.py:262";
      const std::string worker = WorkerName(r);
      const int pid = processes_.workers[static_cast<size_t>(r)];
      if (r == 0)
        Front(end,
              Vllm(end, worker.c_str(), pid, "INFO", name) + fmt::format("Loading weights took {:.2f} seconds", own));
      const Nanos later = end + 300 * kMilli;
      Front(later, Vllm(later, worker.c_str(), pid, "INFO", "gpu_model_runner.py:2653") +
                       fmt::format("Model loading took {:.4f} GiB and {:.6f} seconds", memory, own + 0.3));
    } else if (r < layout_.ranks_in_replica()) {
      Front(end,
            fmt::format("[{}{}] Load weight end. elapsed={:.2f} s, type=Qwen3ForCausalLM, avail mem={:.2f} GB, mem "
                        "usage={:.2f} GB.",
                        StampSglang(end, true), PlaceOf(layout_, r, ' '), own, 62.3, memory));
    }
  }
}

Interval ServiceLog::StartUp(Nanos at, double load) {
  const Nanos loaded = at - 12 * kSecond;
  const Nanos begin = After(loaded, -1.03 * load);
  const Nanos first = begin - 20 * kSecond;
  kernel_.Add(first - 30 * kSecond, "kern  :info  : " + StampKernel(first - 30 * kSecond) +
                                        " nvidia-uvm: Loaded the UVM driver, major device number 234.");
  kernel_.Add(first, "kern  :info  : " + StampKernel(first) + " eth0: renamed from veth1c9a2f4");
  const Nanos ready = at - 2 * kSecond;
  const Nanos config = first + 8 * kSecond;
  if (layout_.engine == Engine::kVllm) {
    Front(first, Vllm(first, "APIServer", processes_.front, "INFO", "utils.py:293") + "vLLM API server version 0.11.0");
    const std::string drafts =
        parts_.drafts == 0
            ? "None"
            : fmt::format("SpeculativeConfig(method='eagle', model='draft', num_spec_tokens={})", parts_.drafts);
    const char* keys = parts_.kv == KvSource::kNone ? "None"
                       : parts_.kv == KvSource::kPrefill
                           ? "KVTransferConfig(kv_connector='NixlConnector', kv_role='kv_both')"
                           : "KVTransferConfig(kv_connector='OffloadingConnector', kv_role='kv_both')";
    Front(config, Vllm(config, "EngineCore_DP0", processes_.engine, "INFO", "core.py:77") +
                      fmt::format("Initializing a V1 LLM engine (v0.11.0) with config: model='model', "
                                  "speculative_config={}, dtype=torch.bfloat16, max_seq_len=8192, "
                                  "tensor_parallel_size={}, pipeline_parallel_size={}, data_parallel_size={}, "
                                  "kv_transfer_config={}",
                                  drafts, layout_.parts, layout_.stages, layout_.replicas(), keys));
  } else if (layout_.engine == Engine::kSglang) {
    Front(
        config,
        fmt::format(
            "[{}] server_args=ServerArgs(model_path='model', tp_size={}, pp_size={}, dp_size={}, context_length=8192, "
            "speculative_algorithm={}, speculative_num_draft_tokens={}, disaggregation_mode='{}', "
            "enable_hierarchical_cache={})",
            StampSglang(config, false), layout_.parts, layout_.stages, layout_.replicas(),
            parts_.drafts > 0 ? "'EAGLE'" : "None", parts_.drafts > 0 ? std::to_string(parts_.drafts + 1) : "None",
            parts_.kv == KvSource::kPrefill ? "decode" : "null", parts_.kv == KvSource::kTier ? "True" : "False"));
  } else {
    for (int r = 0; r < layout_.ranks; ++r)
      logs_[static_cast<size_t>(r)].Add(
          first, fmt::format("{} [rank{}] INFO serve: starting fsdp2, world_size={}, torch 2.7.1+cu128",
                             StampPython(first), r, layout_.ranks));
  }
  Loading(begin, load);
  if (layout_.engine == Engine::kVllm) {
    const Nanos warm = at - 4 * kSecond;
    Front(warm, Vllm(warm, "EngineCore_DP0", processes_.engine, "INFO", "core.py:210") +
                    "init engine (profile, create kv cache, warmup model) took 7.43 seconds");
    Front(ready, fmt::format("INFO:     Started server process [{}]", processes_.front));
    Front(ready, "INFO:     Application startup complete.");
  } else if (layout_.engine == Engine::kSglang) {
    Front(ready, fmt::format("[{}] The server is fired up and ready to roll!", StampSglang(ready, false)));
  } else {
    for (int r = 0; r < layout_.ranks; ++r)
      logs_[static_cast<size_t>(r)].Add(
          ready, fmt::format("{} [rank{}] INFO serve: model ready: {} layers on this rank", StampPython(ready), r,
                             layout_.layers));
  }
  return {begin, loaded};
}

}  // namespace teller::inject::sim
