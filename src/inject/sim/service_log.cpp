#include "inject/sim/service_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace teller::inject::sim {

namespace {

using base::kMilli;
using base::kSecond;

constexpr const char* kBus[] = {"0000:18:00", "0000:2a:00", "0000:3a:00", "0000:5d:00",
                                "0000:9a:00", "0000:ab:00", "0000:ba:00", "0000:db:00"};

}  // namespace

ServiceLog::ServiceLog(Layout layout, Processes processes, uint64_t seed)
    : layout_(layout),
      processes_(std::move(processes)),
      rng_(seed),
      logs_(layout.engine == Engine::kFsdp ? layout.ranks : 1) {}

std::string ServiceLog::Vllm(Nanos at, const char* process, int pid, const char* level, const char* place) const {
  return fmt::format("({} pid={}) {} {} [{}] ", process, pid, level, StampVllm(at), place);
}

std::string ServiceLog::WorkerName(int rank) const {
  if (layout_.replicas() > 1) return fmt::format("Worker_DP{}_TP{}", rank / layout_.parts, rank % layout_.parts);
  return layout_.parts > 1 ? fmt::format("Worker_TP{}", rank) : "Worker";
}

void ServiceLog::Fsdp(Nanos at, const std::string& text) {
  for (int r = 0; r < layout_.ranks; ++r)
    logs_[r].Add(at + static_cast<Nanos>(rng_.Below(2 * kMilli)),
                 fmt::format("{} [rank{}] INFO serve: {}", StampPython(at), r, text));
}

void ServiceLog::StartUp(Nanos at) {
  kernel_.Add(at - 90 * kSecond, "kern  :info  : " + StampKernel(at - 90 * kSecond) +
                                     " nvidia-uvm: Loaded the UVM driver, major device number 234.");
  kernel_.Add(at - 60 * kSecond,
              "kern  :info  : " + StampKernel(at - 60 * kSecond) + " eth0: renamed from veth1c9a2f4");
  const Nanos ready = at - 2 * kSecond;
  switch (layout_.engine) {
    case Engine::kVllm:
      Front(at - 40 * kSecond, Vllm(at - 40 * kSecond, "APIServer", processes_.front, "INFO", "utils.py:293") +
                                   "vLLM API server version 0.11.0");
      Front(at - 32 * kSecond, Vllm(at - 32 * kSecond, "EngineCore_DP0", processes_.engine, "INFO", "core.py:77") +
                                   fmt::format("Initializing a V1 LLM engine (v0.11.0) with config: model='model', "
                                               "dtype=torch.bfloat16, max_seq_len=8192, "
                                               "tensor_parallel_size={}, data_parallel_size={}",
                                               layout_.parts, layout_.replicas()));
      for (int r = 0; r < std::min(layout_.ranks, 64); ++r) {
        Front(at - 12 * kSecond, Vllm(at - 12 * kSecond, WorkerName(r).c_str(), processes_.workers[r], "INFO",
                                      "gpu_model_runner.py:2653") +
                                     fmt::format("Model loading took {:.4f} GiB and {:.6f} seconds",
                                                 16.1 / layout_.parts, 6 + 2 * rng_.Unit()));
      }
      Front(at - 4 * kSecond, Vllm(at - 4 * kSecond, "EngineCore_DP0", processes_.engine, "INFO", "core.py:210") +
                                  "init engine (profile, create kv cache, warmup model) took 21.43 seconds");
      Front(ready, fmt::format("INFO:     Started server process [{}]", processes_.front));
      Front(ready, "INFO:     Application startup complete.");
      return;
    case Engine::kSglang:
      Front(at - 40 * kSecond,
            fmt::format("[{}] server_args=ServerArgs(model_path='model', tp_size={}, dp_size={}, context_length=8192)",
                        StampSglang(at - 40 * kSecond, false), layout_.parts, layout_.replicas()));
      for (int r = 0; r < layout_.parts; ++r)
        Front(at - 20 * kSecond, fmt::format("[{} TP{}] Load weight end. type=Qwen3ForCausalLM, dtype=torch.bfloat16, "
                                             "avail mem={:.2f} GB, mem usage={:.2f} GB.",
                                             StampSglang(at - 20 * kSecond, true), r, 62.3, 16.1 / layout_.parts));
      Front(ready, fmt::format("[{}] The server is fired up and ready to roll!", StampSglang(ready, false)));
      return;
    default:
      for (int r = 0; r < layout_.ranks; ++r) {
        logs_[r].Add(at - 8 * kSecond,
                     fmt::format("{} [rank{}] INFO serve: starting fsdp2, world_size={}, torch 2.7.1+cu128",
                                 StampPython(at - 8 * kSecond), r, layout_.ranks));
        logs_[r].Add(ready, fmt::format("{} [rank{}] INFO serve: model ready: {} layers on this rank",
                                        StampPython(ready), r, layout_.layers));
      }
  }
}

void ServiceLog::Step(Nanos at, int replica, const Batch& batch, const Scheduler& scheduler, Nanos elapsed,
                      bool graph) {
  if (layout_.engine == Engine::kVllm) {
    Front(at, Vllm(at, "APIServer", processes_.front, "INFO", "loggers.py:199") +
                  fmt::format("Engine {:03}: Iteration({}): {} context requests, {} context tokens, {} generation "
                              "requests, {} generation tokens, iteration "
                              "elapsed time: {:.2f} ms, GPU KV cache usage: {:.1f}%",
                              replica, ++iteration_, batch.prompts, batch.prompt_tokens, batch.decodes, batch.decodes,
                              static_cast<double>(elapsed) / 1e6, 100 * scheduler.usage()));
    return;
  }
  const std::string head = layout_.replicas() > 1 ? fmt::format("[{} DP{} TP0] ", StampSglang(at, true), replica)
                           : layout_.parts > 1    ? fmt::format("[{} TP0] ", StampSglang(at, true))
                                                  : fmt::format("[{}] ", StampSglang(at, true));
  if (batch.prompts > 0) {
    Front(at, head + fmt::format("Prefill batch, #new-seq: {}, #new-token: {}, #cached-token: {}, token usage: {:.2f}, "
                                 "#running-req: {}, #queue-req: {}, "
                                 "#pending-token: 0, cuda graph: False, input throughput (token/s): {:.2f}",
                                 batch.admitted, batch.prompt_tokens, batch.cached, scheduler.usage(),
                                 scheduler.running() - batch.admitted, scheduler.waiting(),
                                 static_cast<double>(batch.prompt_tokens) * 1e9 / static_cast<double>(elapsed)));
    return;
  }
  decoded_ += batch.decodes;
  if (++decodes_ % 40 != 0) return;
  Front(at, head + fmt::format("Decode batch, #running-req: {}, #token: {}, token usage: {:.2f}, cuda graph: {}, gen "
                               "throughput (token/s): {:.2f}, #queue-req: {}",
                               scheduler.running(), scheduler.tokens(), scheduler.usage(), graph ? "True" : "False",
                               last_ == 0 ? 0.0 : static_cast<double>(decoded_) * 1e9 / static_cast<double>(at - last_),
                               scheduler.waiting()));
  decoded_ = 0;
  last_ = at;
}

void ServiceLog::Statistics(Nanos at, int replica, const Scheduler& scheduler, double prompt_rate, double token_rate) {
  if (layout_.engine != Engine::kVllm) return;
  const double hits = scheduler.asked() == 0
                          ? 0
                          : 100.0 * static_cast<double>(scheduler.found()) / static_cast<double>(scheduler.asked());
  Front(at, Vllm(at, "APIServer", processes_.front, "INFO", "loggers.py:127") +
                fmt::format("Engine {:03}: Avg prompt throughput: {:.1f} tokens/s, Avg generation throughput: {:.1f} "
                            "tokens/s, Running: {} reqs, Waiting: {} reqs, "
                            "GPU KV cache usage: {:.1f}%, Prefix cache hit rate: {:.1f}%",
                            replica, prompt_rate, token_rate, scheduler.running(), scheduler.waiting(),
                            100 * scheduler.usage(), hits));
}

void ServiceLog::Accepted(const Request& r) {
  if (layout_.engine == Engine::kVllm) {
    Front(r.arrival, Vllm(r.arrival, "APIServer", processes_.front, "INFO", "logger.py:40") +
                         fmt::format("Received request cmpl-{}-0: prompt: None, params: SamplingParams(n=1, "
                                     "temperature=1.0, max_tokens={}), lora_request: None.",
                                     r.id, r.output));
    Front(r.queued, Vllm(r.queued, "APIServer", processes_.front, "INFO", "async_llm.py:321") +
                        fmt::format("Added request cmpl-{}-0.", r.id));
    return;
  }
  Front(r.arrival, fmt::format("[{}] Receive: obj=GenerateReqInput(rid='{}', session_id=None, "
                               "sampling_params={{'max_new_tokens': {}, 'ignore_eos': True, 'temperature': 0}}, "
                               "return_logprob=False, stream=True)",
                               StampSglang(r.arrival, false), r.id, r.output));
}

void ServiceLog::Finished(const Request& r) {
  if (layout_.engine == Engine::kVllm) {
    Front(r.first, fmt::format("INFO:     10.0.3.17:{} - \"POST /v1/completions HTTP/1.1\" 200 OK", Port()));
    return;
  }
  Front(r.first, fmt::format("[{}] INFO:     10.0.3.17:{} - \"POST /generate HTTP/1.1\" 200 OK",
                             StampSglang(r.first, false), Port()));
  Front(r.tokens.back(), fmt::format("[{}] ", StampSglang(r.tokens.back(), false)) + FinishLine(r));
}

void ServiceLog::Refused(Nanos at, int64_t tokens) {
  if (layout_.engine == Engine::kVllm) {
    Front(at, Vllm(at, "APIServer", processes_.front, "ERROR", "serving_completion.py:131") +
                  fmt::format("ValueError: This model's maximum context length is 8192 tokens. However, you requested "
                              "{} tokens ({} in the messages, 64 in the completion). "
                              "Please reduce the length of the messages or completion.",
                              tokens, tokens - 64));
    Front(at, fmt::format("INFO:     10.0.3.17:{} - \"POST /v1/completions HTTP/1.1\" 400 Bad Request", Port()));
    return;
  }
  Front(at,
        fmt::format(
            "[{}] [http_server] Error: The input ({} tokens) is longer than the model's context length (8192 tokens).",
            StampSglang(at, true), tokens));
  Front(at, fmt::format("[{}] INFO:     10.0.3.17:{} - \"POST /generate HTTP/1.1\" 400 Bad Request",
                        StampSglang(at, false), Port()));
}

void ServiceLog::Retracted(Nanos at, const Batch& batch) {
  if (layout_.engine != Engine::kSglang) return;  // vLLM counts them and says nothing
  const double ratio = 0.06 + 0.4 * rng_.Unit();
  Front(at, fmt::format("[{}{}] KV cache pool is full. Retract requests. #retracted_reqs: {}, #new_tokens_gained: {}, "
                        "#new_token_ratio: {:.4f} -> {:.4f}",
                        StampSglang(at, true), layout_.parts > 1 ? " TP0" : "", batch.retracted, batch.gained, ratio,
                        ratio + 0.2 + 0.2 * rng_.Unit()));
}

void ServiceLog::Compiled(Nanos at, int rank) {
  if (layout_.engine == Engine::kVllm) {
    Front(at, Vllm(at, WorkerName(rank).c_str(), processes_.workers[rank], "WARNING", "jit_monitor.py:103") +
                  "Triton kernel JIT compilation during inference: _fwd_kernel_stage2. This causes a latency spike; "
                  "consider extending warmup to cover this shape/config.");
    return;
  }
  const std::string text = "torch._dynamo hit config.recompile_limit (8)";
  if (layout_.engine == Engine::kSglang)
    return Front(at, fmt::format("[{}{}] {}", StampSglang(at, true),
                                 layout_.parts > 1 ? fmt::format(" TP{}", rank % layout_.parts) : "", text));
  Of(rank).Add(at, fmt::format("{} [rank{}] WARNING torch._dynamo: {}", StampPython(at), rank, text));
}

void ServiceLog::Profiler(Nanos begin, Nanos end, bool start) {
  if (layout_.engine == Engine::kVllm) {
    Front(begin, Vllm(begin, "APIServer", processes_.front, "INFO", "api_router.py:40") +
                     (start ? "Starting profiler..." : "Stopping profiler..."));
    Front(end, Vllm(end, "APIServer", processes_.front, "INFO", "api_router.py:52") +
                   (start ? "Profiler started." : "Profiler stopped."));
    Front(end, fmt::format("INFO:     127.0.0.1:{} - \"POST /{}_profile HTTP/1.1\" 200 OK", Port(),
                           start ? "start" : "stop"));
  } else if (layout_.engine == Engine::kSglang) {
    const std::string rank = layout_.parts > 1 ? " TP0" : "";
    if (start)
      return Front(begin,
                   fmt::format("[{}{}] Profiling starts. Traces will be saved to: /tmp/prof (with profile id: {:.6f})",
                               StampSglang(begin, true), rank, static_cast<double>(begin) / 1e9));
    Front(begin, fmt::format("[{}{}] Stop profiling...", StampSglang(begin, true), rank));
    Front(end, fmt::format("[{}{}] Profiling done. Traces are saved to: /tmp/prof", StampSglang(end, true), rank));
  } else if (!start) {
    Fsdp(end, "profiler trace written");
  }
}

void ServiceLog::ShutDown(Nanos at) {
  if (layout_.engine == Engine::kFsdp) return Fsdp(at, "shut down");
  if (layout_.engine == Engine::kSglang)
    return Front(at,
                 fmt::format("[{}] SIGTERM received. signum=None frame=None. Draining requests and shutting down...",
                             StampSglang(at, false)));
  Front(at, Vllm(at, "APIServer", processes_.front, "INFO", "launcher.py:99") +
                "[shutdown] API server: signal received, trigger=SIGTERM");
  for (const char* line : {"INFO:     Shutting down", "INFO:     Waiting for application shutdown.",
                           "INFO:     Application shutdown complete."})
    Front(at, line);
  Front(at, Vllm(at, "APIServer", processes_.front, "INFO", "core_client.py:770") +
                "[shutdown] MPClient: start timeout=0s");
  Front(at + 100 * kMilli,
        Vllm(at, "APIServer", processes_.front, "INFO", "core_client.py:777") + "[shutdown] MPClient: complete");
  Front(at + 110 * kMilli, fmt::format("INFO:     Finished server process [{}]", processes_.front));
}

void ServiceLog::Xid(Nanos at, int device, int number, const std::string& text) {
  kernel_.Add(
      at, fmt::format("kern  :warn  : {} NVRM: Xid (PCI:{}): {}, {}", StampKernel(at), kBus[device % 8], number, text));
}

void ServiceLog::Traceback(Nanos at, int rank, const std::vector<std::string>& lines) {
  if (layout_.engine == Engine::kVllm) {
    const std::string head =
        Vllm(at, WorkerName(rank).c_str(), processes_.workers[rank], "ERROR", "multiproc_executor.py:671");
    Front(at, head + "WorkerProc hit an exception.");
    for (const std::string& line : lines) Front(at, head + line);
    const Nanos later = at + 200 * kMilli;
    Front(later, Vllm(later, "EngineCore_DP0", processes_.engine, "ERROR", "core.py:710") +
                     "EngineCore encountered a fatal error.");
    return;
  }
  if (layout_.engine == Engine::kSglang) {
    Front(at, fmt::format("[{}{}] Scheduler hit an exception: {}", StampSglang(at, true),
                          layout_.parts > 1 ? fmt::format(" TP{}", rank % layout_.parts) : "", lines.front()));
    for (size_t i = 1; i < lines.size(); ++i) Front(at, lines[i]);
    Front(at + 300 * kMilli,
          fmt::format("[{}] SIGQUIT received. signum=None, frame=None. It usually means one child failed.",
                      StampSglang(at + 300 * kMilli, false)));
    return;
  }
  for (const std::string& line : lines) Of(rank).Add(at, fmt::format("[rank{}]: {}", rank, line));
}

void ServiceLog::Death(Kind kind, Nanos at, int rank) {
  const int device = rank % layout_.ranks_in_node;
  const std::string file =
      layout_.engine == Engine::kVllm
          ? "/opt/venv/lib/python3.12/site-packages/vllm/v1/worker/gpu_model_runner.py\", line 2214, in execute_model"
      : layout_.engine == Engine::kSglang
          ? "/opt/venv/lib/python3.12/site-packages/sglang/srt/managers/scheduler.py\", line 2919, in run_batch"
          : "/srv/app/model.py\", line 68, in forward";
  const std::vector<std::string> head = {"Traceback (most recent call last):", "  File \"" + file,
                                         "    hidden_states = self.model(input_ids, positions)"};
  const auto with = [&](const std::string& last) {
    std::vector<std::string> lines = head;
    lines.push_back(last);
    return lines;
  };
  if (kind == Kind::kGpuHardware)
    Xid(at - 20 * kMilli, device, 79,
        fmt::format("pid={}, name=python3, GPU has fallen off the bus.", processes_.workers[rank]));
  if (kind == Kind::kGpuFault)
    Xid(at - 20 * kMilli, device, 31,
        fmt::format("pid={}, name=python3, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_10 "
                    "faulted @ 0x7fd7_90743000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ",
                    processes_.workers[rank]));
  if (kind == Kind::kOom) {
    Traceback(at, rank,
              with(fmt::format("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU {} has a "
                               "total capacity of 79.11 GiB of which 1.04 GiB is free.",
                               device)));
  } else if (kind == Kind::kGpuHardware) {
    Traceback(at, rank, with("torch.AcceleratorError: CUDA error: unspecified launch failure"));
  } else if (kind == Kind::kGpuFault) {
    Traceback(at, rank, with("torch.AcceleratorError: CUDA error: an illegal memory access was encountered"));
  } else {
    kernel_.Add(at - 5 * kMilli, fmt::format("kern  :err   : {} Memory cgroup out of memory: Killed process {} "
                                             "(python3) total-vm:88423412kB, anon-rss:31457280kB",
                                             StampKernel(at - 5 * kMilli), processes_.workers[rank]));
    const Nanos later = at + 700 * kMilli;
    if (layout_.engine == Engine::kVllm) {
      Front(later, Vllm(later, "EngineCore_DP0", processes_.engine, "ERROR", "multiproc_executor.py:230") +
                       fmt::format("Worker proc VllmWorker-{} died unexpectedly, shutting down executor.", rank));
    } else if (layout_.engine == Engine::kSglang) {
      Front(later, fmt::format("[{}] SIGQUIT received. signum=None, frame=None. It usually means one child failed.",
                               StampSglang(later, false)));
    }
  }
  if (layout_.engine == Engine::kVllm) {
    const Nanos end = at + 900 * kMilli;
    Front(end,
          Vllm(end, "APIServer", processes_.front, "ERROR", "async_llm.py:525") + "AsyncLLM output_handler failed.");
    Front(end, Vllm(end, "APIServer", processes_.front, "ERROR", "async_llm.py:525") +
                   "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace "
                   "(above) for the root cause.");
  } else if (layout_.engine == Engine::kFsdp) {
    for (int r = 0; r < layout_.ranks; ++r) {
      if (r == rank) continue;
      const Nanos lost = at + 400 * kMilli + static_cast<Nanos>(rng_.Below(200 * kMilli));
      logs_[r].Add(
          lost, fmt::format("[rank{}]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3356, "
                            "remote process exited or there was a network error, NCCL version 2.26.2",
                            r));
    }
  }
}

void ServiceLog::Hang(Nanos at, int rank) {
  const int64_t sequence = rank < 0 ? 1 : 4711 + static_cast<int64_t>(rng_.Below(900));
  const Nanos gave_up = at + 600 * kSecond;
  for (int r = 0; r < layout_.ranks; ++r) {
    const Nanos when = gave_up + static_cast<Nanos>(rng_.Below(80 * kMilli));
    const bool other = r == rank;
    Of(r).Add(when, fmt::format("[rank{0}]:[E{1} ProcessGroupNCCL.cpp:629] [Rank {0}] Watchdog caught collective "
                                "operation timeout: WorkNCCL(SeqNum={2}, OpType={3}, NumelIn={4}, "
                                "NumelOut={5}, Timeout(ms)=600000) ran for {6} milliseconds before timing out.",
                                r, StampTorch(when), sequence, other ? "_ALLGATHER_BASE" : "ALLREDUCE",
                                other ? 25136 : 32768, other ? 201088 : 32768, 600000 + rng_.Below(90)));
    Of(r).Add(when + 1000, fmt::format("[rank{0}]:[E{1} ProcessGroupNCCL.cpp:2168] [PG ID 0 PG GUID 0(default_pg) Rank "
                                       "{0}]  failure detected by watchdog at work sequence id: {2} PG status: "
                                       "last enqueued work: {3}, last completed work: {4}",
                                       r, StampTorch(when + 1000), sequence, sequence + (other ? 0 : 1), sequence - 1));
  }
}

void ServiceLog::Path(Nanos at, bool slow) {
  // NCCL says at its start which way it goes; it says so in healthy runs too.
  const Nanos start = at - 25 * kSecond;
  const int pid = processes_.workers.front();
  Of(0).Add(start, fmt::format("node0:{0}:{0} [0] NCCL INFO NET/{1}", pid,
                               slow ? "Socket : Using [0]eth0:10.0.0.11<0>"
                                    : "IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.11<0>"));
  Of(0).Add(start + kMilli, fmt::format("node0:{0}:{0} [0] NCCL INFO Using network {1}", pid, slow ? "Socket" : "IB"));
}

base::Status ServiceLog::Write(const std::string& folder, double late) {
  for (size_t i = 0; i < logs_.size(); ++i) {
    logs_[i].Delay(late, rng_);
    TELLER_TRY(WriteFile(
        layout_.engine == Engine::kFsdp ? fmt::format("{}/logs/rank{}.log", folder, i) : folder + "/server.log",
        logs_[i].Text()));
  }
  return WriteFile(folder + "/kernel.log", kernel_.Text());
}

}  // namespace teller::inject::sim
