#include "ingest/otlp/sink.hpp"

#include <algorithm>
#include <charconv>

#include "ingest/common/decimal.hpp"
#include "ingest/common/text.hpp"
#include "ingest/otlp/diagnostics.hpp"
#include "ingest/otlp/lanes.hpp"
#include "ingest/otlp/request.hpp"

namespace teller::ingest::otlp {

namespace {

using base::Nanos;

constexpr size_t kMaxValue = 1024;  // of an attribute that is kept: prompts are long and no evidence
constexpr size_t kMaxName = 1024;
constexpr int kMaxDepth = 60000;  // of a chain of parents
constexpr std::string_view kCategory = "otlp";

uint64_t HashId(std::string_view id) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), value, 16);
  if (error == std::errc() && end == id.data() + id.size() && !id.empty()) return value;
  value = 0xCBF29CE484222325u;
  for (const char c : id) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return value;
}

/// First text among several keys.
std::string FirstOf(const std::vector<Field>& fields, std::initializer_list<std::string_view> keys) {
  for (const auto key : keys) {
    if (std::string text = TextOf(fields, key); !text.empty()) return text.substr(0, kMaxName);
  }
  return {};
}

}  // namespace

StoreSink::StoreSink(trace::FileRow file, trace::Store& store, const base::Limits& limits)
    : file_(file), store_(store), limits_(limits) {
  Resource({});
}

std::string StoreSink::Place() const {
  return "span:" + std::to_string(ordinal_);
}

void StoreSink::Resource(const std::vector<Field>& fields) {
  resource_ = fields;
  scope_.clear();
  engine_ = EngineOf(resource_, scope_);
  process_ = kNone;  // made when the first span comes
}

void StoreSink::Scope(std::string_view name) {
  scope_ = std::string(name.substr(0, kMaxName));
  engine_ = EngineOf(resource_, scope_);
}

uint32_t StoreSink::ProcessIndex(const std::string& key, trace::Process process) {
  const auto [it, fresh] = process_of_.emplace(key, static_cast<uint32_t>(processes_.size()));
  if (fresh) {
    process.file = file_;
    process.service = true;
    processes_.push_back(std::move(process));
  }
  trace::Process& known = processes_[it->second];
  if (known.engine.empty()) known.engine = engine_;
  if (known.name.empty()) known.name = process.name;
  return it->second;
}

/// Which process wrote the span: its resource, or what SGLang writes on the span of a thread.
void StoreSink::TellProcess(const Span& span, Kept& kept) {
  const std::string service = FirstOf(resource_, {"service.name"});
  const std::string label = FirstOf(span.fields, {"thread_label"});
  const std::string thread_pid = FirstOf(span.fields, {"pid"});
  if (!label.empty() && !thread_pid.empty()) {
    trace::Process process;
    process.pid = thread_pid;
    process.name = label;
    process.host = FirstOf(span.fields, {"host_id"});
    for (const auto rank : {"tp_rank", "pp_rank"}) {
      const std::string text = FirstOf(span.fields, {rank});
      kept.other_rank = kept.other_rank || (!text.empty() && text != "0");
      if (!text.empty()) process.name += "_" + std::string(rank, 2) + text;
    }
    kept.own_process = true;
    kept.process = ProcessIndex("thread\x1f" + process.host + "\x1f" + thread_pid + "\x1f" + label, process);
    return;
  }
  if (process_ == kNone) {
    trace::Process process;
    process.pid = FirstOf(resource_, {"vllm.process_id", "process.pid"});
    process.name = FirstOf(resource_, {"vllm.process_name"});
    process.host = FirstOf(resource_, {"host.name", "k8s.pod.name", "host.id"});
    const std::string instance = process.pid.empty() ? FirstOf(resource_, {"service.instance.id"}) : std::string();
    process_ = ProcessIndex(service + "\x1f" + process.host + "\x1f" + process.pid + "\x1f" + instance, process);
    if (processes_[process_].pid.empty()) processes_[process_].pid = service.empty() ? "otlp" : service;
  }
  kept.process = process_;
}

/// Makes begin and duration usable. False when the span has no begin.
bool StoreSink::CheckTimes(Span& span) {
  if (span.begin == base::kNoTime) {
    store_.diagnostics.Report(kNoBegin, file_, Place());
    return false;
  }
  const auto instead = [&](const base::DiagnosticKind& kind) {
    store_.diagnostics.Report(kind, file_, Place());
    span.end = base::kNoTime;
  };
  if (span.end == base::kNoTime) {
    instead(kNoEnd);
  } else if (span.end < span.begin) {
    instead(kEndFirst);
  } else if (span.end - span.begin > kMaxDuration) {
    instead(kTooLongSpan);
  }
  return true;
}

void StoreSink::KeepFields(const Span& span, Kept& kept) {
  kept.first_field = static_cast<uint32_t>(fields_.size());
  const auto keep = [&](std::string_view key, std::string_view value) {
    if (value.empty()) return;
    fields_.push_back(
        {store_.strings.Intern(key.substr(0, kMaxName)), store_.strings.Intern(value.substr(0, kMaxValue))});
  };
  keep("span.kind", KindName(span.kind));
  keep("otel.scope", scope_);
  keep("trace_id", span.trace_id);
  keep("span_id", span.span_id);
  keep("parent_span_id", span.parent_id);
  if (span.status != Status::kUnset) keep("status", span.status == Status::kError ? "error" : "ok");
  keep("status.message", span.status_text);
  for (const Field& field : span.fields) keep(field.key, field.value.ToText());
  kept.fields = static_cast<uint32_t>(fields_.size()) - kept.first_field;
  if (span.fields_left_out > 0) store_.diagnostics.Report(kManyFields, file_, Place(), span.fields_left_out);
}

void StoreSink::KeepEvents(const Span& span, Kept& kept) {
  kept.first_event = static_cast<uint32_t>(events_.size());
  for (const Event& event : span.events) {
    if (event.at == base::kNoTime) {
      store_.diagnostics.Report(kNoBegin, file_, Place() + " event " + Snippet(event.name));
      ++store_.files[file_.value()].dropped;
      continue;
    }
    if (event.name == "retract") ++kept.retractions;
    events_.push_back({event.at, store_.strings.Intern(event.name.substr(0, kMaxName))});
  }
  kept.events = static_cast<uint32_t>(events_.size()) - kept.first_event;
}

void StoreSink::Add(Span span) {
  trace::File& row = store_.files[file_.value()];
  const uint64_t records = 1 + span.events.size();
  row.records_read += records;
  const bool full = store_.spans.size() + kept_.size() >= limits_.max_spans;
  if (full) store_.diagnostics.Report(kManySpans, file_, Place());
  if (full || !CheckTimes(span)) {
    row.dropped += records;
    ++ordinal_;
    return;
  }
  Kept kept;
  kept.begin = span.begin;
  kept.duration = span.end == base::kNoTime ? 0 : span.end - span.begin;
  kept.name = store_.strings.Intern(span.name.substr(0, kMaxName));
  kept.has_parent = !span.parent_id.empty();
  const uint64_t trace = HashId(span.trace_id);
  kept.parent_key = {trace, HashId(span.parent_id)};
  if (!span.span_id.empty()) {
    const Key key = {trace, HashId(span.span_id)};
    const auto [it, fresh] = by_id_.emplace(key, static_cast<uint32_t>(kept_.size()));
    if (!fresh && kept_[it->second].begin == kept.begin && kept_[it->second].name == kept.name) {
      store_.diagnostics.Report(kTwice, file_, Place());
      row.dropped += records;
      ++ordinal_;
      return;
    }
  }
  TellProcess(span, kept);
  KeepFields(span, kept);
  KeepEvents(span, kept);
  uint64_t bad_values = 0;
  if (auto record = RequestOf(span, engine_, bad_values)) {
    record->file = file_;
    record->ref = Place();
    record->process = processes_[kept.process].name;
    kept.request = static_cast<uint32_t>(store_.request_records.size());
    phases_ = phases_ || record->engine == "sglang";
    store_.request_records.push_back(std::move(*record));
    ++row.requests;
  }
  if (bad_values > 0) store_.diagnostics.Report(kBadValue, file_, Place(), bad_values);
  kept_.push_back(kept);
  ++ordinal_;
}

void StoreSink::Broken(std::string_view why) {
  trace::File& row = store_.files[file_.value()];
  ++row.records_read;
  ++row.dropped;
  store_.diagnostics.Report(kBadSpan, file_, Place() + ": " + Snippet(why));
}

void StoreSink::OtherSignal(uint64_t count) {
  if (count == 0) return;
  trace::File& row = store_.files[file_.value()];
  row.records_read += count;
  row.dropped += count;
  store_.diagnostics.Report(kOtherSignal, file_, "before " + Place(), count);
}

/// Finds parents, and how deep each span lies. A chain that closes on itself is cut.
void StoreSink::LinkParents() {
  for (uint32_t i = 0; i < kept_.size(); ++i) {
    if (!kept_[i].has_parent) continue;
    const auto it = by_id_.find(kept_[i].parent_key);
    if (it != by_id_.end() && it->second != i) kept_[i].parent = it->second;
  }
  std::vector<uint8_t> state(kept_.size(), 0);  // 0 new, 1 on the way, 2 done
  std::vector<uint32_t> chain;
  for (uint32_t i = 0; i < kept_.size(); ++i) {
    chain.clear();
    uint32_t at = i;
    while (at != kNone && state[at] == 0) {
      state[at] = 1;
      chain.push_back(at);
      at = kept_[at].parent;
    }
    if (at != kNone && state[at] == 1) {
      kept_[chain.back()].parent = kNone;
      at = kNone;
    }
    int depth = at == kNone ? -1 : kept_[at].depth;
    for (auto it = chain.rbegin(); it != chain.rend(); ++it) {
      depth = std::min(depth + 1, kMaxDepth);
      kept_[*it].depth = static_cast<uint16_t>(depth);
      state[*it] = 2;
    }
  }
}

/// Spans below a span that tells its own process belong to that process.
void StoreSink::InheritProcesses() {
  std::vector<uint32_t> order(kept_.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [this](uint32_t a, uint32_t b) { return kept_[a].depth < kept_[b].depth; });
  for (const uint32_t i : order) {
    Kept& span = kept_[i];
    if (span.own_process || span.parent == kNone) continue;
    const Kept& parent = kept_[span.parent];
    if (!parent.own_process) continue;
    span.process = parent.process;
    span.own_process = true;
    span.other_rank = parent.other_rank;
  }
}

/// Durations are added up downstream, also over all files: the sum must stay inside int64.
void StoreSink::CheckTotal() {
  Nanos total = 0;
  for (const trace::Track& track : store_.tracks) {
    if (!track.process.valid() || !store_.processes[track.process.value()].service) continue;
    for (uint32_t row = track.first_span; row < track.first_span + track.span_count; ++row) {
      total += store_.spans.duration[row];
    }
  }
  uint64_t zeroed = 0;
  for (Kept& span : kept_) {
    if (total + span.duration > kMaxNanos) {
      span.duration = 0;
      ++zeroed;
    }
    total += span.duration;
  }
  if (zeroed > 0) store_.diagnostics.Report(kTooLongSpan, file_, "the sum of all durations", zeroed);
}

void StoreSink::JoinPhase(const Kept& span, trace::RequestRecord& record) const {
  const Nanos end = span.begin + span.duration;
  if (span.retractions > 0) record.preemptions = std::max<int64_t>(record.preemptions, 0) + span.retractions;
  const Phase phase = PhaseOf(store_.text(span.name));
  switch (phase) {
    case Phase::kNone: return;
    case Phase::kDispatch: record.dispatched = std::max(record.dispatched, end); return;
    case Phase::kWaiting:
      record.queue_time = std::max<Nanos>(record.queue_time, 0) + span.duration;
      if (record.admitted == trace::kNoTime || end < record.admitted) record.admitted = end;
      return;
    case Phase::kPrefill:
      // After a retraction the prompt is done again: the first time counts, as it made the first token.
      if (record.prefilled != trace::kNoTime && record.prefilled <= end) return;
      record.prefilled = end;
      // Older versions' "prefill" begins where the request entered the queue.
      record.prefill_time = store_.text(span.name) == "prefill_forward" ? span.duration : -1;
      if (record.prefill_time >= 0 && (record.admitted == trace::kNoTime || span.begin < record.admitted)) {
        record.admitted = span.begin;
      }
      return;
    case Phase::kDecode:
      if (record.decode_time < 0) record.decode_time = span.duration;
      return;
  }
}

/// SGLang writes each phase as a span of its own, below a span for each thread, below the request's.
void StoreSink::JoinPhases() {
  if (!phases_) return;
  std::vector<uint32_t> order(kept_.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [this](uint32_t a, uint32_t b) {
    return std::pair(kept_[a].depth, kept_[a].begin) < std::pair(kept_[b].depth, kept_[b].begin);
  });
  std::vector<uint32_t> request(kept_.size(), kNone);
  for (const uint32_t i : order) {
    const Kept& span = kept_[i];
    request[i] = span.request != kNone || span.parent == kNone ? span.request : request[span.parent];
    if (request[i] == kNone || span.request != kNone || span.other_rank) continue;
    trace::RequestRecord& record = store_.request_records[request[i]];
    if (record.engine == "sglang") JoinPhase(span, record);
  }
}

uint8_t StoreSink::Category() {
  auto& categories = store_.categories;
  for (size_t i = 0; i < categories.size(); ++i) {
    if (categories[i].name == kCategory && categories[i].kind == trace::SpanKind::kService) {
      return static_cast<uint8_t>(i);
    }
  }
  constexpr size_t kMaxCategories = 256;
  if (categories.size() < kMaxCategories) {
    categories.push_back({std::string(kCategory), trace::SpanKind::kService});
  }
  return static_cast<uint8_t>(categories.size() - 1);
}

/// Appends the spans of one process, each on a lane, behind all others of the store.
void StoreSink::PutOnLanes(uint32_t process, std::vector<uint32_t> spans, uint8_t category) {
  const auto end = [this](uint32_t i) { return kept_[i].begin + kept_[i].duration; };
  std::stable_sort(spans.begin(), spans.end(), [&](uint32_t a, uint32_t b) {
    return std::tuple(kept_[a].begin, -end(a), kept_[a].depth) < std::tuple(kept_[b].begin, -end(b), kept_[b].depth);
  });
  std::unordered_map<uint32_t, uint32_t> place;  // kept_ -> spans
  std::vector<LaneSpan> lane_spans(spans.size());
  for (uint32_t i = 0; i < spans.size(); ++i) place.emplace(spans[i], i);
  for (uint32_t i = 0; i < spans.size(); ++i) {
    lane_spans[i] = {kept_[spans[i]].begin, end(spans[i])};
    const auto parent = place.find(kept_[spans[i]].parent);
    if (parent != place.end()) lane_spans[i].parent = parent->second;
  }
  const std::vector<uint32_t> lanes = AssignLanes(lane_spans);
  const uint32_t count = *std::max_element(lanes.begin(), lanes.end()) + 1;
  std::vector<std::vector<uint32_t>> on_lane(count);
  for (uint32_t i = 0; i < spans.size(); ++i) on_lane[lanes[i]].push_back(spans[i]);

  const trace::ProcessRow process_row(static_cast<uint32_t>(store_.processes.size()));
  store_.processes.push_back(processes_[process]);
  trace::File& file = store_.files[file_.value()];
  for (uint32_t lane = 0; lane < count; ++lane) {
    const trace::TrackRow track_row(static_cast<uint32_t>(store_.tracks.size()));
    trace::Track track;
    track.process = process_row;
    track.tid = std::to_string(lane);
    track.name = "lane " + std::to_string(lane + 1);
    track.first_span = static_cast<uint32_t>(store_.spans.size());
    track.span_count = static_cast<uint32_t>(on_lane[lane].size());
    store_.tracks.push_back(std::move(track));
    for (const uint32_t i : on_lane[lane]) {
      const Kept& span = kept_[i];
      const auto row = static_cast<uint32_t>(store_.spans.size());
      store_.spans.begin.push_back(span.begin);
      store_.spans.duration.push_back(span.duration);
      store_.spans.name.push_back(span.name);
      store_.spans.track.push_back(track_row);
      store_.spans.category.push_back(category);
      for (uint32_t f = 0; f < span.fields; ++f) store_.attributes.Append(row, fields_[span.first_field + f]);
      for (uint32_t e = 0; e < span.events; ++e) {
        const KeptEvent& event = events_[span.first_event + e];
        store_.instants.push_back({event.at, event.name, track_row});
      }
      ++file.spans;
      file.instants += span.events;
    }
  }
}

void StoreSink::Finish() {
  if (kept_.empty()) return;
  LinkParents();
  InheritProcesses();
  JoinPhases();
  CheckTotal();
  const uint8_t category = Category();
  std::vector<std::vector<uint32_t>> of_process(processes_.size());
  for (uint32_t i = 0; i < kept_.size(); ++i) of_process[kept_[i].process].push_back(i);
  for (uint32_t p = 0; p < of_process.size(); ++p) {
    if (!of_process[p].empty()) PutOnLanes(p, std::move(of_process[p]), category);
  }
}

}  // namespace teller::ingest::otlp
