#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace teller::trace {

/// Root-cause classes (docs/reference/fault-classes.md). Written to files by name: never rename.
enum class FaultClass : uint8_t {
  kUnknown = 0,
  kNotAFault,
  kObserverEffect,
  kCollFirstOpHang,
  kCollDivergence,
  kStragglerRank,
  kNetLinkFault,
  kNetPathWrong,
  kIntraLinkDegraded,
  kGpuAppFault,
  kGpuHwFault,
  kGpuClockLimit,
  kGpuMemOom,
  kKvPressure,
  kPrefixMiss,
  kPrefillBlocking,
  kSchedStall,
  kDpSkew,
  kHostCpuBound,
  kRuntimePause,
  kHostMemPressure,
  kCpuStarved,
  kHiddenSync,
  kIpcOverhead,
  kGraphFallback,
  kCompileOnPath,
  kKernelRegression,
  kSpecCollapse,
  kMoeSkew,
  kPreForwardStall,
  kKvTransferStall,
  kStorageSlow,
  kFrontendNet,
  kClientError,
  kProcDeath,
};
inline constexpr int kFaultClasses = 35;

/// "STRAGGLER_RANK" and so on.
std::string_view Name(FaultClass fault);
std::optional<FaultClass> FaultClassFromName(std::string_view name);
/// What to check first when this class is found; one sentence for a person on call.
std::string_view FirstAction(FaultClass fault);

}  // namespace teller::trace
