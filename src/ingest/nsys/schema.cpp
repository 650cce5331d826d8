#include "ingest/nsys/schema.hpp"

#include <algorithm>
#include <array>

namespace teller::ingest::nsys {

namespace {

using trace::SpanKind;

constexpr std::array kTables = {
    EventTable{"NVTX_EVENTS", Shape::kNvtx, "nvtx", SpanKind::kAnnotation},
    EventTable{"CUBLAS_EVENTS", Shape::kHost, "cublas", SpanKind::kOther},
    EventTable{"CUDNN_EVENTS", Shape::kHost, "cudnn", SpanKind::kOther},
    EventTable{"MPI_COLLECTIVES_EVENTS", Shape::kHost, "mpi", SpanKind::kOther},
    EventTable{"MPI_P2P_EVENTS", Shape::kHost, "mpi", SpanKind::kOther},
    EventTable{"MPI_START_WAIT_EVENTS", Shape::kHost, "mpi", SpanKind::kOther},
    EventTable{"MPI_OTHER_EVENTS", Shape::kHost, "mpi", SpanKind::kOther},
    EventTable{"CUPTI_ACTIVITY_KIND_RUNTIME", Shape::kRuntime, "cuda_runtime", SpanKind::kRuntime},
    EventTable{"CUDA_GRAPH_EVENTS", Shape::kGraphNode, "cuda_graph_making", SpanKind::kOther},
    EventTable{"CUDA_GRAPH_NODE_EVENTS", Shape::kGraphNode, "cuda_graph_making", SpanKind::kOther},
    EventTable{"OSRT_API", Shape::kHost, "osrt", SpanKind::kOther},
    EventTable{"PROFILER_OVERHEAD", Shape::kHost, "overhead", SpanKind::kOverhead},
    EventTable{"CUPTI_ACTIVITY_KIND_OVERHEAD", Shape::kHost, "overhead", SpanKind::kOverhead},
    EventTable{"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", Shape::kGpu, "cuda_graph", SpanKind::kKernel},
    EventTable{"CUPTI_ACTIVITY_KIND_KERNEL", Shape::kGpu, "kernel", SpanKind::kKernel},
    EventTable{"CUPTI_ACTIVITY_KIND_MEMCPY", Shape::kGpu, "gpu_memcpy", SpanKind::kCopy},
    EventTable{"CUPTI_ACTIVITY_KIND_MEMSET", Shape::kGpu, "gpu_memset", SpanKind::kMemset},
    EventTable{"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", Shape::kGpu, "cuda_sync", SpanKind::kSync},
    EventTable{"COMPOSITE_EVENTS", Shape::kSample, "sample", SpanKind::kOther},
};

}  // namespace

std::span<const EventTable> EventTables() {
  return kTables;
}

const Columns& ColumnsOf(Shape shape) {
  static const Columns kGpu = {
      {"start"},       {"end"},
      {"globalPid"},   {"demangledName", "shortName", "copyKind", "memKind", "graphExecId", "graphId", "syncType"},
      {"contextId"},   {"streamId"},
      {"deviceId"},    {"correlationId"},
      {"graphNodeId"}, {"bytes"},
      {"srcKind"},     {"dstKind"}};
  static const Columns kHost = {{"start"},         {"end"},        {"globalTid"},   {"nameId", "textId"},
                                {"correlationId"}, {"eventClass"}, {"graphNodeId"}, {"originalGraphNodeId"}};
  static const Columns kNvtx = {{"start"}, {"end"},       {"globalTid"},    {"textId"},
                                {"text"},  {"eventType"}, {"endGlobalTid"}, {"domainId"}};
  static const Columns kSample = {{"start"}, {"id"}, {"globalTid"}};
  switch (shape) {
    case Shape::kGpu: return kGpu;
    case Shape::kNvtx: return kNvtx;
    case Shape::kSample: return kSample;
    case Shape::kHost:
    case Shape::kRuntime:
    case Shape::kGraphNode: break;
  }
  return kHost;
}

bool HasNeeded(const Table& table, Shape shape) {
  const auto has = [&table](std::string_view column) { return table.Has(column); };
  if (!has("start")) return false;
  if (shape == Shape::kSample) return has("globalTid");
  if (!has("end")) return false;
  return shape != Shape::kNvtx || has("eventType");
}

}  // namespace teller::ingest::nsys
