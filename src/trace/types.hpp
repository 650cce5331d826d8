#pragma once

#include <cstdint>
#include <string_view>

#include "base/diagnostics.hpp"
#include "base/ids.hpp"
#include "base/nanos.hpp"
#include "base/string_pool.hpp"

namespace teller::trace {

using base::FileRow;
using base::kNoTime;
using base::Nanos;
using base::StringId;

struct ProcessTag;
struct TrackTag;
struct SpanTag;
struct StepTag;
struct CollectiveTag;
struct LogTag;
using ProcessRow = base::Id<ProcessTag>;  ///< one recorded process of one file (OS pids are reusable)
using TrackRow = base::Id<TrackTag>;      ///< one ordered lane: thread or GPU stream
using SpanRow = base::Id<SpanTag>;
using StepRow = base::Id<StepTag>;
using CollectiveRow = base::Id<CollectiveTag>;
using LogRow = base::Id<LogTag>;

/// What a span is, whatever its writer called the category. Written to files: never renumber.
enum class SpanKind : uint8_t {
  kOther = 0,
  kPython = 1,         ///< interpreter frame (python_function)
  kOp = 2,             ///< framework operator (cpu_op, Operator, ggml op)
  kAnnotation = 3,     ///< range that the program or engine named (user_annotation, NVTX)
  kRuntime = 4,        ///< CUDA/HIP runtime call
  kDriver = 5,         ///< CUDA driver call
  kKernel = 6,
  kCopy = 7,           ///< memory copy on the GPU
  kMemset = 8,
  kGpuAnnotation = 9,  ///< mirror of an annotation on a stream
  kSync = 10,          ///< synchronization record (cuda_sync)
  kOverhead = 11,      ///< the profiler's own work
  kProfiler = 12,      ///< the recording itself (category Trace)
  kService = 13,       ///< what a service reports of its requests and of itself (OTLP), no work of a traced thread
};
inline constexpr int kSpanKinds = 14;

std::string_view Name(SpanKind kind);
/// Kernel, copy or memset: work on a stream that a CPU call launched.
constexpr bool IsGpuWork(SpanKind kind) {
  return kind == SpanKind::kKernel || kind == SpanKind::kCopy || kind == SpanKind::kMemset;
}
/// Runtime or driver API call.
constexpr bool IsApiCall(SpanKind kind) { return kind == SpanKind::kRuntime || kind == SpanKind::kDriver; }

}  // namespace teller::trace
