#include "locate/log_signal.hpp"

#include <array>

#include "locate/log_text.hpp"
#include "locate/log_xid.hpp"

namespace teller::locate {

using trace::FaultClass;
using trace::LogLevel;
using trace::LogRecord;
using trace::LogSource;

namespace {

constexpr size_t kLineKept = 300;

Signal Make(SignalRole role, FaultClass fault, double false_alarm, std::string_view layer, std::string_view what) {
  Signal s;
  s.role = role;
  s.fault = fault;
  s.false_alarm = false_alarm;
  s.layer = layer;
  s.what = what;
  return s;
}

std::optional<Signal> ReadKernel(const LogRecord& record) {
  const std::string_view m = record.message;
  if (const auto xid = ParseXid(m)) {
    const XidMeaning meaning = MeaningOf(*xid);
    Signal s = Make(meaning.consequence ? SignalRole::kSymptom : SignalRole::kCause, meaning.fault, meaning.false_alarm,
                    "hardware", meaning.what);
    if (meaning.fault == FaultClass::kGpuAppFault) {
      s.layer = "kernel";
      s.alternatives = {{FaultClass::kGpuHwFault, 0.3}};
    }
    s.device = xid->device;
    // Whose call met a broken device says nothing about who broke it.
    if (meaning.fault == FaultClass::kGpuAppFault) s.process = xid->process;
    s.pid = xid->pid;
    return s;
  }
  if (HasAny(m, {"fallen off the bus"})) {
    return Make(SignalRole::kCause, FaultClass::kGpuHwFault, 1e-4, "hardware", "the GPU is no longer on the bus");
  }
  if (HasAny(m, {"Out of memory: Kill", "Memory cgroup out of memory: Kill", "oom_reaper: reaped process"})) {
    Signal s = Make(SignalRole::kCause, FaultClass::kProcDeath, 5e-3, "process",
                    "the kernel killed a process for lack of memory");
    s.alternatives = {{FaultClass::kHostMemPressure, 0.4}};
    s.pid = NumberAfter(m, "process ");
    if (const size_t open = m.find('('); open != std::string_view::npos) {
      const size_t close = m.find(')', open);
      if (close != std::string_view::npos && close - open < 64)
        s.process = std::string(m.substr(open + 1, close - open - 1));
    }
    return s;
  }
  if (Has(m, "mlx5") && Has(m, "Link DOWN")) {
    Signal s = Make(SignalRole::kCause, FaultClass::kNetLinkFault, 0.05, "network", "a network port lost its link");
    return s;
  }
  return std::nullopt;
}

/// Errors of the GPU that the runtime reports to the process that waits for it.
std::optional<Signal> ReadGpuError(std::string_view p) {
  if (HasAny(p, {"KV cache is needed, which is larger than the available", "No available memory for the cache blocks",
                 "Not enough memory. Please try to increase --mem-fraction-static"})) {
    Signal s = Make(SignalRole::kCause, FaultClass::kGpuMemOom, 1e-4, "scheduler",
                    "the KV cache does not fit into the memory that the weights leave");
    s.alternatives = {{FaultClass::kKvPressure, 0.4}};
    s.fatal = true;
    return s;
  }
  if (HasAny(p,
             {"CUDA out of memory", "CUDA error: out of memory", "HIP out of memory", "HIP error: out of memory",
              "OutOfMemoryError", "cudaErrorMemoryAllocation", "hipErrorOutOfMemory", "CUDA_ERROR_OUT_OF_MEMORY",
              "cudaMalloc failed: out of memory", "failed to allocate CUDA", "failed to allocate buffer for kv cache",
              "Cuda failure 'out of memory'", "Cuda failure 2 'out of memory'"})) {
    return Make(SignalRole::kCause, FaultClass::kGpuMemOom, 1e-4, "cuda_api", "the GPU's memory is exhausted");
  }
  if (HasAny(p, {"uncorrectable ECC error", "GPU is lost", "cudaErrorECCUncorrectable",
                 "CUDA error: unspecified driver error"})) {
    return Make(SignalRole::kCause, FaultClass::kGpuHwFault, 1e-4, "hardware", "the GPU reports a hardware error");
  }
  if (HasAny(p, {"illegal memory access", "device-side assert", "misaligned address", "unspecified launch failure",
                 "illegal instruction was encountered", "Memory access fault by GPU", "cudaErrorIllegalAddress",
                 "an illegal instruction"})) {
    Signal s = Make(SignalRole::kCause, FaultClass::kGpuAppFault, 1e-4, "kernel",
                    "a kernel on the GPU faulted; the call that reports it may be a bystander");
    s.alternatives = {{FaultClass::kGpuHwFault, 0.15}};
    return s;
  }
  if (HasAny(p, {"Failed to bind NVLink SHARP", "P2P is disabled between NVLINK connected GPUs"})) {
    return Make(SignalRole::kCause, FaultClass::kIntraLinkDegraded, 1e-3, "hardware",
                "the link between the GPUs is not in order");
  }
  return std::nullopt;
}

std::optional<Signal> ReadNetwork(const LogRecord& record, std::string_view p) {
  if (record.source == LogSource::kNccl && Has(p, "NET/IB") && record.level >= LogLevel::kWarning) {
    if (HasAny(p, {"error 5,", "status=5 ", "(5)"}))
      return Make(SignalRole::kSymptom, FaultClass::kNetLinkFault, 1, "network", "a flushed request");
    if (HasAny(p, {"port error", "async fatal event", "async error event", "with error 12", "status=12", "(12)",
                   "device fatal", "Got completion from peer", "GID table changed"})) {
      Signal s = Make(SignalRole::kCause, FaultClass::kNetLinkFault, 1e-3, "network",
                      "the network adapter reports an error of its port or path");
      s.own_word = true;
      return s;
    }
  }
  if (HasAny(p, {"No space left on device"}) && HasAny(p, {"/dev/shm", "posix_fallocate", "shared memory"})) {
    return Make(SignalRole::kCause, FaultClass::kProcDeath, 2e-3, "host", "shared memory of the host is full");
  }
  if (HasAny(p, {"Error while creating shared memory segment /dev/shm"})) {
    return Make(SignalRole::kCause, FaultClass::kProcDeath, 2e-3, "host", "shared memory of the host is full");
  }
  return std::nullopt;
}

/// The number behind `mark` where it can be a rank.
std::optional<int> RankAfter(std::string_view text, std::string_view mark) {
  const auto value = NumberAfter(text, mark);
  return value && *value >= 0 && *value < kMaxRank ? std::optional(static_cast<int>(*value)) : std::nullopt;
}

/// Somebody says that a process is gone.
std::optional<Signal> ReadDeath(std::string_view p) {
  Signal s =
      Make(SignalRole::kDeath, FaultClass::kProcDeath, 5e-4, "process", "a process died without a word of its own");
  if (Has(p, " died unexpectedly")) {
    s.process = WordBefore(p, " died unexpectedly");
  } else if (Has(p, "Subprocess ") && Has(p, " crashed with exit code")) {
    s.process = WordBefore(p, " (pid=");
    s.pid = NumberAfter(p, "(pid=");
    // SIGTERM and SIGINT are how services are asked to end.
    const auto code = NumberAfter(p, "exit code");
    if (code == -15 || code == -2) s.false_alarm = 0.05;
  } else if (Has(p, "failed (exitcode:") && Has(p, "local_rank:")) {
    // The local rank counts within its node; the report below and other lines of the process tell the global one.
    s.pid = NumberAfter(p, "(pid:");
  } else if (Has(p, "scheduler is dead")) {
    s.process = "scheduler";
    s.rank = RankAfter(p, "Rank ");
  } else if (Begins(p, "Shard ") && Has(p, " crashed")) {
    s.process = "shard";
    s.rank = RankAfter(p, "Shard ");
  } else if (HasAny(p, {"killed due to memory pressure (OOM)"})) {
    s.what = "a process was killed for lack of host memory";
    s.alternatives = {{FaultClass::kHostMemPressure, 0.4}};
  } else if (HasAny(p, {"Segmentation fault", "terminate called after throwing", "core dumped", "GGML_ASSERT(",
                        "Fatal Python error", "libc++abi: terminating", "*** SIGSEGV", "*** SIGABRT",
                        "!!!!!!! Segfault"})) {
    s.what = "the process aborted";
    s.own_word = true;
    s.fatal = true;
  } else if (p == "Killed" || Has(p, " Killed  ")) {
    s.what = "a process was killed";
  } else {
    return std::nullopt;
  }
  return s;
}

std::optional<Signal> ReadCollective(std::string_view p, bool fatal) {
  if (HasAny(p, {"op.preamble.length <=", "Detected mismatch between collectives"})) {
    return Make(SignalRole::kCause, FaultClass::kCollDivergence, 3e-3, "collective",
                "the ranks met in a collective with different operations or sizes");
  }
  if (HasAny(p, {"caught collective operation timeout", "failure detected by watchdog", "detected by watchdog at work",
                 "Timeout at NCCL work"}) ||
      (Has(p, "Timed out waiting") && Has(p, "operation to complete"))) {
    return Make(SignalRole::kTimeout, FaultClass::kCollDivergence, 1e-3, "collective",
                "a collective was never completed");
  }
  if (Has(p, "Watchdog timeout (self.watchdog_timeout")) {
    return Make(SignalRole::kTimeout, FaultClass::kCollDivergence, 5e-3, "collective",
                "the scheduler made no step for the watchdog's time");
  }
  const bool transport = HasAny(p, {"gloo", "pair.cc", "ProcessGroup", "NCCL", "TCPStore", "all_reduce", "allreduce"});
  if (transport && HasAny(p, {"Connection reset by peer", "Connection closed by peer",
                              "Connection closed by remote peer", "remote process exited", "Socket Timeout",
                              "Broken pipe", "recvValue failed", "Application timeout caused pair closure"})) {
    // Warnings of this kind are usual when the ranks of a healthy run end one after the other.
    if (!fatal) return Make(SignalRole::kSymptom, FaultClass::kUnknown, 1, "process", "a lost connection");
    Signal s = Make(SignalRole::kPeerLost, FaultClass::kProcDeath, 5e-3, "process",
                    "a rank lost its connection to another one");
    s.own_word = true;
    return s;
  }
  return std::nullopt;
}

bool IsEcho(std::string_view p) {
  return HasAny(p, {"EngineDeadError",
                    "Engine core initialization failed",
                    "No available shared memory broadcast block",
                    "from another rank",
                    "ActorDiedError",
                    "ActorUnavailableError",
                    "AsyncLLM output_handler failed",
                    "Failed core proc",
                    "SIGQUIT received",
                    "Received sigquit",
                    "Received a dump signal",
                    "First PG on this rank to signal",
                    "RayChannelTimeoutError",
                    "RPC call to",
                    "MQLLMEngine is already dead",
                    "Error in completion stream generator",
                    "Background loop has errored",
                    "heartbeat",
                    "Worker failed with error",
                    "ChildFailedError",
                    "To avoid data inconsistency",
                    "Stack trace of the failed collective",
                    "Some NCCL operations have failed or timed out",
                    "kill_process_tree",
                    "Parent process exited",
                    "cancelled by user",
                    "CancelledError",
                    "health check failed",
                    "Health check failed"});
}

bool IsShutdown(const LogRecord& record, std::string_view first) {
  if (record.source == LogSource::kKernel) return false;
  if (Begins(first, "[shutdown]") && HasAny(first, {"trigger received", "shutdown triggered"})) return true;
  if (first == "Shutting down" || first == "shut down" || Begins(first, "serve shut down")) return true;
  return HasAny(first, {"SIGTERM received", "SIGINT received", "Received SIGTERM", "Received SIGINT",
                        "received signal 15", "Received signal 15", "Received signal 2", "signal=SIGTERM",
                        "signal=SIGINT", "Shutting down FastAPI HTTP server", "Shutting down shards",
                        "KeyboardInterrupt", "Draining requests and shutting down", "Graceful shutdown",
                        "graceful shutdown", "Shutting down the server", "cleaning up before exit"});
}

bool IsStart(std::string_view first) {
  return HasAny(first, {"Started server process", "Initializing a V1 LLM engine", "Initializing an LLM engine",
                        "vLLM API server version", "server_args=ServerArgs(", "build_info: "}) ||
         Begins(first, "starting ");
}

bool IsRefusal(std::string_view p) {
  if (HasAny(p, {"exceeds the available context size", "maximum context length",
                 "longer than the model's context length", "context length exceeded", "exceeds the context length",
                 "exceed context window", "exceeds the model's max", "longer than the maximum model length",
                 "exceeds maximum allowed", "exceeds the maximum allowed", "Unprocessable Entity",
                 "RequestValidationError", "prompt is too long", "input is too long", "Input validation error"})) {
    return true;
  }
  if (Has(p, "got exception") && HasAny(p, {"invalid_request_error", "\"code\":400", "exceed_context_size_error"}))
    return true;
  return Has(p, "is longer than") && HasAny(p, {"context", "model length", "max_model_len", "max_seq_len"});
}

/// Access lines and lines about single requests quote what clients sent: never evidence of anything but a refusal.
bool QuotesClients(const LogRecord& record) {
  return record.source == LogSource::kUvicorn || record.source == LogSource::kProgress ||
         Begins(record.message, "Receive: obj=") || Begins(record.message, "Finish: obj=") ||
         Begins(record.message, "Received request") || Begins(record.message, "server_args=") ||
         Begins(record.message, "non-default args");
}

std::optional<Signal> ReadAccess(const LogRecord& record) {
  for (const auto& [key, value] : record.statistics) {
    if (key != "http_status" || !Has(record.message, "\"POST ")) continue;
    // 401, 403 and 404 are about addresses and keys, not about what was asked.
    if (value == 400 || value == 413 || value == 422) {
      return Make(SignalRole::kClient, FaultClass::kClientError, 1, "request", "the server refused a request");
    }
    if (value >= 500 && value != 503)
      return Make(SignalRole::kSymptom, FaultClass::kUnknown, 1, "request", "a request failed");
  }
  return std::nullopt;
}

std::optional<Signal> ReadServing(std::string_view first, std::string_view p) {
  if (HasAny(first, {"Retract requests", "Decode out of memory happened", "is preempted by PreemptionMode",
                     "failed to find free space in the KV cache"})) {
    return Make(SignalRole::kKvEvent, FaultClass::kKvPressure, 1, "scheduler",
                "running requests lost their KV cache to others");
  }
  if (HasAny(p, {"hit config.recompile_limit", "hit config.cache_size_limit", "JIT compilation during inference"})) {
    return Make(SignalRole::kCompile, FaultClass::kCompileOnPath, 1, "python", "code was compiled while requests ran");
  }
  if (HasAny(p, {"KVTransferError", "Decode transfer failed", "Prefill transfer failed", "pulling kv_caches for",
                 "NIXL transfer failure", "NIXL transfer failed", "NIXL transfer setup/initiation failed",
                 "nixlRemoteDisconnectError", "NIXL_ERR_REMOTE_DISCONNECT", "NIXL_ERR_BACKEND",
                 "Releasing expired KV blocks for request"}) &&
      !Has(p, "Aborted by AbortReq")) {
    return Make(SignalRole::kTransfer, FaultClass::kKvTransferStall, 1, "network",
                "the transfer of KV cache between engines failed");
  }
  if (HasAny(p, {"Temporary failure in name resolution", "Name or service not known", "NameResolutionError"})) {
    return Make(SignalRole::kLookup, FaultClass::kFrontendNet, 1, "network", "a name could not be resolved");
  }
  return std::nullopt;
}

std::optional<Signal> ReadText(const LogRecord& record) {
  const std::string_view first = FirstLine(record.message);
  if (IsShutdown(record, first) && record.exception.empty())
    return Make(SignalRole::kShutdown, FaultClass::kUnknown, 1, "process", "asked to end");
  if (IsStart(first)) return Make(SignalRole::kStart, FaultClass::kUnknown, 1, "process", "starts");
  const bool quiet =
      record.level == LogLevel::kDebug || (record.level == LogLevel::kInfo && record.source != LogSource::kLlamaCpp);
  const std::string probe = ProbeText(record.message);
  if (auto s = ReadServing(first, probe)) return s;
  if (quiet && record.exception.empty())
    return IsEcho(probe)
               ? std::optional(Make(SignalRole::kSymptom, FaultClass::kUnknown, 1, "process", "a consequence"))
               : std::nullopt;
  // A messenger quotes the exception of another process: order matters.
  const bool echo = IsEcho(probe);
  if (!echo) {
    if (auto s = ReadGpuError(probe)) {
      s->own_word = true;
      return s;
    }
    if (auto s = ReadNetwork(record, probe)) return s;
  }
  if (auto s = ReadCollective(probe, record.level >= LogLevel::kError || !record.exception.empty())) return s;
  if (auto s = ReadDeath(probe)) return s;
  if (IsRefusal(probe))
    return Make(SignalRole::kClient, FaultClass::kClientError, 1, "request", "the server refused a request");
  if (echo) return Make(SignalRole::kSymptom, FaultClass::kUnknown, 1, "process", "a consequence");
  if (record.exception.empty() || Begins(first, "Exception ignored in")) return std::nullopt;
  Signal s = Make(SignalRole::kException, FaultClass::kProcDeath, 1e-3, "process", "an exception ended the process");
  s.own_word = true;
  s.fatal = HasAny(first, {"fatal error", "failed to start", "hit an exception", "WorkerProc failed", "Unhandled"}) ||
            (Begins(first, "Process ") && first.back() == ':');
  return s;
}

}  // namespace

std::optional<Signal> ReadSignal(const LogRecord& record, size_t row) {
  std::optional<Signal> s;
  if (record.source == LogSource::kKernel) {
    s = ReadKernel(record);
  } else if (record.source == LogSource::kUvicorn) {
    s = ReadAccess(record);
    const std::string_view first = FirstLine(record.message);
    if (!s && IsShutdown(record, first))
      s = Make(SignalRole::kShutdown, FaultClass::kUnknown, 1, "process", "asked to end");
    if (!s && IsStart(first)) s = Make(SignalRole::kStart, FaultClass::kUnknown, 1, "process", "starts");
  } else if (record.source == LogSource::kKineto) {
    return std::nullopt;  // the profiler's own complaints say nothing about the service
  } else if (Has(record.message, "NVRM: Xid (")) {
    s = ReadKernel(record);
  } else if (Begins(record.message, "server_args=")) {
    s = Make(SignalRole::kStart, FaultClass::kUnknown, 1, "process", "starts");
  } else if (!QuotesClients(record)) {
    s = ReadText(record);
  }
  if (!s) return s;
  s->row = row;
  const auto exceptions = ExceptionLines(record.message);
  s->line = Shorten(exceptions.empty() ? FirstLine(record.message) : exceptions.front(), kLineKept);
  return s;
}

}  // namespace teller::locate
