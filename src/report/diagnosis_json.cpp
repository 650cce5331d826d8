#include "report/diagnosis_json.hpp"

#include <map>

#include "report/clock.hpp"
#include "report/summary.hpp"
#include "report/version.hpp"

namespace teller::report {

using Json = nlohmann::ordered_json;

namespace {

Json OrNull(const std::optional<int>& value) {
  return value ? Json(*value) : Json(nullptr);
}
Json OrNull(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}
Json OrNull(base::FileRow file) {
  return file.valid() ? Json(file.value()) : Json(nullptr);
}

Json Input(const engine::Run& run) {
  const Summary summary = Summarize(run);
  std::map<uint32_t, uint64_t> reports;
  for (const base::Diagnostic& d : run.store.diagnostics.All()) {
    if (d.file.valid()) reports[d.file.value()] += d.count;
  }
  Json files = Json::array();
  for (size_t i = 0; i < run.store.files.size(); ++i) {
    const trace::File& file = run.store.files[i];
    files.push_back({{"path", file.path},
                     {"kind", file.kind},
                     {"rank", OrNull(file.rank)},
                     {"spans", file.spans},
                     {"log_records", file.log_records},
                     {"requests", file.requests},
                     {"counters", file.counters},
                     {"records_read", file.records_read},
                     {"dropped", file.dropped},
                     {"bytes", file.bytes},
                     {"diagnostics", reports[static_cast<uint32_t>(i)]},
                     {"note", OrNull(file.note)}});
  }
  const Json clock = ClockToJson(run, summary.clock_domain);
  const bool related = !run.trees.log_clock_method.empty();
  const Json log_clock = {{"error_ns", related ? Json(run.trees.log_clock_error) : Json(nullptr)},
                          {"method", OrNull(run.trees.log_clock_method)},
                          {"records_in_steps", run.trees.logs_in_steps}};
  return {{"files", files},
          {"ranks", summary.ranks},
          {"steps", summary.steps},
          {"requests", summary.requests > 0 ? Json(summary.requests) : Json(nullptr)},
          {"spans", summary.spans},
          {"log_records", summary.log_records},
          {"begin_ns", JsonTime(summary.begin)},
          {"end_ns", JsonTime(summary.end)},
          {"clock", clock},
          {"log_clock", log_clock}};
}

Json Verdict(const trace::Diagnosis& diagnosis) {
  Json verdict = {{"status", Name(diagnosis.status)}, {"confidence", nullptr},   {"class", nullptr},
                  {"summary", diagnosis.summary},     {"first_action", nullptr}, {"missing", diagnosis.missing}};
  if (diagnosis.status == trace::VerdictStatus::kNormal) return verdict;
  const trace::FaultClass fault =
      diagnosis.findings.empty() ? trace::FaultClass::kUnknown : diagnosis.findings.front().fault;
  verdict["confidence"] = diagnosis.confidence;
  verdict["class"] = Name(fault);
  if (!diagnosis.findings.empty()) {
    verdict["first_action"] = FirstAction(fault);
  } else if (!diagnosis.missing.empty()) {
    verdict["first_action"] = diagnosis.missing.front();
  }
  return verdict;
}

Json Steps(const std::vector<trace::AbnormalStep>& steps) {
  Json out = Json::array();
  for (const trace::AbnormalStep& step : steps) {
    out.push_back({{"rank", OrNull(step.rank)},
                   {"index", step.index},
                   {"name", step.name},
                   {"begin_ns", JsonTime(step.begin)},
                   {"end_ns", JsonTime(step.end)},
                   {"score", step.score}});
  }
  return out;
}

Json EvidenceList(const trace::Store& store, const std::vector<trace::Evidence>& list) {
  Json out = Json::array();
  for (const trace::Evidence& evidence : list) {
    out.push_back({{"id", evidence.id},
                   {"kind", Name(evidence.kind)},
                   {"file", OrNull(evidence.file)},
                   {"ref", OrNull(EvidenceRef(store, evidence))},
                   {"at_ns", JsonTime(evidence.at)},
                   {"text", evidence.text}});
  }
  return out;
}

Json CulpritToJson(const trace::Culprit& culprit) {
  return {{"rank", OrNull(culprit.rank)},
          {"process", OrNull(culprit.process)},
          {"thread", OrNull(culprit.thread)},
          {"layer", OrNull(culprit.layer)},
          {"op", OrNull(culprit.op)},
          {"module", OrNull(culprit.module)},
          {"log_record", OrNull(culprit.log_record)}};
}

Json FindingToJson(const trace::Store& store, const trace::Finding& finding) {
  Json alternatives = Json::array();
  for (const trace::Alternative& a : finding.alternatives) {
    alternatives.push_back({{"class", Name(a.fault)}, {"p", a.p}});
  }
  Json victims = Json::array();
  for (const trace::Victim& v : finding.victims) victims.push_back({{"rank", OrNull(v.rank)}, {"what", v.what}});
  Json without = nullptr;
  if (finding.step_without || finding.step_observed) {
    without = {{"step_ns", finding.step_without ? Json(*finding.step_without) : Json(nullptr)},
               {"observed_ns", finding.step_observed ? Json(*finding.step_observed) : Json(nullptr)},
               {"saved_share", finding.saved_share ? Json(*finding.saved_share) : Json(nullptr)}};
  }
  return {{"id", finding.id},
          {"score", finding.score},
          {"false_alarm_probability", finding.false_alarm_probability},
          {"class", Name(finding.fault)},
          {"alternatives", alternatives},
          {"view", OrNull(finding.view)},
          {"culprit", CulpritToJson(finding.culprit)},
          {"onset_ns", JsonTime(finding.onset)},
          {"end_ns", JsonTime(finding.end)},
          {"steps", Steps(finding.steps)},
          {"victims", victims},
          {"cost_ns", JsonTime(finding.cost)},
          {"without_it", without},
          {"evidence", EvidenceList(store, finding.evidence)},
          {"first_action", FirstAction(finding.fault)},
          {"explanation", finding.explanation}};
}

Json SuspectToJson(const trace::Suspect& suspect) {
  const auto& p = suspect.false_alarm_probability;
  return {{"class", Name(suspect.fault)},
          {"view", OrNull(suspect.view)},
          {"culprit", CulpritToJson(suspect.culprit)},
          {"false_alarm_probability", p ? Json(*p) : Json(nullptr)},
          {"cost_ns", suspect.lost},
          {"steps", Steps(suspect.steps)},
          {"text", suspect.text}};
}

}  // namespace

Json JsonTime(base::Nanos at) {
  return at == base::kNoTime ? Json(nullptr) : Json(at);
}

Json DiagnosticsToJson(const trace::Store& store) {
  Json out = Json::array();
  for (const base::Diagnostic& d : store.diagnostics.All()) {
    out.push_back({{"code", d.kind->code},
                   {"severity", Name(d.kind->severity)},
                   {"file", OrNull(d.file)},
                   {"at", d.places.empty() ? Json(nullptr) : Json(d.places.front())},
                   {"count", d.count},
                   {"text", d.kind->text},
                   {"places", d.places}});
  }
  return out;
}

Json DiagnosisToJson(const engine::Run& run, const trace::Diagnosis& diagnosis, bool all) {
  Json findings = Json::array();
  const size_t shown = ShownFindings(diagnosis, all);
  for (size_t i = 0; i < shown; ++i) findings.push_back(FindingToJson(run.store, diagnosis.findings[i]));
  Json suspects = Json::array();
  for (const trace::Suspect& suspect : diagnosis.suspects) suspects.push_back(SuspectToJson(suspect));
  Json notes = Json::array();
  for (const trace::Note& note : diagnosis.notes) {
    notes.push_back({{"text", note.text}, {"begin_ns", JsonTime(note.begin)}, {"end_ns", JsonTime(note.end)}});
  }
  Json not_given = Json::array();
  for (const trace::NotGiven& n : diagnosis.not_given) not_given.push_back({{"input", n.input}, {"cost", n.cost}});
  return {{"schema", "teller.diagnosis/1"},
          {"teller", {{"version", kVersion}, {"model", "numeric"}}},
          {"input", Input(run)},
          {"verdict", Verdict(diagnosis)},
          {"findings", findings},
          {"findings_total", diagnosis.findings.size()},
          {"suspects", suspects},
          {"notes", notes},
          {"not_given", not_given},
          {"diagnostics", DiagnosticsToJson(run.store)}};
}

std::string JsonText(const Json& value) {
  // Plain ASCII: control characters and direction marks of the input do nothing on a terminal.
  return value.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace teller::report
