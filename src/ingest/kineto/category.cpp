#include "ingest/kineto/category.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace teller::ingest {

namespace {

using trace::SpanKind;

constexpr std::array<std::pair<std::string_view, SpanKind>, 35> kCategories = {{
    {"cpu_op", SpanKind::kOp},
    {"Operator", SpanKind::kOp},
    {"op", SpanKind::kOp},
    {"hpu_op", SpanKind::kOp},
    {"user_annotation", SpanKind::kAnnotation},
    {"nvtx", SpanKind::kAnnotation},
    {"NVTX", SpanKind::kAnnotation},
    {"llama", SpanKind::kAnnotation},
    {"python_function", SpanKind::kPython},
    {"cuda_runtime", SpanKind::kRuntime},
    {"Runtime", SpanKind::kRuntime},
    {"hip_runtime", SpanKind::kRuntime},
    {"xpu_runtime", SpanKind::kRuntime},
    {"mtia_runtime", SpanKind::kRuntime},
    {"glow_runtime", SpanKind::kRuntime},
    {"privateuse1_runtime", SpanKind::kRuntime},
    {"cuda_driver", SpanKind::kDriver},
    {"xpu_driver", SpanKind::kDriver},
    {"privateuse1_driver", SpanKind::kDriver},
    {"kernel", SpanKind::kKernel},
    {"Kernel", SpanKind::kKernel},
    {"concurrent_kernel", SpanKind::kKernel},
    {"mtia_ccp_events", SpanKind::kKernel},
    {"mtia_workloadd", SpanKind::kKernel},
    {"collective_comm", SpanKind::kKernel},
    {"gpu_memcpy", SpanKind::kCopy},
    {"Memcpy", SpanKind::kCopy},
    {"gpu_memset", SpanKind::kMemset},
    {"Memset", SpanKind::kMemset},
    {"gpu_user_annotation", SpanKind::kGpuAnnotation},
    {"cuda_sync", SpanKind::kSync},
    {"cuda_event", SpanKind::kSync},
    {"overhead", SpanKind::kOverhead},
    {"Trace", SpanKind::kProfiler},
    {"External Correlation", SpanKind::kOther},
}};

}  // namespace

SpanKind KindOfCategory(std::string_view category) {
  const auto* it = std::find_if(kCategories.begin(), kCategories.end(),
                                [category](const auto& row) { return row.first == category; });
  return it == kCategories.end() ? SpanKind::kOther : it->second;
}

}  // namespace teller::ingest
