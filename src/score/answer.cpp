#include "score/answer.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "score/json_file.hpp"

namespace teller::score {

using Json = nlohmann::ordered_json;

namespace {

/// A case with that many steps or suspects is no answer of a method that works.
constexpr size_t kMostEntries = 1'000'000;

base::Error Bad(const std::string& path, const std::string& what) {
  return {.code = base::Code::kBadFormat, .message = what, .path = path};
}

/// A finite number, or nothing.
std::optional<double> Number(const Json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_number()) return {};
  const double value = it->get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<int64_t> Whole(const Json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_number_integer()) return {};
  return it->get<int64_t>();
}

bool Flag(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_boolean() && it->get<bool>();
}

Json OrNull(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}
template <class T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

/// The list under a key; null when it is absent; an error text when it is something else.
const Json* List(const Json& object, const char* key, std::string& problem) {
  const auto it = object.find(key);
  if (it == object.end() || it->is_null()) return nullptr;
  if (!it->is_array() || it->size() > kMostEntries) {
    problem = fmt::format("\"{}\" is no list of at most {} entries", key, kMostEntries);
    return nullptr;
  }
  return &*it;
}

std::string ReadSteps(const Json& object, Answer& answer) {
  std::string problem;
  const Json* steps = List(object, "steps", problem);
  if (steps == nullptr) return problem;
  for (const Json& entry : *steps) {
    const auto step = entry.is_object() ? Whole(entry, "step") : std::nullopt;
    const auto score = entry.is_object() ? Number(entry, "score") : std::nullopt;
    if (!step || !score || *step < 0 || *step > UINT32_MAX) {
      return "an entry of \"steps\" has no \"step\" (number in the features) or no finite \"score\"";
    }
    answer.steps.push_back({static_cast<uint32_t>(*step), *score});
  }
  return {};
}

std::string ReadCandidates(const Json& object, Answer& answer) {
  std::string problem;
  const Json* candidates = List(object, "candidates", problem);
  if (candidates == nullptr) return problem;
  for (const Json& entry : *candidates) {
    if (!entry.is_object()) return "an entry of \"candidates\" is no object";
    answer.candidates.push_back({.rank = Whole(entry, "rank"),
                                 .process = Text(entry, "process"),
                                 .op = Text(entry, "op"),
                                 .module = Text(entry, "module"),
                                 .log_record = Text(entry, "log_record"),
                                 .fault_class = Text(entry, "class"),
                                 .p = Number(entry, "p").value_or(0),
                                 .saved_share = Number(entry, "saved_share"),
                                 .below_threshold = Flag(entry, "below_threshold")});
  }
  return {};
}

}  // namespace

std::string_view Name(AnswerStatus status) {
  switch (status) {
    case AnswerStatus::kNormal: return "normal";
    case AnswerStatus::kAbnormal: return "abnormal";
    case AnswerStatus::kAbstained: return "abstained";
  }
  return "abstained";
}

base::Result<Answer> ReadAnswer(const std::string& path) {
  auto object = ReadJsonObject(path);
  if (!object) return object.error();
  Answer answer;
  answer.name = Text(*object, "case");
  const std::string status = Text(*object, "status");
  bool known = false;
  for (const auto each : {AnswerStatus::kNormal, AnswerStatus::kAbnormal, AnswerStatus::kAbstained}) {
    if (status != Name(each)) continue;
    answer.status = each;
    known = true;
  }
  if (!known) return Bad(path, "\"status\" is none of normal, abnormal, abstained");
  answer.confidence = Number(*object, "confidence").value_or(0);
  if (answer.confidence < 0 || answer.confidence > 1) return Bad(path, "\"confidence\" is not from 0 to 1");
  answer.threshold = Number(*object, "threshold").value_or(answer.threshold);
  answer.wall_ns = Whole(*object, "wall_ns");
  answer.peak_bytes = Whole(*object, "peak_bytes");
  for (std::string problem : {ReadSteps(*object, answer), ReadCandidates(*object, answer)}) {
    if (!problem.empty()) return Bad(path, problem);
  }
  return answer;
}

Json ToJson(const Answer& answer) {
  Json steps = Json::array();
  for (const StepScore& step : answer.steps) steps.push_back({{"step", step.step}, {"score", step.score}});
  Json candidates = Json::array();
  for (const Candidate& c : answer.candidates) {
    candidates.push_back({{"rank", OrNull(c.rank)},
                          {"process", OrNull(c.process)},
                          {"op", OrNull(c.op)},
                          {"module", OrNull(c.module)},
                          {"log_record", OrNull(c.log_record)},
                          {"class", OrNull(c.fault_class)},
                          {"p", c.p},
                          {"saved_share", OrNull(c.saved_share)},
                          {"below_threshold", c.below_threshold}});
  }
  return {{"schema", "teller.answer/1"},
          {"case", answer.name},
          {"status", Name(answer.status)},
          {"confidence", answer.confidence},
          {"threshold", answer.threshold},
          {"steps", std::move(steps)},
          {"candidates", std::move(candidates)},
          {"wall_ns", OrNull(answer.wall_ns)},
          {"peak_bytes", OrNull(answer.peak_bytes)}};
}

std::string ToLine(const Answer& answer) {
  return ToJson(answer).dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

namespace {

Candidate CandidateOf(const trace::Culprit& culprit, trace::FaultClass fault, double p) {
  return {.rank = culprit.rank ? std::optional<int64_t>(*culprit.rank) : std::nullopt,
          .process = culprit.process,
          .op = culprit.op,
          .module = culprit.module,
          .log_record = culprit.log_record,
          .fault_class = std::string(trace::Name(fault)),
          .p = p};
}

}  // namespace

Answer AnswerOf(const trace::Diagnosis& diagnosis, const std::string& name) {
  Answer answer;
  answer.name = name;
  answer.confidence = std::isfinite(diagnosis.confidence) ? diagnosis.confidence : 0;
  if (diagnosis.status == trace::VerdictStatus::kNormal) answer.status = AnswerStatus::kNormal;
  if (diagnosis.status == trace::VerdictStatus::kAbnormal) answer.status = AnswerStatus::kAbnormal;
  std::map<uint32_t, double> scores;
  for (const trace::Finding& finding : diagnosis.findings) {
    answer.candidates.push_back(CandidateOf(finding.culprit, finding.fault, finding.score));
    answer.candidates.back().saved_share = finding.saved_share;
    for (const trace::AbnormalStep& step : finding.steps) {
      if (!step.row.valid()) continue;
      double& score = scores[step.row.value()];
      score = std::max(score, std::isfinite(step.score) ? step.score : 0);
    }
  }
  for (const auto& [step, score] : scores) answer.steps.push_back({step, score});
  // Suspects are no findings: they come behind all of them, and nothing else depends on them.
  double p = 0.5;
  for (const Candidate& candidate : answer.candidates) p = std::min(p, candidate.p);
  for (const trace::Suspect& suspect : diagnosis.suspects) {
    p /= 2;
    answer.candidates.push_back(CandidateOf(suspect.culprit, suspect.fault, p));
    answer.candidates.back().below_threshold = true;
  }
  // Every step that a finding names is called abnormal, however small its share in it.
  answer.threshold = 1e-9;
  return answer;
}

}  // namespace teller::score
