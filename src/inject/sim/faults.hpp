#pragma once

#include <optional>
#include <string>
#include <vector>

#include "inject/sim/layout.hpp"
#include "trace/fault_class.hpp"

namespace teller::inject::sim {

/// What can be put into a simulated run.
enum class Kind : uint8_t {
  kNone,
  kLongPrefill,
  kBigBatch,
  kWarmUp,
  kBurst,
  kProfiler,
  kShutdown,
  kSpeculation,
  kDisaggregated,
  kTier,
  kCheckpoint,
  kStraggler,
  kSlowOperator,
  kKernelRegression,
  kGpuClock,
  kSlowLink,
  kIntraLink,
  kNetPath,
  kPause,
  kCpuStarved,
  kHostBound,
  kIpc,
  kMemoryPressure,
  kHiddenSync,
  kKvPressure,
  kPrefillBlocking,
  kSchedStall,
  kSlowTokenizer,
  kPreForward,
  kGraphFallback,
  kCompile,
  kMoeSkew,
  kDpSkew,
  kPrefixMiss,
  kRankDeath,
  kOom,
  kGpuHardware,
  kGpuFault,
  kCollHang,
  kCollDivergence,
  kClientError,
  kSpecCollapse,
  kKvTransfer,
  kSlowTier,
  kSlowCheckpoint,
  kSlowWeights,
  kFrontNet,
};

/// One row of the registry.
struct KindInfo {
  Kind kind = Kind::kNone;
  const char* name = "";
  trace::FaultClass fault = trace::FaultClass::kNotAFault;
  std::vector<trace::FaultClass> accepted;
  const char* layer = "";
  const char* what = "";             ///< the mechanism, one line
  std::vector<const char*> visible;  ///< places of the label
  bool serving = true;               ///< engines that serve requests can have it
  bool sharded = true;               ///< FSDP can have it
  int ranks = 1;                     ///< needs at least so many
  bool on_rank = false;              ///< one rank is the culprit
};

const std::vector<KindInfo>& Kinds();

bool HoldsLong(Kind kind);  ///< for most of the run, as queues, caches and clients need time
bool IsDeath(Kind kind);    ///< comes after the recording and ends the run
bool HasWindow(Kind kind);  ///< something begins and ends while the service runs
bool NeedsPart(Kind kind);  ///< is about a part that a service may have besides: drafts, keys from elsewhere
bool HasMagnitude(const KindInfo& kind);  ///< there is more or less of it: no look-alike, no death
bool StepsAsUsual(Kind kind);             ///< each step does its usual work in its usual time

/// The row that a kind's or a class's name asks for. Errors: kUsage: unknown; a class that is not built; an engine or
/// number of ranks or stages that cannot have it.
base::Result<const KindInfo*> FindKind(const std::string& name, Engine engine, int ranks, int stages);

}  // namespace teller::inject::sim
