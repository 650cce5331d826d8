#include "locate/naming.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace teller::locate {

namespace {

using trace::SpanKind;

constexpr std::string_view kModule = "nn.Module: ";

bool IsWrapper(std::string_view module) {
  return module.starts_with("FullyShardedDataParallel") || module.starts_with("DistributedDataParallel") ||
         module.starts_with("OptimizedModule") || module.starts_with("CheckpointWrapper");
}

/// "FSDP::pre_forward (layers.2)" -> "layers.2".
std::string_view AnnotatedLayer(std::string_view text) {
  if (!text.starts_with("FSDP::")) return {};
  const size_t open = text.find('(');
  const size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close <= open) return {};
  return text.substr(open + 1, close - open - 1);
}

/// First module frame inside a span, in time order.
std::string_view FirstModuleInside(const trace::Store& store, uint32_t span) {
  const auto& track = store.track_of(span);
  const trace::Nanos end = store.spans.end(span);
  for (uint32_t row = span + 1; row < track.first_span + track.span_count && store.spans.begin[row] < end; ++row) {
    if (store.kind(row) == SpanKind::kPython && store.name(row).starts_with(kModule)) {
      return store.name(row).substr(kModule.size());
    }
  }
  return {};
}

}  // namespace

std::string Ms(trace::Nanos ns) {
  const double ms = static_cast<double>(ns) / 1e6;
  return ms < 10 ? fmt::format("{:.2f} ms", ms) : fmt::format("{:.0f} ms", ms);
}

std::string ProcessName(const trace::Store& store, trace::ProcessRow row) {
  const trace::Process& process = store.processes[row.value()];
  if (!process.name.empty()) return process.name;
  if (process.engine == "llama.cpp") return "llama-server";
  if (process.rank.has_value()) return "rank" + std::to_string(*process.rank);
  return "process " + process.pid;
}

bool SchedulerIsElsewhere(const trace::Store& store, trace::ProcessRow row) {
  return store.processes[row.value()].engine == "vllm";
}

std::string SchedulerName(const trace::Store& store, trace::ProcessRow row) {
  return SchedulerIsElsewhere(store, row) ? "EngineCore" : ProcessName(store, row);
}

std::string ModuleInProgress(const trace::Store& store, trace::TrackRow track_row, trace::Nanos at) {
  constexpr uint32_t kMostLooked = 1u << 16;  // back: a layer has some hundreds of spans
  const trace::Track& track = store.tracks[track_row.value()];
  const auto begins = store.spans.begin.begin();
  const auto first = begins + track.first_span;
  const auto after = std::upper_bound(first, first + track.span_count, at);
  for (auto it = after; it != first && after - it < kMostLooked;) {
    --it;
    const std::string_view name = store.name(static_cast<uint32_t>(it - begins));
    if (!name.starts_with("FSDP::p")) continue;
    const size_t open = name.find(" (");
    const bool enters = name.starts_with("FSDP::pre_forward") || name.starts_with("FSDP::pre_backward");
    const bool leaves = name.starts_with("FSDP::post_forward") || name.starts_with("FSDP::post_backward");
    if (leaves || (enters && (open == std::string_view::npos || !name.ends_with(")")))) return {};
    if (enters) return std::string(name.substr(open + 2, name.size() - open - 3));
  }
  return {};
}

std::string ModuleAt(const trace::Store& store, uint32_t span) {
  if (span == kNoSpan) return {};
  std::vector<std::string> path;
  std::string layer;
  bool wrapper_is_innermost = false;
  uint32_t wrapper = kNoSpan;
  for (trace::SpanRow at(span); at.valid(); at = store.spans.parent[at.value()]) {
    const std::string_view name = store.name(at.value());
    if (name.starts_with(kModule)) {
      const std::string_view module = name.substr(kModule.size());
      if (path.empty() && IsWrapper(module)) {
        wrapper_is_innermost = true;
        if (wrapper == kNoSpan) wrapper = at.value();
      }
      if (!IsWrapper(module)) path.emplace_back(module);
    } else if (layer.empty()) {
      layer = AnnotatedLayer(name);
    }
  }
  std::reverse(path.begin(), path.end());
  if (wrapper_is_innermost && wrapper != kNoSpan) {
    if (const std::string_view inner = FirstModuleInside(store, wrapper); !inner.empty()) path.emplace_back(inner);
  }
  std::string out;
  for (const auto& part : path) {
    if (!out.empty()) out += "/";
    out += part;
  }
  if (out.empty()) out = layer;
  if (out.empty()) out = ModuleInProgress(store, store.spans.track[span], store.spans.begin[span]);
  if (out.empty()) {
    if (const auto* args = store.op_args.Find(span); args != nullptr && args->label.valid())
      out = store.text(args->label);
  }
  return out;
}

const trace::GraphOrigin* SureOrigin(const trace::Trees& trees, uint32_t span) {
  if (span == kNoSpan) return nullptr;
  const trace::GraphOrigin* origin = trees.OriginOf(trace::SpanRow(span));
  return origin != nullptr && origin->confidence >= trace::kSureOrigin ? origin : nullptr;
}

uint32_t FrameOver(const trace::Store& store, trace::TrackRow track_row, trace::Nanos begin, trace::Nanos end) {
  const auto& track = store.tracks[track_row.value()];
  uint32_t best = kNoSpan;
  trace::Nanos shortest = 0;
  const trace::Nanos need = (end - begin) / 4 * 3;
  for (uint32_t row = track.first_span; row < track.first_span + track.span_count; ++row) {
    if (store.spans.begin[row] >= end) break;
    const SpanKind kind = store.kind(row);
    if (kind != SpanKind::kPython && kind != SpanKind::kAnnotation) continue;
    const trace::Nanos covered = std::min(end, store.spans.end(row)) - std::max(begin, store.spans.begin[row]);
    if (covered < need) continue;
    if (best == kNoSpan || store.spans.duration[row] <= shortest) {
      best = row;
      shortest = store.spans.duration[row];
    }
  }
  return best;
}

HostTime ReadHostTime(const trace::Store& store, trace::TrackRow track_row, trace::Nanos begin, trace::Nanos end) {
  const auto& track = store.tracks[track_row.value()];
  const trace::Nanos length = end - begin;
  std::vector<trace::Nanos> ends;
  bool any_frame = false;
  bool builtin = false;
  bool in_operator = false;
  for (uint32_t row = track.first_span; row < track.first_span + track.span_count; ++row) {
    const trace::Nanos span_begin = store.spans.begin[row];
    const trace::Nanos span_end = store.spans.end(row);
    if (span_begin >= end) break;
    const bool fills = std::min(end, span_end) - std::max(begin, span_begin) >= length / 4 * 3;
    // Spans come in order of their begins: the operator is inside of the built-in.
    in_operator |= builtin && fills && store.kind(row) == SpanKind::kOp;
    if (store.kind(row) != SpanKind::kPython || span_end <= begin) continue;
    any_frame = true;
    if (span_begin > begin && span_end < end) ends.push_back(span_end);
    // One call of a built-in that fills most of the stretch is what it was spent on.
    if (!fills || span_end - span_begin > 2 * length) continue;
    const std::string_view name = store.name(row);
    if (name.find("built-in") == std::string_view::npos) continue;
    if (name.find(" collect>") != std::string_view::npos || name.find("gc.collect") != std::string_view::npos)
      return HostTime::kCollecting;
    builtin = true;
  }
  if (!any_frame) return HostTime::kUnknown;
  // A built-in that computes leads to an operator: then what filled the stretch is that, or a stop inside of it.
  if (builtin && !in_operator) return HostTime::kBlocked;
  std::sort(ends.begin(), ends.end());
  trace::Nanos quiet = 0;
  trace::Nanos at = begin;
  for (const trace::Nanos e : ends) {
    quiet = std::max(quiet, e - at);
    at = e;
  }
  quiet = std::max(quiet, end - at);
  return 2 * quiet <= length ? HostTime::kWorking : HostTime::kStopped;
}

}  // namespace teller::locate
