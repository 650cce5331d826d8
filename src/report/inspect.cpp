#include "report/inspect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/clock.hpp"
#include "report/comm_perf.hpp"
#include "report/communicators.hpp"
#include "report/diagnosis_json.hpp"
#include "report/diagnosis_text.hpp"
#include "report/summary.hpp"
#include "report/units.hpp"

namespace teller::report {

using Json = nlohmann::ordered_json;

namespace {

constexpr size_t kShownCollectives = 8;

std::vector<uint64_t> SpansByCategory(const trace::Store& store) {
  std::vector<uint64_t> counts(store.categories.size());
  for (const uint8_t category : store.spans.category) ++counts[category];
  return counts;
}

std::vector<uint64_t> SpansByProcess(const trace::Store& store) {
  std::vector<uint64_t> counts(store.processes.size());
  for (const trace::Track& track : store.tracks) counts[track.process.value()] += track.span_count;
  return counts;
}

std::string FileText(const trace::File& file) {
  std::vector<std::string> parts{file.kind};
  if (file.rank) parts.push_back(fmt::format("rank {}", *file.rank));
  if (file.spans > 0) parts.push_back(Count(file.spans, "span"));
  if (file.log_records > 0) parts.push_back(Count(file.log_records, "record"));
  if (file.requests > 0) parts.push_back(Count(file.requests, "request"));
  if (file.counters > 0) parts.push_back(Count(file.counters, "counter sample"));
  parts.push_back(Bytes(file.bytes));
  if (file.dropped > 0) parts.push_back(Count(file.dropped) + " dropped");
  if (!file.note.empty()) parts.push_back(file.note);
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string ProcessText(const trace::Process& process, uint64_t spans) {
  std::vector<std::string> parts;
  if (process.rank) {
    parts.push_back(process.world_size ? fmt::format("rank {} of {}", *process.rank, *process.world_size)
                                       : fmt::format("rank {}", *process.rank));
  }
  if (!process.name.empty())
    parts.push_back(process.name + (process.name_inferred ? " (by its place in the run)" : ""));
  if (!process.engine.empty()) parts.push_back(process.engine);
  parts.push_back(Count(spans, "span"));
  return fmt::format("{}", fmt::join(parts, ", "));
}

void AddCounts(const trace::Store& store, Page& page) {
  const std::vector<uint64_t> by_category = SpansByCategory(store);
  if (by_category.empty()) return;
  page.Gap();
  page.Head("Spans by category");
  for (size_t i = 0; i < by_category.size(); ++i) {
    const trace::Category& category = store.categories[i];
    if (by_category[i] == 0) continue;
    page.Line(2, fmt::format("{:>12}  {}  ({})", Count(by_category[i]),
                             category.name.empty() ? "(no category)" : category.name, Name(category.kind)));
  }
}

void AddFiles(const trace::Store& store, Page& page) {
  page.Gap();
  page.Head("Files");
  for (const trace::File& file : store.files) {
    page.Line(2, file.path);
    page.Paragraph(6, FileText(file), Ink::kDim);
  }
}

void AddProcesses(const trace::Store& store, Page& page) {
  if (store.processes.empty()) return;
  const std::vector<uint64_t> spans = SpansByProcess(store);
  page.Gap();
  page.Head("Processes");
  for (size_t i = 0; i < store.processes.size(); ++i) {
    page.Field("pid " + store.processes[i].pid, ProcessText(store.processes[i], spans[i]));
  }
}

/// Time that all members together waited for the last one.
base::Nanos TotalWait(const trace::Collective& collective) {
  base::Nanos wait = 0;
  for (const trace::CollectiveMember& member : collective.members) wait += member.wait;
  return wait;
}

/// Order: most waited for first.
std::vector<const trace::Collective*> ByWait(const trace::Trees& trees) {
  std::vector<const trace::Collective*> order;
  for (const trace::Collective& collective : trees.collectives) order.push_back(&collective);
  std::stable_sort(order.begin(), order.end(), [](const trace::Collective* a, const trace::Collective* b) {
    return TotalWait(*a) > TotalWait(*b);
  });
  return order;
}

void AddCollectives(const engine::Run& run, Page& page) {
  const std::vector<const trace::Collective*> order = ByWait(run.trees);
  if (order.empty()) return;
  page.Gap();
  const size_t shown = page.options().all ? order.size() : std::min(order.size(), kShownCollectives);
  page.Head(fmt::format("Collectives: {}{}", Count(order.size()), shown < order.size() ? "; the most waited for" : ""));
  page.Line(2, fmt::format("{:>10} {:>10} {:>5}  {:>10}  {}", "waited", "transfer", "late", "late by", "what"),
            Ink::kDim);
  for (size_t i = 0; i < shown; ++i) {
    const trace::Collective& c = *order[i];
    page.Line(2, fmt::format("{:>10} {:>10} {:>5}  {:>10}  {} of {} ranks", Duration(TotalWait(c)),
                             Duration(c.transfer), c.late_rank < 0 ? "-" : std::to_string(c.late_rank),
                             Duration(c.late_by), run.store.text(c.name), c.members.size()));
  }
}

Json CollectivesToJson(const engine::Run& run) {
  Json out = Json::array();
  for (const trace::Collective& c : run.trees.collectives) {
    Json members = Json::array();
    for (const trace::CollectiveMember& m : c.members) {
      members.push_back(
          {{"rank", m.rank}, {"arrival_ns", JsonTime(m.arrival)}, {"end_ns", JsonTime(m.end)}, {"wait_ns", m.wait}});
    }
    out.push_back({{"name", std::string(run.store.text(c.name))},
                   {"group", c.group},
                   {"inferred", c.inferred},
                   {"point_to_point", c.point_to_point},
                   {"late_rank", c.late_rank < 0 ? Json(nullptr) : Json(c.late_rank)},
                   {"late_by_ns", c.late_by},
                   {"transfer_ns", c.transfer},
                   {"members", members}});
  }
  return out;
}

/// null for what the trace does not say.
Json KnownOrNull(int64_t value) {
  return value < 0 ? Json(nullptr) : Json(value);
}

Json StepsToJson(const trace::Trees& trees) {
  Json out = Json::array();
  for (const trace::Step& step : trees.steps) {
    out.push_back({{"process", step.process.value()},
                   {"rank", step.rank ? Json(*step.rank) : Json(nullptr)},
                   {"index", step.index},
                   {"name", step.name},
                   {"begin_ns", JsonTime(step.begin)},
                   {"end_ns", JsonTime(step.end)},
                   {"gap_before_ns", KnownOrNull(step.gap_before)},
                   {"kind", Name(step.kind)},
                   {"batch", KnownOrNull(step.batch)},
                   {"prefill_requests", KnownOrNull(step.prefill_requests)},
                   {"decode_requests", KnownOrNull(step.decode_requests)},
                   {"new_tokens", KnownOrNull(step.new_tokens)},
                   {"context_tokens", KnownOrNull(step.context_tokens)},
                   {"observer", step.observer}});
  }
  return out;
}

/// What one source tells of its counters.
struct CounterFacts {
  uint64_t series = 0;
  uint64_t cumulative = 0;  ///< of the series
  uint64_t samples = 0;
  uint64_t timed = 0;    ///< samples with a time
  uint64_t scrapes = 0;  ///< most samples of one series
};

/// By file, in the order of the files.
std::map<uint32_t, CounterFacts> CountersByFile(const trace::Store& store) {
  std::map<uint32_t, CounterFacts> facts;
  for (const trace::CounterSeries& series : store.counter_series) {
    CounterFacts& of_file = facts[series.file.value()];
    ++of_file.series;
    of_file.cumulative += series.kind == trace::CounterKind::kCumulative;
  }
  for (const trace::CounterSample& sample : store.counters) {
    CounterFacts& of_file = facts[store.counter_series[sample.series.value()].file.value()];
    ++of_file.samples;
    of_file.timed += sample.at != trace::kNoTime;
    of_file.scrapes = std::max<uint64_t>(of_file.scrapes, uint64_t{sample.scrape} + 1);
  }
  return facts;
}

void AddCounters(const trace::Store& store, Page& page) {
  if (store.counter_series.empty()) return;
  page.Gap();
  page.Head("Counters");
  for (const auto& [file, facts] : CountersByFile(store)) {
    page.Line(2, store.files[file].path);
    std::string text = fmt::format("{} series ({} cumulative), {}, {}", Count(facts.series), Count(facts.cumulative),
                                   Count(facts.scrapes, "scrape"), Count(facts.samples, "sample"));
    if (facts.timed == 0) text += "; without times: differences only";
    page.Paragraph(6, text, Ink::kDim);
  }
}

Json CountersToJson(const trace::Store& store) {
  Json out = Json::array();
  for (const auto& [file, facts] : CountersByFile(store)) {
    out.push_back({{"file", file},
                   {"series", facts.series},
                   {"cumulative", facts.cumulative},
                   {"scrapes", facts.scrapes},
                   {"samples", facts.samples},
                   {"samples_with_time", facts.timed}});
  }
  return out;
}

/// Requests by the engine that speaks of them; "unknown" where it does not say who it is.
std::map<std::string, uint64_t> RequestsByEngine(const trace::Store& store) {
  std::map<std::string, uint64_t> counts;
  for (const trace::RequestRecord& record : store.request_records) {
    ++counts[record.engine.empty() ? std::string("unknown") : record.engine];
  }
  return counts;
}

void AddRequests(const trace::Store& store, Page& page) {
  if (store.request_records.empty()) return;
  page.Gap();
  page.Head("Request records by engine");
  for (const auto& [engine, n] : RequestsByEngine(store)) page.Line(2, fmt::format("{:>12}  {}", Count(n), engine));
}

Json GraphsToJson(const trace::Trees& trees) {
  uint64_t work = 0;
  uint64_t attributed = 0;
  for (const trace::GraphReplay& replay : trees.graph_replays) {
    work += replay.work;
    attributed += replay.attributed;
  }
  Json sources = Json::object();
  for (const auto& [source, n] : trace::OriginsBySource(trees.graph_origins)) sources[std::string(Name(source))] = n;
  return {{"launches", trees.graph_replays.size()},
          {"work", work},
          {"attributed", attributed},
          {"attributed_by", std::move(sources)}};
}

std::map<std::string, uint64_t> RecordsBySource(const trace::Store& store) {
  std::map<std::string, uint64_t> counts;
  for (const trace::LogRecord& log : store.logs) ++counts[std::string(Name(log.source))];
  return counts;
}

Json ProcessesToJson(const trace::Store& store) {
  const std::vector<uint64_t> spans = SpansByProcess(store);
  Json out = Json::array();
  for (size_t i = 0; i < store.processes.size(); ++i) {
    const trace::Process& process = store.processes[i];
    out.push_back({{"file", process.file.valid() ? Json(process.file.value()) : Json(nullptr)},
                   {"pid", process.pid},
                   {"name", process.name},
                   {"name_inferred", process.name_inferred},
                   {"rank", process.rank ? Json(*process.rank) : Json(nullptr)},
                   {"world_size", process.world_size ? Json(*process.world_size) : Json(nullptr)},
                   {"engine", process.engine},
                   {"spans", spans[i]}});
  }
  return out;
}

Json FilesToJson(const trace::Store& store) {
  Json out = Json::array();
  for (const trace::File& file : store.files) {
    out.push_back({{"path", file.path},
                   {"kind", file.kind},
                   {"rank", file.rank ? Json(*file.rank) : Json(nullptr)},
                   {"bytes", file.bytes},
                   {"records_read", file.records_read},
                   {"spans", file.spans},
                   {"instants", file.instants},
                   {"counters", file.counters},
                   {"flows", file.flows},
                   {"metadata", file.metadata},
                   {"repaired_away", file.repaired_away},
                   {"dropped", file.dropped},
                   {"log_records", file.log_records},
                   {"requests", file.requests},
                   {"note", file.note.empty() ? Json(nullptr) : Json(file.note)}});
  }
  return out;
}

}  // namespace

std::string InspectToText(const engine::Run& run, const TextOptions& options) {
  Page page(options);
  AddWhatWasRead(run, page);
  AddFiles(run.store, page);
  AddProcesses(run.store, page);
  AddCounts(run.store, page);
  const trace::Trees& trees = run.trees;
  if (trees.gpu_work > 0) {
    page.Gap();
    page.Head("Links");
    page.Field("launches",
               fmt::format("{} of {} pieces of GPU work; {} were launched outside the file",
                           Count(trees.gpu_work_linked), Count(trees.gpu_work), Count(trees.gpu_work_unlaunched)));
  }
  AddClocks(run, page);
  AddCollectives(run, page);
  AddRequests(run.store, page);
  AddCounters(run.store, page);
  AddMeasurements(run.store, page);
  AddCommunicators(run.store, page);
  if (!run.store.logs.empty()) {
    page.Gap();
    page.Head("Log records by writer");
    for (const auto& [source, n] : RecordsBySource(run.store))
      page.Line(2, fmt::format("{:>12}  {}", Count(n), source));
  }
  AddDiagnostics(run.store, page);
  return page.Take();
}

Json InspectToJson(const engine::Run& run) {
  const Summary summary = Summarize(run);
  Json categories = Json::array();
  const std::vector<uint64_t> by_category = SpansByCategory(run.store);
  for (size_t i = 0; i < by_category.size(); ++i) {
    categories.push_back({{"name", run.store.categories[i].name},
                          {"kind", Name(run.store.categories[i].kind)},
                          {"spans", by_category[i]}});
  }
  Json sources = Json::object();
  for (const auto& [source, n] : RecordsBySource(run.store)) sources[source] = n;
  Json requests = Json::object();
  for (const auto& [engine, n] : RequestsByEngine(run.store)) requests[engine] = n;
  return {{"schema", "teller.inspect/1"},
          {"files", FilesToJson(run.store)},
          {"processes", ProcessesToJson(run.store)},
          {"categories", categories},
          {"ranks", summary.ranks},
          {"spans", summary.spans},
          {"steps", summary.steps},
          {"step_list", StepsToJson(run.trees)},
          {"clock", ClockToJson(run, summary.clock_domain)},
          {"collectives", CollectivesToJson(run)},
          {"measured_collectives", MeasurementsToJson(run.store)},
          {"communicators", CommunicatorsToJson(run.store)},
          {"gpu_work",
           {{"with_correlation", run.trees.gpu_work},
            {"linked", run.trees.gpu_work_linked},
            {"launched_outside", run.trees.gpu_work_unlaunched}}},
          {"graph_replays", GraphsToJson(run.trees)},
          {"log_records", summary.log_records},
          {"log_sources", sources},
          {"requests", requests},
          {"counters", CountersToJson(run.store)},
          {"begin_ns", JsonTime(summary.begin)},
          {"end_ns", JsonTime(summary.end)},
          {"diagnostics", DiagnosticsToJson(run.store)}};
}

}  // namespace teller::report
