#pragma once

#include <array>
#include <string>
#include <string_view>

#include "ingest/common/block.hpp"
#include "ingest/common/worker.hpp"
#include "ingest/kineto/event_fields.hpp"

namespace teller::ingest {

/// Gives raw events their meaning: each one is stored in the draft, or counted as dropped with a diagnostic.
/// Threads: confined.
class EventSink {
 public:
  EventSink(Worker& worker, Draft& draft) : worker_(worker), draft_(draft) {}

  /// Starts a block of `file`.
  void Begin(trace::FileRow file);
  /// Whether the args of an event with these fields (those read so far) may be kept as attributes.
  bool WantsScalars(const EventFields& fields);

  void Event(const EventFields& fields, const EventArgs& args, uint64_t at);
  void EmptyElement(uint64_t at);
  void NotAnEvent(uint64_t at);
  void Bad(const base::DiagnosticKind& kind, uint64_t at, std::string_view text);
  void Repaired(const base::DiagnosticKind& kind, uint64_t at);

 private:
  struct RecentLane {
    std::string pid, tid;  // raw
    bool device = false;
    uint32_t lane = 0;
    uint32_t epoch = 0;
  };

  void Span(const EventFields& fields, const EventArgs& args, uint64_t at);
  void Mark(char phase, const EventFields& fields, bool async, uint64_t at);
  void Instant(const EventFields& fields, bool async, uint64_t at);
  void Counter(const EventFields& fields, const EventArgs& args, uint64_t at);
  void Flow(char phase, const EventFields& fields, uint64_t at);
  void Metadata(const EventFields& fields, const EventArgs& args, uint64_t at);

  bool Time(const EventFields& fields, uint64_t at, trace::Nanos& out);
  trace::Nanos Duration(const EventFields& fields, uint64_t at);
  uint32_t Category(RawValue raw, uint64_t at);
  uint32_t Lane(const EventFields& fields, bool device, uint64_t at);
  uint32_t AsyncLane(const EventFields& fields, uint64_t at);
  uint32_t Name(RawValue raw, uint64_t at);
  /// Text of a scalar: strings without quotes and escapes, numbers as written. The view lives until the next call.
  std::string_view Text(RawValue raw, uint64_t at);
  trace::StringId Kept(RawValue raw, uint64_t at);

  void KeepArgs(trace::SpanKind kind, const EventArgs& args, uint64_t at, DraftSpan& span);
  void KeepOp(const EventArgs& args, uint64_t at, DraftSpan& span);
  void KeepGpu(const EventArgs& args, uint64_t at, DraftSpan& span);
  void KeepKernelName(const EventArgs& args, uint64_t at, DraftSpan& span);
  int64_t Amount(RawValue raw, uint64_t at);
  void KeepPython(const EventArgs& args, DraftSpan& span);
  void KeepComm(const EventArgs& args, uint64_t at, DraftSpan& span);
  void KeepAttributes(const EventArgs& args, uint64_t at, DraftSpan& span);

  void Report(const base::DiagnosticKind& kind, uint64_t at, std::string_view field, RawValue value);
  void Drop(const base::DiagnosticKind& kind, uint64_t at, std::string_view field, RawValue value);

  static constexpr size_t kRecentLanes = 4;  // main thread, streams and a helper thread alternate

  Worker& worker_;
  Draft& draft_;
  trace::FileRow file_;
  uint32_t epoch_ = 0;
  std::array<RecentLane, kRecentLanes> recent_;
  size_t next_recent_ = 0;
  std::string recent_category_;  // raw
  uint32_t recent_category_id_ = 0;
  uint32_t recent_category_epoch_ = 0;
  std::string text_;
};

}  // namespace teller::ingest
