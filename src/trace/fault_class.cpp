#include "trace/fault_class.hpp"

#include <array>

namespace teller::trace {

namespace {

struct Row {
  std::string_view name;
  std::string_view action;
};

// Indexed by FaultClass.
constexpr std::array<Row, kFaultClasses> kRows = {{
    {"UNKNOWN", "Look at the evidence below in the order given."},
    {"NOT_A_FAULT", "Nothing is broken: compare with a run of equal load."},
    {"OBSERVER_EFFECT", "Take a shorter profile without stacks and leave its start and export out of the comparison."},
    {"COLL_FIRST_OP_HANG", "Check the peer path between the GPUs (P2P, ACS, IOMMU, shared memory) with a two-rank all-reduce test."},
    {"COLL_DIVERGENCE", "Compare what the named rank ran just before with the other ranks: they issued different collectives."},
    {"STRAGGLER_RANK", "Look at what else runs on the named rank's host and device; the other ranks only wait for it."},
    {"NET_LINK_FAULT", "Check the link of the named rank: errors, negotiated rate, drops and congestion counters."},
    {"NET_PATH_WRONG", "Check which transport and interface the collectives use (sockets instead of RDMA, wrong interface)."},
    {"INTRA_LINK_DEGRADED", "Check NVLink and PCIe state, width and replay counters of the named device."},
    {"GPU_APP_FAULT", "Re-run the failing request with synchronous launches to find the kernel that faults."},
    {"GPU_HW_FAULT", "Drain the node and run the vendor's diagnostics on the named device."},
    {"GPU_CLOCK_LIMIT", "Read clocks, power and throttle reasons of the named device."},
    {"GPU_MEM_OOM", "Lower the memory fraction or the graph and batch limits, or free the device's memory held by others."},
    {"KV_PRESSURE", "Give the KV cache more room or admit fewer or shorter requests at a time."},
    {"PREFIX_MISS", "Check why prompts stopped sharing prefix blocks (cache disabled, changed template, hash or salt)."},
    {"PREFILL_BLOCKING", "Enable or shrink chunked prefill so that one long prompt does not hold up decoding."},
    {"SCHED_STALL", "Find out why the scheduler leaves work queued with slots and KV blocks free."},
    {"DP_SKEW", "Check how requests are routed over the engines."},
    {"HOST_CPU_BOUND", "Profile the named process's host code in the marked interval."},
    {"RUNTIME_PAUSE", "Find what stopped the named process: garbage collection, a stop signal, a debugger, a frozen container."},
    {"HOST_MEM_PRESSURE", "Check memory limits, reclaim and major faults of the named process's host."},
    {"CPU_STARVED", "Check what else runs on the named process's CPUs, its CPU quota and its thread count."},
    {"HIDDEN_SYNC", "Remove the small blocking copy or synchronization from the step."},
    {"IPC_OVERHEAD", "Check what passes between the processes before each step and how large it is."},
    {"GRAPH_FALLBACK", "Check why captured graphs are not used for this batch shape."},
    {"COMPILE_ON_PATH", "Warm up the shapes that compile during serving, or pin them."},
    {"KERNEL_REGRESSION", "Compare the named operator's implementation (backend, version, shape, layout) with a run where it is fast."},
    {"SPEC_COLLAPSE", "Check the draft model: few of its tokens are accepted."},
    {"MOE_SKEW", "Check the balance of tokens over experts."},
    {"PRE_FORWARD_STALL", "Look at what runs before the first forward of a request: grammar, multimodal, adapter, tokenizer."},
    {"KV_TRANSFER_STALL", "Check the KV transfer path between prefill and decode."},
    {"STORAGE_SLOW", "Check the read rate of the volume that holds the weights."},
    {"FRONTEND_NET", "Check what stands before the engine: proxy, DNS, connection limits."},
    {"CLIENT_ERROR", "Look at the rejected requests and who sends them; the engine itself is well."},
    {"PROC_DEATH", "Read the last lines of the named process and the kernel log of its host at that time."},
}};

}  // namespace

std::string_view Name(FaultClass fault) { return kRows[static_cast<size_t>(fault)].name; }

std::optional<FaultClass> FaultClassFromName(std::string_view name) {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].name == name) return static_cast<FaultClass>(i);
  }
  return std::nullopt;
}

std::string_view FirstAction(FaultClass fault) { return kRows[static_cast<size_t>(fault)].action; }

}  // namespace teller::trace
