#include "encode/symbol.hpp"

#include <array>

#include "encode/kernel_symbol.hpp"
#include "encode/name_text.hpp"
#include "encode/range_symbol.hpp"
#include "tree/collectives.hpp"
#include "tree/kernel_name.hpp"

namespace teller::encode {

namespace {

using trace::SpanKind;

Layer LayerOf(SpanKind kind) {
  switch (kind) {
    case SpanKind::kPython: return Layer::kPython;
    case SpanKind::kOp: return Layer::kOp;
    case SpanKind::kAnnotation: return Layer::kAnnotation;
    case SpanKind::kRuntime: return Layer::kRuntime;
    case SpanKind::kDriver: return Layer::kDriver;
    case SpanKind::kKernel: return Layer::kKernel;
    case SpanKind::kCopy: return Layer::kCopy;
    case SpanKind::kMemset: return Layer::kMemset;
    case SpanKind::kGpuAnnotation: return Layer::kGpuAnnotation;
    case SpanKind::kSync: return Layer::kSync;
    case SpanKind::kOverhead: return Layer::kOverhead;
    case SpanKind::kProfiler: return Layer::kProfiler;
    case SpanKind::kService: return Layer::kService;
    case SpanKind::kOther: break;
  }
  return Layer::kOther;
}

/// Longer names are cut before anything looks at them: what tells operators apart stands in front.
constexpr size_t kMaxName = 4096;

Symbol Raw(SpanKind kind, std::string_view name) {
  switch (kind) {
    case SpanKind::kPython: return FrameSymbol(name);
    case SpanKind::kOp: return OpSymbol(name);
    case SpanKind::kAnnotation: return RangeSymbol(name, Layer::kAnnotation);
    case SpanKind::kGpuAnnotation: return {Layer::kGpuAnnotation, RangeSymbol(name, Layer::kGpuAnnotation).name};
    case SpanKind::kRuntime:
    case SpanKind::kDriver: return {LayerOf(kind), ApiName(name)};
    case SpanKind::kKernel: {
      const bool comm = tree::ClassOfName(name) == tree::KernelClass::kCollective;
      return {comm ? Layer::kCommKernel : Layer::kKernel, KernelName(name)};
    }
    default: break;
  }
  Symbol symbol{LayerOf(kind), WithoutNumbers(name)};
  if (kind == SpanKind::kOther && tree::IsCommunicationName(name)) symbol.layer = Layer::kComm;
  return symbol;
}

}  // namespace

std::string_view Name(Layer layer) {
  static constexpr std::array<std::string_view, kLayers> kNames = {
      "other",   "python", "module", "op",          "annotation",     "runtime", "driver",   "kernel",
      "copy",    "memset", "comm",   "comm-kernel", "gpu-annotation", "sync",    "overhead", "profiler",
      "service", "thread", "stream", "log"};
  return kNames[static_cast<size_t>(layer)];
}

Symbol Normalize(SpanKind kind, std::string_view name) {
  Symbol symbol = Raw(kind, name.substr(0, kMaxName));
  // Names go into files and onto terminals.
  for (char& c : symbol.name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) c = ' ';
  }
  symbol.name = Bounded(std::move(symbol.name));
  return symbol;
}

const Symbol& Symbols::Of(trace::SpanRow span) {
  const auto kind = store_.kind(span.value());
  const trace::StringId name = store_.spans.name[span.value()];
  const uint64_t key = uint64_t{name.value()} << 8 | static_cast<uint64_t>(kind);
  auto [it, fresh] = known_.try_emplace(key);
  if (fresh) it->second = Normalize(kind, store_.text(name));
  return it->second;
}

}  // namespace teller::encode
