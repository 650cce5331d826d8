#include "ingest/nsys/row_drafter.hpp"

#include <simdjson.h>

#include <algorithm>

#include "ingest/common/decimal.hpp"
#include "ingest/common/text.hpp"
#include "ingest/nsys/diagnostics.hpp"

namespace teller::ingest::nsys {

namespace {

using trace::Nanos;
using trace::SpanKind;

constexpr int64_t kMaxBytes = int64_t{1} << 48;  // 256 TiB: sums over many spans stay inside int64
constexpr size_t kMaxName = 16u << 10;           // the longest kernel names have 4 kB
constexpr int64_t kNoStream = 0xFFFFFFFF;
constexpr std::string_view kRangeLane = "nvtx ranges";  // ranges that end on another thread than they begin on
constexpr std::string_view kNoThreadLane = "?";

// eventClass of CUPTI_ACTIVITY_KIND_RUNTIME (ENUM_NSYS_EVENT_CLASS).
constexpr int64_t kDriverClass = 1;
constexpr int64_t kBacktraceClass = 67;

// NVTX_EVENTS.eventType (ENUM_NSYS_EVENT_TYPE); the second of a pair is of ranges imported from text ("Nvtxt").
constexpr int64_t kCategory = 33, kCategoryText = 64;
constexpr int64_t kMark = 34, kMarkText = 65;
constexpr int64_t kThread = 39, kThreadText = 72;
constexpr int64_t kPushPop = 59, kPushPopText = 70;
constexpr int64_t kStartEnd = 60, kStartEndText = 71;
constexpr int64_t kProcessText = 73, kFileText = 74;
constexpr int64_t kDomainCreate = 75, kDomainDestroy = 76;
constexpr int64_t kNameDevice = 97, kNameContext = 98, kNameStream = 99;

/// copyKind (CUpti_ActivityMemcpyKind; beyond 10 nsys' own), in the words that Kineto uses.
constexpr std::array<std::string_view, 14> kCopyKinds = {"Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD",
                                                         "DtoA",    "DtoD", "HtoH", "PtoP", "HtoD", "DtoH", "DtoD"};
/// srcKind, dstKind, memKind (ENUM_CUDA_MEM_KIND).
constexpr std::array<std::string_view, 8> kMemoryKinds = {"Pageable", "Pinned",        "Device",         "Array",
                                                          "Managed",  "Device Static", "Managed Static", "Unknown"};
/// syncType (CUpti_ActivitySynchronizationType), in the words that Kineto uses.
constexpr std::array<std::string_view, 5> kSyncTypes = {"Unknown Sync", "Event Sync", "Stream Wait Event",
                                                        "Stream Sync", "Context Sync"};

template <class Texts>
std::string_view At(const Texts& texts, int64_t index) {
  return index >= 0 && index < static_cast<int64_t>(texts.size()) ? texts[static_cast<size_t>(index)] : "Unknown";
}

}  // namespace

size_t RowDrafter::StreamHash::operator()(const StreamKey& key) const {
  constexpr uint64_t kMix = 0x9E3779B97F4A7C15ULL;
  uint64_t hash = static_cast<uint64_t>(key.process) * kMix;
  hash = (hash ^ static_cast<uint64_t>(key.context)) * kMix;
  hash = (hash ^ static_cast<uint64_t>(key.stream)) * kMix;
  return hash ^ hash >> 32;
}

RowDrafter::RowDrafter(Worker& worker, const Names& names, const Session& session, trace::FileRow file)
    : worker_(worker), names_(names), session_(session), file_(file) {
  by_row_.resize(names.size(), 0);
  calls_by_row_.resize(names.size(), 0);
}

void RowDrafter::Begin(const EventTable& table) {
  table_ = &table;
  draft_.Clear();
  worker_.strings.BeginBlock();
  worker_.lanes.BeginBlock();
  worker_.categories.BeginBlock();
}

void RowDrafter::Add(const Row& row, int64_t row_number) {
  row_number_ = row_number;
  ++draft_.tally.read;
  switch (table_->shape) {
    case Shape::kGpu: return AddGpu(row);
    case Shape::kHost:
    case Shape::kRuntime:
    case Shape::kGraphNode: return AddHost(row);
    case Shape::kNvtx: return AddNvtx(row);
    case Shape::kSample: return AddSample(row);
  }
}

void RowDrafter::Report(const base::DiagnosticKind& kind, std::string_view what) {
  std::string place = std::string(table_->name) + " row " + std::to_string(row_number_);
  if (!what.empty()) place += ": " + Snippet(what);
  draft_.diagnostics.Report(kind, file_, std::move(place));
}

void RowDrafter::Drop(const base::DiagnosticKind& kind) {
  ++draft_.tally.dropped;
  Report(kind);
}

bool RowDrafter::ReadBegin(const Row& row, int column, Nanos& begin) {
  begin = row.Integer(column);
  if (row.Told(column, begin) && begin >= kMinNanos && begin <= kMaxNanos - session_.base) return true;
  Drop(kBadTime);
  return false;
}

Nanos RowDrafter::ReadDuration(const Row& row, int column, Nanos begin) {
  const Nanos end = row.Integer(column);
  if (row.Told(column, end) && end >= begin && end <= kMaxNanos - session_.base && end - begin <= kMaxDuration) {
    return end - begin;
  }
  Report(kBadEnd);
  return 0;
}

/// A number that has 32 bits where it is believable; 0 where it is not.
uint32_t RowDrafter::SmallId(const Row& row, int column) {
  const int64_t value = row.Integer(column);
  if (value >= 0 && value <= UINT32_MAX) return static_cast<uint32_t>(value);
  Report(kBadAmount);
  return 0;
}

uint32_t RowDrafter::CategoryOf(std::string_view text, SpanKind kind) {
  const uint32_t id = worker_.categories.Intern(text);
  if (id >= worker_.kinds.size()) worker_.kinds.resize(id + 1, SpanKind::kOther);
  worker_.kinds[id] = kind;
  return id;
}

uint32_t RowDrafter::InternText(std::string_view text) {
  if (text.size() > kMaxName) {
    Report(kLongName);
    text = text.substr(0, kMaxName);
    while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80) text.remove_suffix(1);
    if (!text.empty() && static_cast<unsigned char>(text.back()) >= 0x80) text.remove_suffix(1);
  }
  if (simdjson::validate_utf8(text.data(), text.size())) return worker_.strings.Intern(text);
  Report(kInvalidUtf8);
  return worker_.strings.Intern(ReplaceInvalid(text));
}

uint32_t RowDrafter::NumberedName(std::string_view what, int64_t number) {
  scratch_.assign(what).append(std::to_string(number));
  return worker_.strings.Intern(scratch_);
}

uint32_t RowDrafter::NameById(const Row& row, int column, bool api_call) {
  const int64_t id = row.Integer(column);
  if (!row.Told(column, id)) return worker_.strings.Intern("(no name)");
  const auto found = names_.Find(id);
  if (!found) {
    Report(kNoString);
    return NumberedName("string ", id);
  }
  uint32_t& known = (api_call ? calls_by_row_ : by_row_)[*found];
  if (known == 0) {
    const std::string_view text = names_.Text(*found);
    known = InternText(api_call ? WithoutVersion(text) : text) + 1;
  }
  worker_.strings.Use(known - 1);
  return known - 1;
}

uint32_t RowDrafter::HostLane(const Row& row, int column) {
  const int64_t told = row.Integer(column);
  const bool known = row.Told(column, told);
  const int64_t thread = known ? told : -1;
  if (!known) Report(kNoThread);
  if (last_host_.first != thread || !known) {
    const auto [it, is_new] = host_lanes_.try_emplace(thread, 0);
    if (is_new) {
      const int64_t process = known ? ProcessKey(thread) : session_.only_process.value_or(0);
      const std::string tid = known ? std::to_string(ThreadId(thread)) : std::string(kNoThreadLane);
      it->second = worker_.lanes.Intern(LaneKey::Pack(std::to_string(process), tid, false));
    }
    last_host_ = {thread, it->second};
  }
  worker_.lanes.Use(last_host_.second);
  return last_host_.second;
}

uint32_t RowDrafter::StreamLane(const Row& row) {
  StreamKey key;
  const int64_t pid = row.Integer(gpu::kPid);
  if (row.Told(gpu::kPid, pid)) {
    key.process = ProcessKey(pid);
  } else {
    if (!session_.only_process) Report(kNoThread);
    key.process = session_.only_process.value_or(0);
  }
  key.context = row.Integer(gpu::kContext);
  key.stream = row.Integer(gpu::kStream);
  if (!(last_stream_.first == key)) {
    const auto [it, is_new] = stream_lanes_.try_emplace(key, 0);
    if (is_new) {
      const std::string tid = std::to_string(key.context) + "/" + std::to_string(key.stream);
      it->second = worker_.lanes.Intern(LaneKey::Pack(std::to_string(key.process), tid, true));
    }
    last_stream_ = {key, it->second};
  }
  worker_.lanes.Use(last_stream_.second);
  return last_stream_.second;
}

uint32_t RowDrafter::CopyName(const Row& row) {
  const int64_t kind = row.Integer(gpu::kWhat);
  const int64_t source = row.IsNull(gpu::kSource) ? 7 : row.Integer(gpu::kSource);
  const int64_t target = row.IsNull(gpu::kTarget) ? 7 : row.Integer(gpu::kTarget);
  const auto below = [](int64_t value, int64_t limit) { return value >= 0 && value < limit; };
  const bool usual = below(kind, 16) && below(source, 8) && below(target, 8);
  uint32_t& known = copies_[usual ? static_cast<size_t>((kind * 8 + source) * 8 + target) : 0];
  if (!usual || known == 0) {
    scratch_ = "Memcpy ";
    scratch_.append(At(kCopyKinds, kind)).append(" (").append(At(kMemoryKinds, source)).append(" -> ");
    scratch_.append(At(kMemoryKinds, target)).append(")");
    const uint32_t id = worker_.strings.Intern(scratch_);
    if (!usual) return id;
    known = id + 1;
  }
  worker_.strings.Use(known - 1);
  return known - 1;
}

uint32_t RowDrafter::GpuName(const Row& row) {
  switch (table_->kind) {
    case SpanKind::kCopy: return CopyName(row);
    case SpanKind::kMemset: {
      const int64_t kind = row.IsNull(gpu::kWhat) ? 7 : row.Integer(gpu::kWhat);
      scratch_.assign("Memset (").append(At(kMemoryKinds, kind)).append(")");
      return worker_.strings.Intern(scratch_);
    }
    case SpanKind::kSync: return worker_.strings.Intern(At(kSyncTypes, row.Integer(gpu::kWhat)));
    default: break;
  }
  if (table_->category == "cuda_graph") return NumberedName("CUDA graph ", row.Integer(gpu::kWhat));
  return NameById(row, gpu::kWhat, false);
}

void RowDrafter::AddGpu(const Row& row) {
  DraftSpan span;
  if (!ReadBegin(row, gpu::kStart, span.begin)) return;
  // CUPTI: both times are 0 when they could not be collected.
  if (span.begin == 0 && row.Integer(gpu::kEnd) == 0) return Drop(kNoTime);
  span.duration = ReadDuration(row, gpu::kEnd, span.begin);
  span.name = GpuName(row);
  span.lane = StreamLane(row);
  span.category = CategoryOf(table_->category, table_->kind);
  trace::GpuArgs args;
  args.graph_node = static_cast<uint64_t>(row.Integer(gpu::kNode));
  args.correlation = SmallId(row, gpu::kCorrelation);
  const int64_t device = row.Integer(gpu::kDevice);
  const int64_t stream = row.Integer(gpu::kStream);
  if (device >= 0 && device <= INT32_MAX) args.device = static_cast<int32_t>(device);
  if (stream >= 0 && stream <= INT32_MAX) args.stream = static_cast<int32_t>(stream);
  if (stream != kNoStream && args.stream < 0) Report(kBadAmount);
  if (table_->kind == SpanKind::kSync) args.device = -1;  // always 0 in the export, whatever the context's device
  if (const int64_t bytes = row.Integer(gpu::kBytes); row.Told(gpu::kBytes, bytes)) {
    const bool believable = bytes >= 0 && bytes <= kMaxBytes;
    if (believable) args.bytes = bytes;
    if (!believable) Report(kBadAmount);
  }
  span.gpu = static_cast<uint32_t>(draft_.gpu.size());
  draft_.gpu.push_back(args);
  draft_.spans.push_back(span);
  ++draft_.tally.spans;
}

void RowDrafter::AddHost(const Row& row) {
  const bool runtime = table_->shape == Shape::kRuntime;
  const int64_t event_class = runtime ? row.Integer(host::kClass) : 0;
  if (event_class == kBacktraceClass) {
    ++draft_.tally.repaired_away;
    return Report(kBacktrace);
  }
  DraftSpan span;
  if (!ReadBegin(row, host::kStart, span.begin)) return;
  span.duration = ReadDuration(row, host::kEnd, span.begin);
  span.name = NameById(row, host::kName, runtime);
  span.lane = HostLane(row, host::kTid);
  const bool driver = event_class == kDriverClass;
  span.category = driver ? CategoryOf("cuda_driver", SpanKind::kDriver) : CategoryOf(table_->category, table_->kind);
  if (table_->shape != Shape::kHost) {
    trace::GpuArgs args;
    if (runtime) args.correlation = SmallId(row, host::kCorrelation);
    if (!runtime) args.graph_node = static_cast<uint64_t>(row.Integer(host::kNode));
    span.gpu = static_cast<uint32_t>(draft_.gpu.size());
    draft_.gpu.push_back(args);
  }
  if (table_->shape == Shape::kGraphNode && !row.IsNull(host::kOriginal)) {
    span.attributes = static_cast<uint32_t>(draft_.attributes.size());
    span.attribute_count = 1;
    const auto key = trace::StringId(worker_.strings.Intern("original_graph_node"));
    draft_.attributes.push_back({key, trace::StringId(NumberedName("", row.Integer(host::kOriginal)))});
  }
  draft_.spans.push_back(span);
  ++draft_.tally.spans;
}

std::string_view RowDrafter::NvtxText(const Row& row) {
  if (!row.IsNull(nvtx::kText)) return row.Text(nvtx::kText);
  const auto found = row.IsNull(nvtx::kTextId) ? std::nullopt : names_.Find(row.Integer(nvtx::kTextId));
  return found ? names_.Text(*found) : std::string_view();
}

void RowDrafter::AddNvtx(const Row& row) {
  const int64_t type = row.Integer(nvtx::kType);
  switch (type) {
    case kPushPop:
    case kPushPopText: return AddRange(row, false);
    case kStartEnd:
    case kStartEndText:
      return AddRange(row, !row.IsNull(nvtx::kEndTid) && row.Integer(nvtx::kEndTid) != row.Integer(nvtx::kTid));
    case kMark:
    case kMarkText: {
      DraftInstant instant;
      if (!ReadBegin(row, nvtx::kStart, instant.at)) return;
      instant.name = row.IsNull(nvtx::kText) ? NameById(row, nvtx::kTextId, false) : InternText(row.Text(nvtx::kText));
      instant.lane = HostLane(row, nvtx::kTid);
      draft_.instants.push_back(instant);
      ++draft_.tally.instants;
      return;
    }
    case kThread:
    case kThreadText:
      ++draft_.tally.metadata;
      if (row.IsNull(nvtx::kTid)) return;
      draft_.namings.push_back({Naming::What::kThread, std::to_string(ProcessKey(row.Integer(nvtx::kTid))),
                                std::to_string(ThreadId(row.Integer(nvtx::kTid))), ReplaceInvalid(NvtxText(row))});
      return;
    case kCategory:
    case kCategoryText:
    case kProcessText:
    case kFileText:
    case kDomainCreate:
    case kDomainDestroy:
    case kNameDevice:
    case kNameContext:
    case kNameStream: ++draft_.tally.metadata; return;
    default: return Drop(kUnknownNvtx);
  }
}

void RowDrafter::AddRange(const Row& row, bool crosses_threads) {
  DraftSpan span;
  if (!ReadBegin(row, nvtx::kStart, span.begin)) return;
  const bool open = row.IsNull(nvtx::kEnd);
  if (!open) span.duration = ReadDuration(row, nvtx::kEnd, span.begin);
  const bool inline_text = !row.IsNull(nvtx::kText);
  const std::string_view text = inline_text ? row.Text(nvtx::kText) : std::string_view();
  const auto op = inline_text ? ParseOpText(text) : std::nullopt;
  if (op) {
    span.name = InternText(op->name);
    span.category = CategoryOf("nvtx_op", SpanKind::kOp);
    if (!op->sizes.empty()) {
      trace::OpArgs args;
      args.input_dims = trace::StringId(InternText(op->sizes));
      span.op = static_cast<uint32_t>(draft_.op.size());
      draft_.op.push_back(args);
    }
  } else {
    span.name = inline_text ? InternText(text) : NameById(row, nvtx::kTextId, false);
    // Libraries have domains of their own; the default one, 0, is the program's.
    const bool library = row.Integer(nvtx::kDomain) != 0 && IsLibraryRange(worker_.strings.Text(span.name));
    span.category = library ? CategoryOf("nvtx_library", SpanKind::kOp) : CategoryOf(table_->category, table_->kind);
  }
  if (crosses_threads) {
    const std::string process = std::to_string(ProcessKey(row.Integer(nvtx::kTid)));
    span.lane = worker_.lanes.Intern(LaneKey::Pack(process, kRangeLane, false));
  } else {
    span.lane = HostLane(row, nvtx::kTid);
  }
  if (open) Report(kOpenRange);
  (open ? draft_.marks : draft_.spans).push_back(span);
  ++draft_.tally.spans;
}

void RowDrafter::AddSample(const Row& row) {
  DraftInstant instant;
  if (!ReadBegin(row, sample::kStart, instant.at)) return;
  const std::pair<int64_t, int64_t> wanted(row.Integer(sample::kId), INT64_MIN);
  const auto leaf = std::lower_bound(session_.leaves.begin(), session_.leaves.end(), wanted);
  if (leaf == session_.leaves.end() || leaf->first != wanted.first) {
    Report(kNoFrames);
    instant.name = worker_.strings.Intern("(no call chain)");
  } else if (const auto found = names_.Find(leaf->second)) {
    if (by_row_[*found] == 0) by_row_[*found] = InternText(names_.Text(*found)) + 1;
    instant.name = by_row_[*found] - 1;
    worker_.strings.Use(instant.name);
  } else {
    Report(kNoString);
    instant.name = NumberedName("string ", leaf->second);
  }
  instant.lane = HostLane(row, sample::kTid);
  draft_.instants.push_back(instant);
  ++draft_.tally.instants;
}

}  // namespace teller::ingest::nsys
