#include "trace/types.hpp"

#include "trace/log_record.hpp"

namespace teller::trace {

std::string_view Name(SpanKind kind) {
  switch (kind) {
    case SpanKind::kOther: return "other";
    case SpanKind::kPython: return "python";
    case SpanKind::kOp: return "op";
    case SpanKind::kAnnotation: return "annotation";
    case SpanKind::kRuntime: return "runtime";
    case SpanKind::kDriver: return "driver";
    case SpanKind::kKernel: return "kernel";
    case SpanKind::kCopy: return "copy";
    case SpanKind::kMemset: return "memset";
    case SpanKind::kGpuAnnotation: return "gpu annotation";
    case SpanKind::kSync: return "sync";
    case SpanKind::kOverhead: return "overhead";
    case SpanKind::kProfiler: return "profiler";
    case SpanKind::kService: return "service";
  }
  return "other";
}

std::string_view Name(LogSource source) {
  switch (source) {
    case LogSource::kUnknown: return "unknown";
    case LogSource::kVllm: return "vllm";
    case LogSource::kSglang: return "sglang";
    case LogSource::kLlamaCpp: return "llama.cpp";
    case LogSource::kNccl: return "nccl";
    case LogSource::kTorchC10: return "torch c10";
    case LogSource::kUvicorn: return "uvicorn";
    case LogSource::kPythonLogging: return "python logging";
    case LogSource::kKernel: return "kernel";
    case LogSource::kProgress: return "progress";
    case LogSource::kTraceback: return "traceback";
    case LogSource::kGlog: return "glog";
    case LogSource::kKineto: return "kineto";
    case LogSource::kTensorRtLlm: return "tensorrt-llm";
    case LogSource::kTgi: return "tgi";
    case LogSource::kTriton: return "triton";
    case LogSource::kRay: return "ray";
    case LogSource::kFabricManager: return "fabric manager";
    case LogSource::kProgramOutput: return "program output";
  }
  return "unknown";
}

std::string_view Name(LogLevel level) {
  switch (level) {
    case LogLevel::kUnknown: return "unknown";
    case LogLevel::kDebug: return "debug";
    case LogLevel::kInfo: return "info";
    case LogLevel::kWarning: return "warning";
    case LogLevel::kError: return "error";
    case LogLevel::kFatal: return "fatal";
  }
  return "unknown";
}

}  // namespace teller::trace
