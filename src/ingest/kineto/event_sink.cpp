#include "ingest/kineto/event_sink.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "ingest/common/decimal.hpp"
#include "ingest/common/text.hpp"
#include "ingest/kineto/category.hpp"
#include "ingest/kineto/diagnostics.hpp"

namespace teller::ingest {

namespace {

using trace::SpanKind;

constexpr size_t kMaxKeptArgument = 16u << 10;    // the dims of a fused optimizer call with hundreds of tensors
constexpr uint32_t kMaxAttributes = 64;           // per span
constexpr int64_t kMaxAmount = int64_t{1} << 48;  // 256 TiB: sums over many spans stay inside int64

bool IsNull(RawValue raw) {
  return raw.empty() || raw.front() == 'n';
}

/// Unsigned integer, also quoted; larger ones keep their low 64 bits' worth of digits only if they fit.
std::optional<uint64_t> Unsigned(RawValue raw) {
  std::string_view text = Trim(raw);
  if (text.size() >= 2 && text.front() == '"') text = text.substr(1, text.size() - 2);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<int64_t> Signed(RawValue raw) {
  std::string_view text = Trim(raw);
  if (text.size() >= 2 && text.front() == '"') text = text.substr(1, text.size() - 2);
  return ParseInteger(text);
}

/// Ids are compared for equality only: the low 32 bits stand for all.
uint32_t Id32(RawValue raw) {
  return raw.empty() ? 0 : static_cast<uint32_t>(Unsigned(raw).value_or(0));
}

int32_t Small(RawValue raw) {
  const auto value = raw.empty() ? std::nullopt : Signed(raw);
  return value && *value >= INT32_MIN && *value <= INT32_MAX ? static_cast<int32_t>(*value) : -1;
}

bool IsTrue(RawValue raw) {
  return !raw.empty() && raw.front() == 't';
}

}  // namespace

void EventSink::Begin(trace::FileRow file) {
  file_ = file;
  ++epoch_;
}

void EventSink::Report(const base::DiagnosticKind& kind, uint64_t at, std::string_view field, RawValue value) {
  std::string place = "byte " + std::to_string(at);
  if (!field.empty()) {
    place += ": \"" + std::string(field) + "\" is ";
    place += value.empty() ? "missing" : Snippet(Trim(value));
  }
  draft_.diagnostics.Report(kind, file_, std::move(place));
}

void EventSink::Drop(const base::DiagnosticKind& kind, uint64_t at, std::string_view field, RawValue value) {
  Report(kind, at, field, value);
  ++draft_.tally.dropped;
}

void EventSink::EmptyElement(uint64_t at) {
  ++draft_.tally.read;
  Drop(kineto::kEmptyElement, at, {}, {});
}

void EventSink::NotAnEvent(uint64_t at) {
  ++draft_.tally.read;
  Drop(kineto::kNotObject, at, {}, {});
}

void EventSink::Bad(const base::DiagnosticKind& kind, uint64_t at, std::string_view text) {
  ++draft_.tally.read;
  draft_.diagnostics.Report(kind, file_, "byte " + std::to_string(at) + ": " + Snippet(text));
  ++draft_.tally.dropped;
}

void EventSink::Repaired(const base::DiagnosticKind& kind, uint64_t at) {
  Report(kind, at, {}, {});
}

std::string_view EventSink::Text(RawValue raw, uint64_t at) {
  std::string_view text = Trim(raw);
  if (IsNull(text)) return {};
  if (text.front() == '{' || text.front() == '[') {
    Report(kineto::kBadField, at, "a text", text);
    return {};
  }
  if (text.front() != '"') return text;
  text = text.substr(1, text.size() < 2 ? 0 : text.size() - 2);
  if (text.find('\\') == std::string_view::npos) return text;
  text_.clear();
  Unescape(text, text_);
  return text_;
}

uint32_t EventSink::Category(RawValue raw, uint64_t at) {
  if (recent_category_epoch_ == epoch_ && raw == recent_category_) return recent_category_id_;
  const std::string_view text = Text(raw, at);
  const uint32_t id = worker_.categories.Intern(text);
  while (worker_.kinds.size() <= id) {
    worker_.kinds.push_back(KindOfCategory(worker_.categories.Text(static_cast<uint32_t>(worker_.kinds.size()))));
  }
  recent_category_.assign(raw);
  recent_category_id_ = id;
  recent_category_epoch_ = epoch_;
  return id;
}

uint32_t EventSink::Lane(const EventFields& fields, bool device, uint64_t at) {
  for (const auto& recent : recent_) {
    if (recent.epoch == epoch_ && recent.device == device && recent.tid == fields.tid && recent.pid == fields.pid) {
      return recent.lane;
    }
  }
  const std::string pid(Text(fields.pid, at));
  const uint32_t lane = worker_.lanes.Intern(LaneKey::Pack(pid, Text(fields.tid, at), device));
  recent_[next_recent_] = {std::string(fields.pid), std::string(fields.tid), device, lane, epoch_};
  next_recent_ = (next_recent_ + 1) % kRecentLanes;
  return lane;
}

/// Asynchronous events do not nest with their thread's: each id has a lane of its own.
uint32_t EventSink::AsyncLane(const EventFields& fields, uint64_t at) {
  const std::string pid(Text(fields.pid, at));
  return worker_.lanes.Intern(LaneKey::Pack(pid, "async " + std::string(Text(fields.id, at)), false));
}

uint32_t EventSink::Name(RawValue raw, uint64_t at) {
  if (!IsText(raw)) Report(kineto::kBadField, at, "name", raw);
  return worker_.strings.Intern(Text(raw, at));
}

trace::StringId EventSink::Kept(RawValue raw, uint64_t at) {
  if (IsNull(raw)) return {};
  const std::string_view text = raw.front() == '[' || raw.front() == '{' ? Trim(raw) : Text(raw, at);
  if (text.size() > kMaxKeptArgument) {
    Report(kineto::kLongArgument, at, {}, {});
    return {};
  }
  return trace::StringId(worker_.strings.Intern(text));
}

bool EventSink::Time(const EventFields& fields, uint64_t at, trace::Nanos& out) {
  switch (ParseMicros(Trim(fields.ts), out)) {
    case NumberFault::kNone:
      if (out >= kMinNanos) return true;
      Drop(kineto::kHugeTime, at, "ts", fields.ts);
      return false;
    case NumberFault::kNotANumber: Drop(kineto::kBadTime, at, "ts", fields.ts); return false;
    case NumberFault::kTooLarge: Drop(kineto::kHugeTime, at, "ts", fields.ts); return false;
  }
  return false;
}

trace::Nanos EventSink::Duration(const EventFields& fields, uint64_t at) {
  trace::Nanos duration = 0;
  if (ParseMicros(Trim(fields.dur), duration) != NumberFault::kNone) {
    Report(kineto::kBadDuration, at, "dur", fields.dur);
    return 0;
  }
  if (duration < 0) {
    Report(kineto::kNegativeDuration, at, "dur", fields.dur);
    return 0;
  }
  if (duration > kMaxDuration) {
    Report(kineto::kBadDuration, at, "dur", fields.dur);
    return 0;
  }
  return duration;
}

bool EventSink::WantsScalars(const EventFields& fields) {
  if (IsText(fields.ph) && fields.ph.size() > 2) {
    if (fields.ph[1] == 'C') return true;
    if (fields.ph[1] != 'X') return false;
  }
  if (fields.cat.empty()) return true;
  const SpanKind kind = worker_.kinds[Category(fields.cat, 0)];
  return kind == SpanKind::kAnnotation || kind == SpanKind::kOther || kind == SpanKind::kOverhead ||
         kind == SpanKind::kProfiler || kind == SpanKind::kSync;
}

void EventSink::Event(const EventFields& fields, const EventArgs& args, uint64_t at) {
  ++draft_.tally.read;
  const std::string_view phase = Trim(fields.ph);
  if (phase.size() != 3 || phase.front() != '"') return Drop(kineto::kNoPhase, at, "ph", fields.ph);
  switch (phase[1]) {
    case 'X': return Span(fields, args, at);
    case 'B':
    case 'E': return Mark(phase[1], fields, false, at);
    case 'b': return Mark('B', fields, true, at);
    case 'e': return Mark('E', fields, true, at);
    case 'n': return Instant(fields, true, at);
    case 'i':
    case 'I':
    case 'R': return Instant(fields, false, at);
    case 'C': return Counter(fields, args, at);
    case 's':
    case 't':
    case 'f': return Flow(phase[1], fields, at);
    case 'M': return Metadata(fields, args, at);
    default: return Drop(kineto::kUnusedPhase, at, "ph", fields.ph);
  }
}

void EventSink::Span(const EventFields& fields, const EventArgs& args, uint64_t at) {
  DraftSpan span;
  if (!Time(fields, at, span.begin)) return;
  span.duration = Duration(fields, at);
  span.category = Category(fields.cat, at);
  const SpanKind kind = worker_.kinds[span.category];
  span.lane = Lane(fields, IsDeviceSide(kind), at);
  span.name = Name(fields.name, at);
  if (fields.pid.empty() || fields.tid.empty()) {
    Report(kineto::kBadField, at, fields.pid.empty() ? "pid" : "tid", {});
  }
  if (args.present) KeepArgs(kind, args, at, span);
  if (!fields.bind_id.empty() && (IsTrue(fields.flow_in) || IsTrue(fields.flow_out))) {
    const bool in = IsTrue(fields.flow_in);
    const bool out = IsTrue(fields.flow_out);
    draft_.flows.push_back({.at = span.begin,
                            .id = ParseId(Text(fields.bind_id, at)),
                            .name = span.name,
                            .lane = span.lane,
                            .phase = in && out ? 't'
                                     : in      ? 'f'
                                               : 's'});
  }
  draft_.spans.push_back(span);
  ++draft_.tally.spans;
}

void EventSink::Mark(char phase, const EventFields& fields, bool async, uint64_t at) {
  DraftSpan mark;
  if (!Time(fields, at, mark.begin)) return;
  mark.phase = phase;
  mark.category = Category(fields.cat, at);
  mark.lane = async ? AsyncLane(fields, at) : Lane(fields, IsDeviceSide(worker_.kinds[mark.category]), at);
  mark.name = worker_.strings.Intern(Text(fields.name, at));  // an end needs no name
  draft_.marks.push_back(mark);                               // tallied when paired
}

void EventSink::Instant(const EventFields& fields, bool async, uint64_t at) {
  DraftInstant instant;
  if (!Time(fields, at, instant.at)) return;
  instant.lane = async ? AsyncLane(fields, at) : Lane(fields, false, at);
  instant.name = Name(fields.name, at);
  draft_.instants.push_back(instant);
  ++draft_.tally.instants;
}

void EventSink::Counter(const EventFields& fields, const EventArgs& args, uint64_t at) {
  DraftCounter counter;
  if (!Time(fields, at, counter.at)) return;
  const uint32_t lane = Lane(fields, false, at);
  const std::string name(Text(fields.name, at));
  bool any = false;
  for (const auto& arg : args.scalars) {
    const std::string_view text = Trim(arg.value);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), counter.value);
    if (error != std::errc() || end != text.data() + text.size()) continue;
    any = true;
    counter.lane = lane;
    counter.name = worker_.strings.Intern(args.scalars.size() == 1 ? name : name + "/" + std::string(arg.key));
    draft_.counters.push_back(counter);
  }
  if (!any) return Drop(kineto::kBadCounter, at, "name", fields.name);
  ++draft_.tally.counters;
}

void EventSink::Flow(char phase, const EventFields& fields, uint64_t at) {
  DraftFlow flow;
  if (!Time(fields, at, flow.at)) return;
  flow.id = ParseId(Text(fields.id.empty() ? fields.bind_id : fields.id, at));
  flow.lane = Lane(fields, false, at);
  flow.name = worker_.strings.Intern(Text(fields.name, at));
  flow.phase = phase;
  draft_.flows.push_back(flow);
  ++draft_.tally.flows;
}

void EventSink::Metadata(const EventFields& fields, const EventArgs& args, uint64_t at) {
  const std::string_view name = Text(fields.name, at);
  const bool order = name == "process_sort_index" || name == "thread_sort_index";
  Naming naming;
  RawValue value;
  if (name == "process_name" || name == "thread_name") {
    naming.what = name == "process_name" ? Naming::What::kProcess : Naming::What::kThread;
    value = args.name;
  } else if (name == "process_labels") {
    naming.what = Naming::What::kProcessLabels;
    value = args.labels;
  }
  if (!order && value.empty()) return Drop(kineto::kBadMetadata, at, "name", fields.name);
  ++draft_.tally.metadata;
  if (order) return;
  naming.pid = Text(fields.pid, at);
  naming.tid = Text(fields.tid, at);
  naming.text = Text(value, at);
  draft_.namings.push_back(std::move(naming));
}

void EventSink::KeepArgs(SpanKind kind, const EventArgs& args, uint64_t at, DraftSpan& span) {
  switch (kind) {
    case SpanKind::kOp:
    case SpanKind::kAnnotation: KeepOp(args, at, span); break;
    case SpanKind::kPython: KeepPython(args, span); break;
    case SpanKind::kRuntime:
    case SpanKind::kDriver:
      KeepGpu(args, at, span);
      KeepKernelName(args, at, span);
      break;
    case SpanKind::kKernel:
    case SpanKind::kCopy:
    case SpanKind::kMemset:
    case SpanKind::kGpuAnnotation:
    case SpanKind::kSync: KeepGpu(args, at, span); break;
    case SpanKind::kService:
    case SpanKind::kOther:
    case SpanKind::kOverhead:
    case SpanKind::kProfiler: break;
  }
  if (!args.collective.empty() || !args.group.empty() || !args.group_size.empty()) KeepComm(args, at, span);
  if (kind == SpanKind::kAnnotation || kind == SpanKind::kOther || kind == SpanKind::kOverhead ||
      kind == SpanKind::kProfiler || kind == SpanKind::kSync) {
    KeepAttributes(args, at, span);
  }
}

/// Bytes or elements; -1 when not told or not believable.
int64_t EventSink::Amount(RawValue raw, uint64_t at) {
  if (raw.empty()) return -1;
  const auto value = Signed(raw);
  if (value && *value <= kMaxAmount) return std::max<int64_t>(*value, -1);
  Report(kineto::kBadAmount, at, "an amount", raw);
  return -1;
}

void EventSink::KeepOp(const EventArgs& args, uint64_t at, DraftSpan& span) {
  trace::OpArgs op;
  op.input_dims = Kept(args.input_dims, at);
  op.input_types = Kept(args.input_types, at);
  op.label = Kept(args.label, at);
  op.external_id = Id32(args.external_id);
  if (op.external_id == 0 && !op.input_dims.valid() && !op.input_types.valid() && !op.label.valid()) return;
  span.op = static_cast<uint32_t>(draft_.op.size());
  draft_.op.push_back(op);
}

void EventSink::KeepGpu(const EventArgs& args, uint64_t at, DraftSpan& span) {
  trace::GpuArgs gpu;
  gpu.graph_node = args.graph_node.empty() ? 0 : Unsigned(args.graph_node).value_or(0);
  gpu.correlation = Id32(args.correlation);
  gpu.external_id = Id32(args.external_id);
  gpu.device = Small(args.device);
  gpu.stream = Small(args.stream);
  gpu.bytes = Amount(args.bytes, at);
  span.gpu = static_cast<uint32_t>(draft_.gpu.size());
  draft_.gpu.push_back(gpu);
}

/// During the capture of a graph nothing runs: the launch is all that names its kernel.
void EventSink::KeepKernelName(const EventArgs& args, uint64_t at, DraftSpan& span) {
  const trace::StringId name = Kept(args.kernel, at);
  if (!name.valid()) return;
  span.attributes = static_cast<uint32_t>(draft_.attributes.size());
  span.attribute_count = 1;
  draft_.attributes.push_back({trace::StringId(worker_.strings.Intern(trace::kKernelAttribute)), name});
}

void EventSink::KeepPython(const EventArgs& args, DraftSpan& span) {
  span.py = static_cast<uint32_t>(draft_.py.size());
  draft_.py.push_back({Id32(args.python_id), Id32(args.python_parent), Id32(args.python_module)});
}

void EventSink::KeepComm(const EventArgs& args, uint64_t at, DraftSpan& span) {
  trace::CommArgs comm;
  comm.collective = Kept(args.collective, at);
  comm.group = Kept(args.group, at);
  comm.group_ranks = Kept(args.group_ranks, at);
  comm.dtype = Kept(args.dtype, at);
  comm.in_elements = Amount(args.in_elements, at);
  comm.out_elements = Amount(args.out_elements, at);
  comm.sequence = Amount(args.sequence, at);
  comm.group_size = Small(args.group_size);
  comm.peer = Small(args.peer);
  span.comm = static_cast<uint32_t>(draft_.comm.size());
  draft_.comm.push_back(comm);
}

void EventSink::KeepAttributes(const EventArgs& args, uint64_t at, DraftSpan& span) {
  span.attributes = static_cast<uint32_t>(draft_.attributes.size());
  for (const auto& arg : args.scalars) {
    if (span.attribute_count == kMaxAttributes) {
      Report(kineto::kLongArgument, at, {}, {});
      break;
    }
    const trace::StringId value = Kept(arg.value, at);
    if (!value.valid()) continue;  // null, or too long and reported
    draft_.attributes.push_back({trace::StringId(worker_.strings.Intern(arg.key)), value});
    ++span.attribute_count;
  }
}

}  // namespace teller::ingest
