#pragma once

#include <string_view>

#include "trace/types.hpp"

namespace teller::ingest {

/// What a category of a Chrome trace stands for; kOther when it is none of the known ones.
/// Source: libkineto's activity types, the profiler's old schema, and the llama.cpp hook's categories.
trace::SpanKind KindOfCategory(std::string_view category);

/// True for records that stand on a device's lanes, where pid and tid number devices and streams, not processes.
constexpr bool IsDeviceSide(trace::SpanKind kind) {
  return trace::IsGpuWork(kind) || kind == trace::SpanKind::kGpuAnnotation || kind == trace::SpanKind::kSync;
}

}  // namespace teller::ingest
