#include "inject/sim/faults.hpp"

#include <fmt/format.h>

namespace teller::inject::sim {

namespace {

using trace::FaultClass;

std::vector<KindInfo> Build() {
  using F = FaultClass;
  return {
      {Kind::kNone, "none", F::kNotAFault, {}, "", "a healthy run", {}},
      {Kind::kLongPrefill,
       "long-prefill",
       F::kNotAFault,
       {},
       "",
       "no fault: one prompt of thousands of tokens, cut into chunks",
       {}},
      {Kind::kBigBatch,
       "big-batch",
       F::kNotAFault,
       {},
       "",
       "no fault: three times as many sequences run at once for a while",
       {}},
      {Kind::kWarmUp,
       "warm-up",
       F::kNotAFault,
       {},
       "",
       "no fault: the first steps of the trace compile and load kernels",
       {}},
      {Kind::kBurst, "burst", F::kNotAFault, {}, "", "no fault: many requests arrive at once", {}, true, false},
      {Kind::kProfiler,
       "profiler",
       F::kObserverEffect,
       {F::kNotAFault},
       "",
       "no fault: starting and stopping the profiler holds every rank",
       {}},
      {Kind::kShutdown,
       "shutdown",
       F::kNotAFault,
       {},
       "",
       "no fault: the service is shut down in order at the end",
       {}},
      {Kind::kSpeculation,
       "speculation",
       F::kNotAFault,
       {},
       "",
       "no fault: speculative decoding, as it should be",
       {},
       true,
       false},
      {Kind::kDisaggregated,
       "disaggregation",
       F::kNotAFault,
       {},
       "",
       "no fault: prompts are computed by another instance, keys come in time",
       {},
       true,
       false},
      {Kind::kTier,
       "kv-tier",
       F::kNotAFault,
       {},
       "",
       "no fault: keys of shared prefixes are loaded from a tier below the GPU's memory",
       {},
       true,
       false},
      {Kind::kCheckpoint,
       "checkpoint",
       F::kNotAFault,
       {},
       "",
       "no fault: checkpoints are written between steps",
       {},
       false,
       true},
      {Kind::kStraggler,
       "straggler",
       F::kStragglerRank,
       {F::kHostCpuBound, F::kCpuStarved},
       "host",
       "one rank's host code is slower, its peers wait",
       {"trace"},
       true,
       true,
       2,
       true},
      {Kind::kSlowOperator,
       "slow-operator",
       F::kKernelRegression,
       {},
       "kernel",
       "one operation of every layer takes longer on all ranks",
       {"trace"}},
      {Kind::kKernelRegression,
       "kernel-regression",
       F::kKernelRegression,
       {},
       "kernel",
       "another, slower kernel is chosen for one operation",
       {"trace"}},
      {Kind::kGpuClock,
       "gpu-clock",
       F::kGpuClockLimit,
       {F::kStragglerRank, F::kKernelRegression},
       "hardware",
       "one GPU runs at a lower clock",
       {"trace", "metrics"},
       true,
       true,
       2,
       true},
      {Kind::kSlowLink,
       "slow-link",
       F::kNetLinkFault,
       {F::kIntraLinkDegraded},
       "network",
       "the ring link from one rank to the next is slow",
       {"trace"},
       true,
       true,
       2,
       true},
      {Kind::kIntraLink,
       "intra-link",
       F::kIntraLinkDegraded,
       {F::kNetLinkFault},
       "hardware",
       "both ring links of one GPU are slow, the kernel log names its link",
       {"trace", "log"},
       true,
       true,
       2,
       true},
      {Kind::kNetPath,
       "net-path",
       F::kNetPathWrong,
       {F::kNetLinkFault, F::kIntraLinkDegraded},
       "network",
       "all collectives take the slow path for the whole run",
       {"log"},
       true,
       true,
       2,
       false},
      {Kind::kPause,
       "pause",
       F::kRuntimePause,
       {},
       "python",
       "one rank's process stands still again and again",
       {"trace"},
       true,
       true,
       1,
       true},
      {Kind::kCpuStarved,
       "cpu-starved",
       F::kCpuStarved,
       {F::kRuntimePause},
       "host",
       "a CPU quota stops one rank's process in every period of 100 ms",
       {"trace", "host"},
       true,
       true,
       1,
       true},
      {Kind::kHostBound,
       "host-bound",
       F::kHostCpuBound,
       {F::kIpcOverhead},
       "python",
       "the scheduler's code between steps takes longer",
       {"trace"}},
      {Kind::kIpc,
       "ipc-overhead",
       F::kIpcOverhead,
       {F::kHostCpuBound},
       "python",
       "handing a step to the workers is slow",
       {"trace"},
       true,
       false},
      {Kind::kMemoryPressure,
       "memory-pressure",
       F::kHostMemPressure,
       {F::kCpuStarved, F::kRuntimePause},
       "host",
       "page reclaim stretches one rank's host code and stops it at random",
       {"trace", "host"},
       true,
       true,
       1,
       true},
      {Kind::kHiddenSync,
       "hidden-sync",
       F::kHiddenSync,
       {F::kHostCpuBound},
       "cuda_api",
       "tiny copies in every step wait for the device",
       {"trace"}},
      {Kind::kKvPressure,
       "kv-pressure",
       F::kKvPressure,
       {},
       "scheduler",
       "the KV cache has room for fewer tokens; sequences are thrown out and computed again",
       {"log", "metrics"},
       true,
       false},
      {Kind::kPrefillBlocking,
       "prefill-blocking",
       F::kPrefillBlocking,
       {},
       "scheduler",
       "long prompts are computed in one piece, without the decoding sequences",
       {"trace", "requests"},
       true,
       false},
      {Kind::kSchedStall,
       "sched-stall",
       F::kSchedStall,
       {},
       "scheduler",
       "the scheduler admits nobody though there is room",
       {"log", "spans", "metrics"},
       true,
       false},
      {Kind::kSlowTokenizer,
       "slow-tokenizer",
       F::kHostCpuBound,
       {F::kPreForwardStall, F::kFrontendNet},
       "python",
       "the front end's tokenizer is slow",
       {"spans", "requests"},
       true,
       false},
      {Kind::kPreForward,
       "pre-forward-stall",
       F::kPreForwardStall,
       {F::kHostCpuBound},
       "python",
       "work on the CPU before the first forward pass of each request",
       {"trace"},
       true,
       false},
      {Kind::kGraphFallback,
       "graph-fallback",
       F::kGraphFallback,
       {F::kHostCpuBound},
       "python",
       "decoding steps launch kernels one by one in place of a graph",
       {"trace"},
       true,
       false},
      {Kind::kCompile,
       "compile",
       F::kCompileOnPath,
       {F::kHostCpuBound, F::kRuntimePause},
       "python",
       "kernels are compiled and loaded while requests are served",
       {"trace", "log"}},
      {Kind::kMoeSkew,
       "moe-skew",
       F::kMoeSkew,
       {F::kStragglerRank},
       "kernel",
       "one rank holds the experts that most tokens choose",
       {"trace"},
       true,
       false,
       2,
       true},
      {Kind::kDpSkew,
       "dp-skew",
       F::kDpSkew,
       {},
       "scheduler",
       "the router sends most requests to one replica",
       {"log", "trace"},
       true,
       false,
       16,
       false},
      {Kind::kPrefixMiss,
       "prefix-miss",
       F::kPrefixMiss,
       {},
       "python",
       "a shared prefix is no longer found in the cache",
       {"log", "metrics"},
       true,
       false},
      {Kind::kRankDeath,
       "rank-death",
       F::kProcDeath,
       {},
       "process",
       "one rank's process is killed",
       {"log"},
       true,
       true,
       2,
       true},
      {Kind::kOom,
       "oom",
       F::kGpuMemOom,
       {F::kProcDeath},
       "cuda_api",
       "one rank runs out of GPU memory",
       {"log"},
       true,
       true,
       1,
       true},
      {Kind::kGpuHardware,
       "gpu-hardware",
       F::kGpuHwFault,
       {F::kProcDeath},
       "hardware",
       "one GPU falls off the bus",
       {"log"},
       true,
       true,
       1,
       true},
      {Kind::kGpuFault,
       "gpu-fault",
       F::kGpuAppFault,
       {F::kProcDeath},
       "kernel",
       "a kernel of one rank reads an illegal address",
       {"log"},
       true,
       true,
       1,
       true},
      {Kind::kCollHang,
       "coll-hang",
       F::kCollFirstOpHang,
       {},
       "collective",
       "the first collective never ends on any rank",
       {"log"},
       true,
       true,
       2,
       false},
      {Kind::kCollDivergence,
       "coll-divergence",
       F::kCollDivergence,
       {},
       "collective",
       "one rank issues another collective than its peers",
       {"log"},
       true,
       true,
       3,
       true},
      {Kind::kClientError,
       "client-error",
       F::kClientError,
       {},
       "request",
       "a client floods the server with prompts that are too long",
       {"log"},
       true,
       false},
      {Kind::kSpecCollapse,
       "spec-collapse",
       F::kSpecCollapse,
       {},
       "python",
       "hardly any proposed token of speculative decoding is right",
       {"log", "metrics"},
       true,
       false},
      {Kind::kKvTransfer,
       "kv-transfer",
       F::kKvTransferStall,
       {},
       "network",
       "keys come slowly from the instance that computes prompts, or not at all",
       {"trace", "log", "metrics", "spans"},
       true,
       false},
      {Kind::kSlowTier,
       "slow-kv-tier",
       F::kStorageSlow,
       {F::kKvTransferStall},
       "storage",
       "keys of shared prefixes come slowly from the tier that holds them",
       {"trace", "metrics", "spans"},
       true,
       false},
      {Kind::kSlowCheckpoint,
       "slow-checkpoint",
       F::kStorageSlow,
       {},
       "storage",
       "checkpoints are written slowly",
       {"trace", "log", "host"},
       false,
       true},
      {Kind::kSlowWeights,
       "slow-weights",
       F::kStorageSlow,
       {},
       "storage",
       "weights are read slowly when the service starts",
       {"log"}},
      {Kind::kFrontNet,
       "front-net",
       F::kFrontendNet,
       {},
       "network",
       "the network between clients and the server loses packets; clients give up",
       {"log", "metrics", "requests"},
       true,
       false},
  };
}

}  // namespace

const std::vector<KindInfo>& Kinds() {
  static const std::vector<KindInfo> kKinds = Build();
  return kKinds;
}

bool HoldsLong(Kind kind) {
  switch (kind) {
    case Kind::kKvPressure:
    case Kind::kPrefillBlocking:
    case Kind::kSchedStall:
    case Kind::kSlowTokenizer:
    case Kind::kDpSkew:
    case Kind::kPrefixMiss:
    case Kind::kBigBatch:
    case Kind::kSpecCollapse:
    case Kind::kKvTransfer:
    case Kind::kSlowTier:
    case Kind::kFrontNet:
    case Kind::kClientError: return true;
    default: return false;
  }
}

bool IsDeath(Kind kind) {
  return kind == Kind::kRankDeath || kind == Kind::kOom || kind == Kind::kGpuHardware || kind == Kind::kGpuFault ||
         kind == Kind::kCollHang || kind == Kind::kCollDivergence;
}

bool HasWindow(Kind kind) {
  switch (kind) {
    case Kind::kNone:
    case Kind::kWarmUp:
    case Kind::kProfiler:
    case Kind::kShutdown:
    case Kind::kSpeculation:
    case Kind::kDisaggregated:
    case Kind::kTier:
    case Kind::kCheckpoint:
    case Kind::kSlowWeights: return false;
    default: return true;
  }
}

bool HasMagnitude(const KindInfo& kind) {
  return !IsDeath(kind.kind) && kind.fault != trace::FaultClass::kNotAFault &&
         kind.fault != trace::FaultClass::kObserverEffect;
}

bool StepsAsUsual(Kind kind) {
  switch (kind) {
    case Kind::kSlowTokenizer:
    case Kind::kClientError:
    case Kind::kSpecCollapse:
    case Kind::kFrontNet: return true;
    default: return false;
  }
}

bool NeedsPart(Kind kind) {
  switch (kind) {
    case Kind::kSpecCollapse:
    case Kind::kSpeculation:
    case Kind::kKvTransfer:
    case Kind::kDisaggregated:
    case Kind::kSlowTier:
    case Kind::kTier: return true;
    default: return false;
  }
}

base::Result<const KindInfo*> FindKind(const std::string& name, Engine engine, int ranks, int stages) {
  const auto fault = trace::FaultClassFromName(name);
  const auto fits = [&](const KindInfo& kind) { return engine == Engine::kFsdp ? kind.sharded : kind.serving; };
  const KindInfo* found = nullptr;
  for (const KindInfo& kind : Kinds()) {
    if (kind.name == name) found = &kind;
    // Of a class, the first kind that the engine can have.
    if (fault && kind.fault == *fault && (found == nullptr || (!fits(*found) && fits(kind)))) found = &kind;
  }
  const auto usage = [](std::string text) { return base::Error{base::Code::kUsage, std::move(text)}; };
  if (found == nullptr && fault)
    return usage(fmt::format("{} is not built; \"teller lab list\" names what can be simulated", name));
  if (found == nullptr) return usage(fmt::format("unknown fault \"{}\"; \"teller lab list\" names them", name));
  if (!fits(*found)) {
    return usage(fmt::format("{} cannot have {}: {}", Name(engine), found->name,
                             engine == Engine::kFsdp ? "it serves no queue of requests with a cache and graphs"
                                                     : "it writes no checkpoints"));
  }
  if (stages > 1 && NeedsPart(found->kind))
    return usage(fmt::format("{} is not modelled together with a pipeline; leave --pipeline out", found->name));
  if (found->kind == Kind::kDpSkew && ranks < found->ranks * stages)
    return usage(fmt::format("{} needs two replicas: at least {} ranks in {} stages", found->name,
                             found->ranks * stages, stages));
  if (ranks < found->ranks) return usage(fmt::format("{} needs at least {} ranks", found->name, found->ranks));
  return found;
}

}  // namespace teller::inject::sim
