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

ServiceLog::ServiceLog(Layout layout, Parts parts, Processes processes, uint64_t seed)
    : layout_(layout),
      parts_(parts),
      processes_(std::move(processes)),
      rng_(seed),
      logs_(layout.engine == Engine::kFsdp ? layout.ranks : 1) {}

std::string ServiceLog::Vllm(Nanos at, const char* process, int pid, const char* level, const char* place) const {
  return fmt::format("({} pid={}) {} {} [{}] ", process, pid, level, StampVllm(at), place);
}

std::string ServiceLog::WorkerName(int rank) const {
  return "Worker" + PlaceOf(layout_, rank, '_');
}

void ServiceLog::Fsdp(Nanos at, const std::string& text) {
  for (int r = 0; r < layout_.ranks; ++r)
    logs_[r].Add(at + static_cast<Nanos>(rng_.Below(2 * kMilli)),
                 fmt::format("{} [rank{}] INFO serve: {}", StampPython(at), r, text));
}

std::string ServiceLog::SglangHead(Nanos at, int replica) const {
  return fmt::format("[{}{}] ", StampSglang(at, true), PlaceOf(layout_, replica * layout_.ranks_in_replica(), ' '));
}

void ServiceLog::Step(Nanos at, int replica, const Batch& batch, const Scheduler& scheduler, Nanos elapsed,
                      bool graph) {
  if (layout_.engine == Engine::kVllm) {
    Front(at, Vllm(at, "APIServer", processes_.front, "INFO", "loggers.py:199") +
                  fmt::format("Engine {:03}: Iteration({}): {} context requests, {} context tokens, {} generation "
                              "requests, {} generation tokens, iteration "
                              "elapsed time: {:.2f} ms, GPU KV cache usage: {:.1f}%",
                              replica, ++iteration_, batch.prompts, batch.prompt_tokens, batch.decodes,
                              batch.decode_tokens, static_cast<double>(elapsed) / 1e6, 100 * scheduler.usage()));
    return;
  }
  if (batch.prompts > 0) {
    // It is written when the batch was chosen.
    const Nanos chosen = at - elapsed - 200 * base::kMicro;
    Front(chosen,
          SglangHead(chosen, replica) +
              fmt::format("Prefill batch, #new-seq: {}, #new-token: {}, #cached-token: {}, token usage: {:.2f}, "
                          "#running-req: {}, #queue-req: {}, "
                          "#pending-token: 0, cuda graph: False, input throughput (token/s): {:.2f}",
                          batch.admitted, batch.prompt_tokens, batch.cached, scheduler.usage(),
                          scheduler.running() - static_cast<size_t>(batch.admitted), scheduler.waiting(),
                          static_cast<double>(batch.prompt_tokens) * 1e9 / static_cast<double>(elapsed)));
    return;
  }
  const std::string head = SglangHead(at, replica);
  decoded_ += batch.made;
  if (++decodes_ % 40 != 0) return;
  std::string middle;
  if (parts_.drafts > 0) {
    const DraftCounts& now = scheduler.drafts();
    const auto drafts = static_cast<double>(std::max<uint64_t>(1, now.drafts - told_.drafts));
    const auto right = static_cast<double>(now.accepted - told_.accepted);
    middle =
        fmt::format("accept len: {:.2f}, accept rate: {:.2f}, ", 1 + right / drafts, right / drafts / parts_.drafts);
    told_ = now;
  }
  if (parts_.kv == KvSource::kPrefill) {
    middle += fmt::format("pre-allocated usage: {:.2f}, #prealloc-req: {}, #transfer-req: {}, #retracted-req: 0, ",
                          scheduler.usage() * static_cast<double>(scheduler.loading()) /
                              static_cast<double>(std::max<size_t>(1, scheduler.running() + scheduler.loading())),
                          scheduler.waiting(), scheduler.loading());
  }
  Front(at,
        head + fmt::format("Decode batch, #running-req: {}, #token: {}, token usage: {:.2f}, {}cuda graph: {}, gen "
                           "throughput (token/s): {:.2f}, #queue-req: {}",
                           scheduler.running(), scheduler.tokens(), scheduler.usage(), middle, graph ? "True" : "False",
                           last_ == 0 ? 0.0 : static_cast<double>(decoded_) * 1e9 / static_cast<double>(at - last_),
                           parts_.kv == KvSource::kPrefill ? 0 : scheduler.waiting() + scheduler.loading()));
  decoded_ = 0;
  last_ = at;
}

void ServiceLog::Statistics(const Sample& now, const Sample& before, const KvLink* link) {
  if (layout_.engine != Engine::kVllm) return;
  const double seconds = static_cast<double>(now.at - before.at) / 1e9;
  const double hits = now.asked == 0 ? 0 : 100.0 * static_cast<double>(now.found) / static_cast<double>(now.asked);
  Front(now.at,
        Vllm(now.at, "APIServer", processes_.front, "INFO", "loggers.py:127") +
            fmt::format("Engine {:03}: Avg prompt throughput: {:.1f} tokens/s, Avg generation throughput: {:.1f} "
                        "tokens/s, Running: {} reqs, Waiting: {} reqs, "
                        "GPU KV cache usage: {:.1f}%, Prefix cache hit rate: {:.1f}%",
                        now.replica, static_cast<double>(now.prompt_tokens - before.prompt_tokens) / seconds,
                        static_cast<double>(now.made_tokens - before.made_tokens) / seconds, now.running,
                        now.waiting + now.loading, 100 * now.usage, hits));
  if (parts_.kv != KvSource::kNone && link != nullptr) Transfers(now, before, *link);
  const uint64_t drafts = now.drafts.drafts - before.drafts.drafts;
  if (parts_.drafts == 0 || drafts == 0) return;
  const auto proposed = static_cast<double>(now.drafts.proposed - before.drafts.proposed);
  const auto accepted = static_cast<double>(now.drafts.accepted - before.drafts.accepted);
  std::string positions;
  for (int k = 0; k < parts_.drafts; ++k) {
    const auto place = static_cast<size_t>(k);
    const auto right = static_cast<double>(now.drafts.by_position[place] - before.drafts.by_position[place]);
    positions += fmt::format("{:.3f}, ", right / static_cast<double>(drafts));
  }
  Front(now.at,
        Vllm(now.at, "APIServer", processes_.front, "INFO", "metrics.py:96") +
            fmt::format("SpecDecoding metrics: Mean acceptance length: {:.2f}, Accepted throughput: {:.2f} tokens/s, "
                        "Drafted throughput: {:.2f} tokens/s, Accepted: {} tokens, Drafted: {} tokens, Per-position "
                        "acceptance rate: {}Avg Draft acceptance rate: {:.1f}%",
                        1 + accepted / static_cast<double>(drafts), accepted / seconds, proposed / seconds, accepted,
                        proposed, positions, 100 * accepted / proposed));
}

/// vLLM's line about keys that came over the link meanwhile.
void ServiceLog::Transfers(const Sample& now, const Sample& before, const KvLink& link) {
  std::vector<double> ms;
  double bytes = 0;
  double busy = 0;
  for (const KvLink::Fetched& f : link.all()) {
    if (f.end <= before.at || f.end > now.at || f.broken) continue;
    ms.push_back(static_cast<double>(f.end - f.begin) / 1e6);
    bytes += static_cast<double>(f.bytes);
    busy += ms.back() / 1e3;
  }
  if (ms.empty()) return;
  std::sort(ms.begin(), ms.end());
  const auto count = static_cast<double>(ms.size());
  const double mean = 1e3 * busy / count;
  const std::string head = Vllm(now.at, "APIServer", processes_.front, "INFO", "metrics.py:104");
  if (parts_.kv == KvSource::kTier) {
    Front(now.at, head + fmt::format("KV Transfer metrics: CPU_to_GPU_total_bytes={:.0f}, CPU_to_GPU_total_time={:.6f}",
                                     bytes, busy));
    return;
  }
  Front(now.at,
        head + fmt::format("KV Transfer metrics: Num successful transfers={}, Avg xfer time (ms)={:.3f}, P90 xfer "
                           "time (ms)={:.3f}, Avg post time (ms)={:.3f}, P90 post time (ms)={:.3f}, Avg MB per "
                           "transfer={:.3f}, Throughput (MB/s)={:.3f}, Avg number of descriptors={:.1f}",
                           ms.size(), mean, ms[ms.size() * 9 / 10], 0.4 + 0.2 * rng_.Unit(), 0.7 + 0.3 * rng_.Unit(),
                           bytes / count / 1048576, bytes / busy / 1048576, bytes / count / 65536));
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

FirstLine ServiceLog::Aborted(const Request& r) {
  if (layout_.engine == Engine::kVllm) {
    const std::string text = fmt::format("Aborted request(s) cmpl-{}-0.", r.id);
    Front(r.gone, Vllm(r.gone, "APIServer", processes_.front, "INFO", "async_llm.py:486") + text);
    Front(r.gone, Vllm(r.gone, "APIServer", processes_.front, "INFO", "async_llm.py:411") +
                      fmt::format("Request cmpl-{}-0 aborted.", r.id));
    return {r.gone, text};
  }
  const std::string text =
      fmt::format("Request is disconnected from the client side (type 1). Abort request obj.rid='{}'", r.id);
  Front(r.gone, fmt::format("[{}] ", StampSglang(r.gone, true)) + text);
  return {r.gone, text};
}

FirstLine ServiceLog::KeysLost(const Request& r) {
  const Nanos at = r.ready;
  if (layout_.engine == Engine::kVllm) {
    const std::string text =
        fmt::format("NIXL transfer failed for request cmpl-{}-0 with state ERR. Marking blocks as invalid.", r.id);
    Front(at, Vllm(at, WorkerName(0).c_str(), processes_.workers[0], "ERROR", "nixl_connector.py:1310") + text);
    Front(at + kMilli,
          Vllm(at + kMilli, "EngineCore_DP0", processes_.engine, "WARNING", "scheduler.py:1382") +
              fmt::format("Recovered from KV load failure: 1 request(s) rescheduled ({} tokens affected).", r.remote));
    return {at, text};
  }
  const uint64_t room = rng_.Next() >> 1;
  const std::string text = fmt::format(
      "Decode transfer failed for request rank=0 decode_req.req.rid='{}' "
      "decode_req.req.bootstrap_room={} with exception KVTransferError(bootstrap_room={}): Failed to "
      "get kvcache from prefill instance, it might be dead",
      r.id, room, room);
  Front(at, SglangHead(at, 0) + text);
  return {at, text};
}

void ServiceLog::Saved(Nanos at, int step, int64_t bytes, const std::vector<Nanos>& writes) {
  for (int r = 0; r < layout_.ranks; ++r) {
    const double seconds = static_cast<double>(writes[static_cast<size_t>(r)]) / 1e9;
    const Nanos when = at + static_cast<Nanos>(rng_.Below(2 * kMilli));
    logs_[static_cast<size_t>(r)].Add(
        when, fmt::format("{} [rank{}] INFO serve: checkpoint of step {} written: {:.1f} MB in {:.3f} s ({:.1f} MB/s)",
                          StampPython(when), r, step, static_cast<double>(bytes) / 1e6, seconds,
                          static_cast<double>(bytes) / 1e6 / seconds));
  }
}

FirstLine ServiceLog::Refused(Nanos at, int64_t tokens) {
  if (layout_.engine == Engine::kVllm) {
    const std::string text = fmt::format(
        "ValueError: This model's maximum context length is 8192 tokens. However, you requested "
        "{} tokens ({} in the messages, 64 in the completion). "
        "Please reduce the length of the messages or completion.",
        tokens, tokens - 64);
    Front(at, Vllm(at, "APIServer", processes_.front, "ERROR", "serving_completion.py:131") + text);
    Front(at, fmt::format("INFO:     10.0.3.17:{} - \"POST /v1/completions HTTP/1.1\" 400 Bad Request", Port()));
    return {at, text};
  }
  const std::string text =
      fmt::format("The input ({} tokens) is longer than the model's context length (8192 tokens).", tokens);
  Front(at, fmt::format("[{}] [http_server] Error: ", StampSglang(at, true)) + text);
  Front(at, fmt::format("[{}] INFO:     10.0.3.17:{} - \"POST /generate HTTP/1.1\" 400 Bad Request",
                        StampSglang(at, false), Port()));
  return {at, text};
}

FirstLine ServiceLog::Retracted(Nanos at, const Batch& batch) {
  if (layout_.engine != Engine::kSglang) return {};  // vLLM counts them and says nothing
  const double ratio = 0.06 + 0.4 * rng_.Unit();
  const std::string text = fmt::format(
      "KV cache pool is full. Retract requests. #retracted_reqs: {}, #new_tokens_gained: {}, "
      "#new_token_ratio: {:.4f} -> {:.4f}",
      batch.retracted, batch.gained, ratio, ratio + 0.2 + 0.2 * rng_.Unit());
  Front(at, SglangHead(at, 0) + text);
  return {at, text};
}

FirstLine ServiceLog::Compiled(Nanos at, int rank) {
  const bool vllm = layout_.engine == Engine::kVllm;
  const std::string text =
      vllm ? "Triton kernel JIT compilation during inference: _fwd_kernel_stage2. This causes a latency spike; "
             "consider extending warmup to cover this shape/config."
           : "torch._dynamo hit config.recompile_limit (8)";
  if (vllm) {
    Front(at, Vllm(at, WorkerName(rank).c_str(), processes_.workers[rank], "WARNING", "jit_monitor.py:103") + text);
  } else if (layout_.engine == Engine::kSglang) {
    Front(at, fmt::format("[{}{}] {}", StampSglang(at, true), PlaceOf(layout_, rank, ' '), text));
  } else {
    Of(rank).Add(at, fmt::format("{} [rank{}] WARNING torch._dynamo: {}", StampPython(at), rank, text));
  }
  return {at, text};
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
    const std::string rank = PlaceOf(layout_, 0, ' ');
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

FirstLine ServiceLog::Xid(Nanos at, int rank, int number, const std::string& text) {
  const std::string line = fmt::format("NVRM: Xid (PCI:{}): {}, pid={}, name=python3, {}",
                                       kBus[rank % layout_.ranks_in_node % 8], number, processes_.workers[rank], text);
  kernel_.Add(at, fmt::format("kern  :warn  : {} {}", StampKernel(at), line));
  return {at, line};
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
    Front(at, fmt::format("[{}{}] Scheduler hit an exception: {}", StampSglang(at, true), PlaceOf(layout_, rank, ' '),
                          lines.front()));
    for (size_t i = 1; i < lines.size(); ++i) Front(at, lines[i]);
    Front(at + 300 * kMilli,
          fmt::format("[{}] SIGQUIT received. signum=None, frame=None. It usually means one child failed.",
                      StampSglang(at + 300 * kMilli, false)));
    return;
  }
  for (const std::string& line : lines) Of(rank).Add(at, fmt::format("[rank{}]: {}", rank, line));
}

/// One rank's code raises; the exception is the line that names the cause.
FirstLine ServiceLog::Exception(Nanos at, int rank, const std::string& text) {
  const std::string file =
      layout_.engine == Engine::kVllm
          ? "/opt/venv/lib/python3.12/site-packages/vllm/v1/worker/gpu_model_runner.py\", line 2214, in execute_model"
      : layout_.engine == Engine::kSglang
          ? "/opt/venv/lib/python3.12/site-packages/sglang/srt/managers/scheduler.py\", line 2919, in run_batch"
          : "/srv/app/model.py\", line 68, in forward";
  Traceback(at, rank,
            {"Traceback (most recent call last):", "  File \"" + file,
             "    hidden_states = self.model(input_ids, positions)", text});
  return {at, text};
}

/// The kernel kills a rank's process; who started it notices.
FirstLine ServiceLog::Killed(Nanos at, int rank) {
  const Nanos killed = at - 5 * kMilli;
  const std::string text =
      fmt::format("Memory cgroup out of memory: Killed process {} (python3) total-vm:88423412kB, anon-rss:31457280kB",
                  processes_.workers[rank]);
  kernel_.Add(killed, fmt::format("kern  :err   : {} {}", StampKernel(killed), text));
  const Nanos later = at + 700 * kMilli;
  if (layout_.engine == Engine::kVllm) {
    Front(later, Vllm(later, "EngineCore_DP0", processes_.engine, "ERROR", "multiproc_executor.py:230") +
                     fmt::format("Worker proc VllmWorker-{} died unexpectedly, shutting down executor.", rank));
  } else if (layout_.engine == Engine::kSglang) {
    Front(later, fmt::format("[{}] SIGQUIT received. signum=None, frame=None. It usually means one child failed.",
                             StampSglang(later, false)));
  }
  return {killed, text};
}

FirstLine ServiceLog::Death(Kind kind, Nanos at, int rank) {
  FirstLine first;
  if (kind == Kind::kGpuHardware) {
    first = Xid(at - 20 * kMilli, rank, 79, "GPU has fallen off the bus.");
    Exception(at, rank, "torch.AcceleratorError: CUDA error: unspecified launch failure");
  } else if (kind == Kind::kGpuFault) {
    first = Xid(at - 20 * kMilli, rank, 31,
                "Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_10 "
                "faulted @ 0x7fd7_90743000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ");
    Exception(at, rank, "torch.AcceleratorError: CUDA error: an illegal memory access was encountered");
  } else if (kind == Kind::kOom) {
    first = Exception(at, rank,
                      fmt::format("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU {} has "
                                  "a total capacity of 79.11 GiB of which 1.04 GiB is free.",
                                  rank % layout_.ranks_in_node));
  } else {
    first = Killed(at, rank);
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
  return first;
}

FirstLine ServiceLog::Hang(Nanos at, int rank) {
  const int64_t sequence = rank < 0 ? 1 : 4711 + static_cast<int64_t>(rng_.Below(900));
  const Nanos gave_up = at + 600 * kSecond;
  FirstLine first;
  for (int r = 0; r < layout_.ranks; ++r) {
    const Nanos when = gave_up + static_cast<Nanos>(rng_.Below(80 * kMilli));
    const bool other = r == rank;
    const std::string text = fmt::format(
        "[Rank {}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={}, OpType={}, NumelIn={}, "
        "NumelOut={}, Timeout(ms)=600000) ran for {} milliseconds before timing out.",
        r, sequence, other ? "_ALLGATHER_BASE" : "ALLREDUCE", other ? 25136 : 32768, other ? 201088 : 32768,
        600000 + rng_.Below(90));
    Of(r).Add(when, fmt::format("[rank{}]:[E{} ProcessGroupNCCL.cpp:629] {}", r, StampTorch(when), text));
    Of(r).Add(when + 1000, fmt::format("[rank{0}]:[E{1} ProcessGroupNCCL.cpp:2168] [PG ID 0 PG GUID 0(default_pg) Rank "
                                       "{0}]  failure detected by watchdog at work sequence id: {2} PG status: "
                                       "last enqueued work: {3}, last completed work: {4}",
                                       r, StampTorch(when + 1000), sequence, sequence + (other ? 0 : 1), sequence - 1));
    if (rank < 0 ? first.text.empty() || when < first.at : other) first = {when, text};
  }
  return first;
}

void ServiceLog::Channel(Nanos at, int rank, bool slow) {
  const int next = (rank + 1) % layout_.ranks;
  const int device = rank % layout_.ranks_in_node;
  // Within one node NCCL takes sockets too where a container shares neither memory nor devices.
  const bool one_node = layout_.ranks <= layout_.ranks_in_node;
  const bool inside = layout_.node(rank) == layout_.node(next) && !(slow && one_node);
  Of(rank).Add(at, fmt::format("node{}:{}:{} [{}] NCCL INFO Channel 00/0 : {}[{}] -> {}[{}]{}", layout_.node(rank),
                               processes_.workers[rank], processes_.workers[rank] + 9, device, rank, device, next,
                               next % layout_.ranks_in_node,
                               inside ? " via P2P/CUMEM"
                               : slow ? " [send] via NET/Socket/0"
                                      : " [send] via NET/IB/0/GDRDMA"));
}

FirstLine ServiceLog::Path(Nanos at, bool slow) {
  // NCCL says at its start which way it goes; it says so in healthy runs too.
  const Nanos start = at - 25 * kSecond;
  const std::string head = fmt::format("node0:{0}:{0} [0] NCCL INFO ", processes_.workers.front());
  const std::string text = slow ? "NET/Socket : Using [0]eth0:10.0.0.11<0>"
                                : "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.11<0>";
  Of(0).Add(start, head + text);
  Of(0).Add(start + kMilli, fmt::format("{}Using network {}", head, slow ? "Socket" : "IB"));
  for (int r = 0; layout_.ranks > 1 && r < layout_.ranks; ++r) Channel(start + 40 * kMilli, r, slow);
  return {start, text};
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
