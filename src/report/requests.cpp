#include "report/requests.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "locate/request_reason.hpp"
#include "report/diagnosis_json.hpp"
#include "report/diagnosis_text.hpp"
#include "report/json_stream.hpp"
#include "report/printable.hpp"
#include "report/summary.hpp"
#include "report/units.hpp"

namespace teller::report {

using base::Nanos;
using trace::PhaseKind;
using trace::Request;
using trace::RequestRow;
using Json = nlohmann::ordered_json;

namespace {

constexpr size_t kShownRequests = 100;
constexpr size_t kShownSlowest = 5;
constexpr size_t kShownSteps = 40;
constexpr size_t kShownLines = 40;
constexpr size_t kShownId = 200;
constexpr std::array kLevels = {50, 90, 99, 100};

/// One figure that all requests have.
struct Figure {
  const char* name;
  const char* key;
  std::function<Nanos(const Request&)> of;
};

const std::array<Figure, 4>& Figures() {
  static const std::array<Figure, 4> figures = {{
      {"TTFT", "ttft_ns", [](const Request& r) { return r.ttft; }},
      {"TPOT", "tpot_ns", [](const Request& r) { return r.tpot(); }},
      {"E2E", "e2e_ns", [](const Request& r) { return r.e2e; }},
      {"queue", "queue_ns",
       [](const Request& r) { return r.tells(PhaseKind::kQueue) ? r.phase(PhaseKind::kQueue) : Nanos(-1); }},
  }};
  return figures;
}

/// Known values of a figure, in ascending order.
std::vector<Nanos> Values(const engine::Run& run, const Figure& figure) {
  std::vector<Nanos> values;
  for (const Request& request : run.trees.requests) {
    const Nanos value = figure.of(request);
    if (value >= 0) values.push_back(value);
  }
  std::sort(values.begin(), values.end());
  return values;
}

/// Nearest rank: the smallest value that at least `percent` of all do not exceed.
Nanos Percentile(const std::vector<Nanos>& sorted, int percent) {
  const size_t rank = (sorted.size() * static_cast<size_t>(percent) + 99) / 100;
  return sorted[std::max<size_t>(rank, 1) - 1];
}

std::string Known(Nanos value) {
  return value < 0 ? "-" : Duration(value);
}

std::string KnownCount(int64_t value) {
  return value < 0 ? "-" : Count(static_cast<uint64_t>(value));
}

/// Order: longest end-to-end time first.
std::vector<uint32_t> Slowest(const engine::Run& run) {
  std::vector<uint32_t> order;
  for (uint32_t r = 0; r < run.trees.requests.size(); ++r) {
    if (run.trees.requests[r].e2e >= 0) order.push_back(r);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return run.trees.requests[a].e2e > run.trees.requests[b].e2e; });
  return order;
}

void AddPercentiles(const engine::Run& run, Page& page) {
  page.Gap();
  page.Line(2, fmt::format("{:<8} {:>8} {:>10} {:>10} {:>10} {:>10}", "", "requests", "p50", "p90", "p99", "largest"),
            Ink::kDim);
  for (const Figure& figure : Figures()) {
    const std::vector<Nanos> values = Values(run, figure);
    std::string line = fmt::format("{:<8} {:>8}", figure.name, values.size());
    for (const int level : kLevels)
      line += fmt::format(" {:>10}", values.empty() ? "-" : Duration(Percentile(values, level)));
    page.Line(2, line);
  }
}

std::string CoverText(const Request& request) {
  if (request.cover == trace::StepCover::kNone) return "-";
  return fmt::format("{}{}", request.steps.size(), request.cover == trace::StepCover::kPart ? "+" : "");
}

/// One column of the list.
struct Column {
  const char* name;
  bool narrow;  ///< shown on narrow terminals too
  std::function<std::string(const Request&)> text;
};

std::string PhaseText(const Request& request, PhaseKind kind) {
  return request.tells(kind) ? Duration(request.phase(kind)) : "-";
}

const std::vector<Column>& Columns() {
  static const std::vector<Column> columns = {
      {"TTFT", true, [](const Request& r) { return Known(r.ttft); }},
      {"E2E", true, [](const Request& r) { return Known(r.e2e); }},
      {"front end", false, [](const Request& r) { return PhaseText(r, PhaseKind::kFrontEnd); }},
      {"queue", true, [](const Request& r) { return PhaseText(r, PhaseKind::kQueue); }},
      {"prefill", true, [](const Request& r) { return PhaseText(r, PhaseKind::kPrefill); }},
      {"decode", true, [](const Request& r) { return PhaseText(r, PhaseKind::kDecode); }},
      {"output", false, [](const Request& r) { return PhaseText(r, PhaseKind::kOutput); }},
      {"in", false, [](const Request& r) { return KnownCount(r.prompt_tokens); }},
      {"out", false, [](const Request& r) { return KnownCount(r.output_tokens); }},
      {"steps", false, [](const Request& r) { return CoverText(r); }},
  };
  return columns;
}

void AddTable(const engine::Run& run, Page& page) {
  constexpr size_t kWide = 130;
  const std::vector<Request>& requests = run.trees.requests;
  const size_t shown = page.options().all ? requests.size() : std::min(requests.size(), kShownRequests);
  const bool wide = page.width() >= kWide;
  page.Gap();
  std::string head = fmt::format("  {:<12}", "arrival");
  for (const Column& column : Columns()) {
    if (wide || column.narrow) head += fmt::format(" {:>9}", column.name);
  }
  page.Raw(page.Inked(Ink::kDim, head + "  id"));
  for (size_t i = 0; i < shown; ++i) {
    const Request& r = requests[i];
    std::string line = fmt::format("  {:<12}", r.arrival == trace::kNoTime ? "-" : TimeOfDay(r.arrival));
    for (const Column& column : Columns()) {
      if (wide || column.narrow) line += fmt::format(" {:>9}", column.text(r));
    }
    line += "  " + (r.id.empty() ? std::string("(no id)") : r.id);
    page.Raw(page.Inked(r.failed ? Ink::kRed : Ink::kPlain, line));
  }
  if (shown < requests.size()) page.Line(2, fmt::format("and {} more (--all)", requests.size() - shown), Ink::kDim);
  if (wide) page.Line(2, "steps: how many served it; + where they are only a part, or not certain", Ink::kDim);
}

Json PhasesToJson(const Request& request) {
  Json phases = Json::array();
  for (const trace::RequestPhase& phase : request.phases) {
    phases.push_back(
        {{"kind", Name(phase.kind)}, {"begin_ns", JsonTime(phase.begin)}, {"duration_ns", phase.duration}});
  }
  return phases;
}

/// What a log record says of a request that it names among others: "in flight at 21:14:01; 29 tokens computed".
std::string ListedText(const engine::Run& run, const trace::RequestRecord& listed) {
  std::string text = listed.in_flight ? "in flight" : "named";
  text += listed.named == trace::kNoTime ? " at a time that is not known" : " at " + Time(listed.named);
  if (listed.computed_tokens >= 0) text += fmt::format(", {} of its tokens computed", listed.computed_tokens);
  return text + fmt::format(" ({}:{}, together with others)", FilePath(run.store, listed.file),
                            listed.ref.substr(listed.ref.find(':') + 1));
}

Json OrNull(int64_t value) {
  return value < 0 ? Json(nullptr) : Json(value);
}

Json ListedToJson(const engine::Run& run, const Request& request) {
  if (request.listed == Request::kNotListed) return nullptr;
  const trace::RequestRecord& listed = run.store.request_records[request.listed];
  return {{"at_ns", JsonTime(listed.named)},
          {"in_flight", listed.in_flight},
          {"computed_tokens", OrNull(listed.computed_tokens)},
          {"file", listed.file.value()},
          {"ref", listed.ref}};
}

size_t StepCount(const Request& r, bool prefill) {
  return static_cast<size_t>(
      std::count_if(r.steps.begin(), r.steps.end(), [&](const trace::RequestStep& s) { return s.prefill == prefill; }));
}

int64_t StepTokens(const Request& r, bool prefill) {
  int64_t tokens = 0;
  for (const trace::RequestStep& step : r.steps) tokens += step.prefill == prefill ? step.tokens : 0;
  return tokens;
}

/// What the list and the tree of a request have in common.
Json HeadToJson(const Request& r) {
  return {{"id", r.id},
          {"trace_id", r.trace_id.empty() ? Json(nullptr) : Json(r.trace_id)},
          {"engine", r.engine.empty() ? Json(nullptr) : Json(r.engine)},
          {"failed", r.failed},
          {"error", r.error.empty() ? Json(nullptr) : Json(r.error)},
          {"arrival_ns", JsonTime(r.arrival)},
          {"finished_ns", JsonTime(r.finished)},
          {"at_error_ns", r.at_error},
          {"ttft_ns", OrNull(r.ttft)},
          {"tpot_ns", OrNull(r.tpot())},
          {"e2e_ns", OrNull(r.e2e)},
          {"prompt_tokens", OrNull(r.prompt_tokens)},
          {"cached_tokens", OrNull(r.cached_tokens)},
          {"output_tokens", OrNull(r.output_tokens)},
          {"preemptions", OrNull(r.preemptions)},
          {"phases", PhasesToJson(r)},
          {"cover", Name(r.cover)},
          {"served_by", r.served_by.valid() ? Json(r.served_by.value()) : Json(nullptr)},
          {"parts",
           {{"own_ns", r.own},
            {"others_ns", r.others},
            {"blocked_ns", r.blocked},
            {"between_ns", r.between},
            {"unrecorded_ns", r.unrecorded}}},
          {"steps_prefill", StepCount(r, true)},
          {"steps_decode", StepCount(r, false)},
          {"step_tokens_prefill", StepTokens(r, true)},
          {"step_tokens_decode", StepTokens(r, false)},
          {"log_records", r.logs.size()}};
}

std::string BlockText(const engine::Run& run, const trace::RequestBlock& block) {
  std::string who = block.by.valid() ? run.trees.requests[block.by.value()].id : "a request that is not known";
  if (block.prompt_tokens >= 0) who += fmt::format(" ({} prompt tokens)", block.prompt_tokens);
  return fmt::format("{}  prefill of {}", Duration(block.duration), who);
}

void AddPhases(const Request& request, Page& page) {
  page.Gap();
  page.Head("Phases");
  for (const trace::RequestPhase& phase : request.phases) {
    const double part =
        request.e2e > 0 ? 100.0 * static_cast<double>(phase.duration) / static_cast<double>(request.e2e) : 0;
    page.Line(2, fmt::format("{:>10} {:>5.1f} %  {}{}", Duration(phase.duration), part, Name(phase.kind),
                             phase.begin == trace::kNoTime ? "" : "  from " + TimeOfDay(phase.begin)));
  }
  if (request.cover == trace::StepCover::kNone) return;
  page.Paragraph(2,
                 fmt::format("prefill and decode: {} own share of steps, {} taken by others in them, {} in steps that "
                             "did not serve it, {} between "
                             "steps, {} while no steps were recorded",
                             Duration(request.own), Duration(request.others), Duration(request.blocked),
                             Duration(request.between), Duration(request.unrecorded)),
                 Ink::kDim);
}

void AddSteps(const engine::Run& run, const Request& request, Page& page) {
  page.Gap();
  if (request.cover == trace::StepCover::kNone) {
    page.Paragraph(0, fmt::format("Its phases are all that is known: {}.", Text(request.no_steps)), Ink::kDim);
    return;
  }
  page.Head(fmt::format(
      "{}{}", Count(request.steps.size(), "step"),
      request.cover == trace::StepCover::kExact
          ? ""
          : ", those that its phases overlap; it lies partly outside of the recorded steps or they are not certain"));
  const size_t shown = page.options().all ? request.steps.size() : std::min(request.steps.size(), kShownSteps);
  page.Line(2,
            fmt::format("{:>6} {:<8} {:>7} {:>10} {:>10} {:>9}  {}", "step", "kind", "tokens", "whole", "share",
                        "begin", "mark"),
            Ink::kDim);
  for (size_t i = 0; i < shown; ++i) {
    const trace::RequestStep& part = request.steps[i];
    const trace::Step& step = run.trees.steps[part.step.value()];
    page.Line(
        2, fmt::format("{:>6} {:<8} {:>7} {:>10} {:>10} {:>9}  {}", step.index, part.prefill ? "prefill" : "decode",
                       part.tokens, Duration(step.duration()), Duration(part.share), TimeOfDay(step.begin), step.name));
  }
  if (shown < request.steps.size())
    page.Line(2, fmt::format("and {} more (--all)", request.steps.size() - shown), Ink::kDim);
}

void AddLines(const engine::Run& run, const Request& request, Page& page) {
  if (request.logs.empty()) return;
  page.Gap();
  page.Head(Count(request.logs.size(), "log line"));
  const size_t shown = page.options().all ? request.logs.size() : std::min(request.logs.size(), kShownLines);
  for (size_t i = 0; i < shown; ++i) {
    const trace::LogRecord& log = run.store.logs[request.logs[i].value()];
    const std::string time = log.at == trace::kNoTime ? std::string(12, '-') : TimeOfDay(log.at);
    page.Line(2, fmt::format("{} {}:{}  {}", time, FilePath(run.store, log.file), log.line,
                             log.message.substr(0, log.message.find('\n'))));
  }
  if (shown < request.logs.size())
    page.Line(2, fmt::format("and {} more (--all)", request.logs.size() - shown), Ink::kDim);
}

}  // namespace

std::string RequestsToText(const engine::Run& run, const TextOptions& options) {
  Page page(options);
  AddWhatWasRead(run, page);
  AddUnusedFiles(run.store, page);
  page.Gap();
  if (run.trees.requests.empty()) {
    page.Paragraph(0,
                   "No requests: give OTLP spans of the engine, or logs that carry request ids (vLLM: "
                   "--enable-log-requests, SGLang: --log-requests).");
    AddDiagnostics(run.store, page);
    return page.Take();
  }
  page.Head(Count(run.trees.requests.size(), "request"));
  AddPercentiles(run, page);
  AddTable(run, page);
  page.Gap();
  page.Head("The slowest, and why");
  const locate::UsualRequest usual = locate::LearnUsual(run.trees);
  const std::vector<uint32_t> slowest = Slowest(run);
  for (size_t i = 0; i < std::min(slowest.size(), kShownSlowest); ++i) {
    const Request& request = run.trees.requests[slowest[i]];
    page.Line(2, fmt::format("{}  {}", Duration(request.e2e), request.id.empty() ? "(no id)" : request.id), Ink::kBold);
    page.Paragraph(4, locate::RequestReason(run.trees, usual, RequestRow(slowest[i])));
  }
  AddDiagnostics(run.store, page);
  return page.Take();
}

base::Status WriteRequestsJson(const engine::Run& run, const Sink& sink) {
  Json percentiles = Json::object();
  for (const Figure& figure : Figures()) {
    const std::vector<Nanos> values = Values(run, figure);
    Json levels = {{"requests", values.size()}};
    for (const int level : kLevels)
      levels[fmt::format("p{}", level)] = values.empty() ? Json(nullptr) : Json(Percentile(values, level));
    percentiles[figure.key] = std::move(levels);
  }
  JsonObjectStream out(sink);
  out.Field("schema", "teller.requests/1");
  out.Field("log_records_with_id", run.trees.logs_with_id);
  out.Field("log_records_on_request", run.trees.logs_on_request);
  out.Field("percentiles", percentiles);
  const locate::UsualRequest usual = locate::LearnUsual(run.trees);
  out.BeginArray("requests");
  for (uint32_t r = 0; r < run.trees.requests.size() && out.ok(); ++r) {
    Json one = HeadToJson(run.trees.requests[r]);
    one["why"] = locate::RequestReason(run.trees, usual, RequestRow(r));
    out.Item(one);
  }
  out.EndArray();
  out.Field("diagnostics", DiagnosticsToJson(run.store));
  return out.End();
}

base::Result<RequestRow> FindRequest(const engine::Run& run, const std::string& id) {
  std::vector<uint32_t> same;
  std::vector<uint32_t> parts;
  for (uint32_t r = 0; r < run.trees.requests.size(); ++r) {
    const Request& request = run.trees.requests[r];
    if (request.id == id || (!request.trace_id.empty() && request.trace_id == id)) same.push_back(r);
    if (!id.empty() && request.id.find(id) != std::string::npos) parts.push_back(r);
  }
  if (same.size() == 1) return RequestRow(same.front());
  const std::string asked = Printable(id.substr(0, kShownId));
  if (same.size() > 1) {
    return base::Error{
        base::Code::kNotFound,
        fmt::format("{} requests have the id \"{}\"; name one by its trace id (teller requests --json lists them)",
                    same.size(), asked)};
  }
  if (parts.size() == 1) return RequestRow(parts.front());
  std::string text = fmt::format("no request \"{}\" in this run", asked);
  if (parts.size() > 1) text = fmt::format("{} requests have \"{}\" in their id", parts.size(), asked);
  return base::Error{base::Code::kNotFound,
                     text + fmt::format("; there are {} (teller requests lists them)", run.trees.requests.size())};
}

std::string RequestToText(const engine::Run& run, RequestRow row, const TextOptions& options) {
  const Request& request = run.trees.requests[row.value()];
  Page page(options);
  page.Head("Request " + (request.id.empty() ? "(no id)" : request.id));
  if (!request.trace_id.empty()) page.Field("Trace", request.trace_id);
  page.Field(
      "Served",
      fmt::format("{}; TTFT {}, TPOT {}, end to end {}; {} prompt ({} cached) and {} output tokens{}{}",
                  request.arrival == trace::kNoTime ? "at a time that is not known" : "from " + Time(request.arrival),
                  Known(request.ttft), Known(request.tpot()), Known(request.e2e), KnownCount(request.prompt_tokens),
                  KnownCount(request.cached_tokens), KnownCount(request.output_tokens),
                  request.preemptions > 0 ? fmt::format("; preempted {} times", request.preemptions) : "",
                  request.at_error > 0 ? "; phases placed to within " + Duration(request.at_error) : ""));
  if (request.listed != Request::kNotListed)
    page.Field("Listed", ListedText(run, run.store.request_records[request.listed]));
  if (request.failed) page.Field("Failed", request.error, Ink::kRed);
  page.Field("Why", locate::RequestReason(run.trees, locate::LearnUsual(run.trees), row));
  AddPhases(request, page);
  if (!request.blocked_by.empty()) {
    page.Gap();
    page.Head("Held up by prompts of others");
    for (const trace::RequestBlock& block : request.blocked_by) page.Line(2, BlockText(run, block));
  }
  AddSteps(run, request, page);
  AddLines(run, request, page);
  return page.Take();
}

Json RequestToJson(const engine::Run& run, RequestRow row) {
  const Request& request = run.trees.requests[row.value()];
  Json out = {{"schema", "teller.request/1"}};
  out.update(HeadToJson(request));
  out["why"] = locate::RequestReason(run.trees, locate::LearnUsual(run.trees), row);
  out["listed"] = ListedToJson(run, request);
  Json steps = Json::array();
  for (const trace::RequestStep& part : request.steps) {
    const trace::Step& step = run.trees.steps[part.step.value()];
    steps.push_back({{"rank", step.rank ? Json(*step.rank) : Json(nullptr)},
                     {"index", step.index},
                     {"name", step.name},
                     {"begin_ns", step.begin},
                     {"end_ns", step.end},
                     {"prefill", part.prefill},
                     {"tokens", part.tokens},
                     {"inside_ns", part.inside},
                     {"share_ns", part.share}});
  }
  out["steps"] = std::move(steps);
  Json blocked = Json::array();
  for (const trace::RequestBlock& block : request.blocked_by) {
    blocked.push_back({{"by", block.by.valid() ? Json(run.trees.requests[block.by.value()].id) : Json(nullptr)},
                       {"duration_ns", block.duration},
                       {"prompt_tokens", OrNull(block.prompt_tokens)}});
  }
  out["blocked_by"] = std::move(blocked);
  Json lines = Json::array();
  for (const trace::LogRow line : request.logs) {
    const trace::LogRecord& log = run.store.logs[line.value()];
    lines.push_back(
        {{"file", log.file.value()}, {"line", log.line}, {"at_ns", JsonTime(log.at)}, {"message", log.message}});
  }
  out["logs"] = std::move(lines);
  return out;
}

}  // namespace teller::report
