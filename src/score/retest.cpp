#include "score/retest.hpp"

#include <filesystem>
#include <set>

#include "engine/engine.hpp"
#include "score/copies.hpp"
#include "score/json_file.hpp"

namespace teller::score {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

fs::path CopyPath(const std::string& folder, const std::string& name) {
  return fs::path(folder) / name;
}

fs::path ResultPath(const std::string& folder, const std::string& name) {
  return fs::path(folder) / (name + ".json");
}

/// What is accused by a verdict, in the order in which it is tested.
std::vector<locate::Accusation> Accusations(const Verdict& verdict) {
  std::vector<locate::Accusation> out;
  if (verdict.rank) out.push_back({.rank = verdict.rank, .op = {}, .steps = verdict.steps});
  if (!verdict.op.empty()) out.push_back({.rank = verdict.rank, .op = verdict.op, .steps = verdict.steps});
  return out;
}

base::Result<std::vector<std::optional<double>>> TestCase(const Accused& accused, const std::string& folder) {
  const fs::path copy = CopyPath(folder, accused.name);
  TELLER_TRY(CopyInputs(accused.truth->folder, copy, /*link=*/true));
  engine::Options open;
  open.inputs.paths = {copy.string()};
  open.threads = 1;
  const auto run = engine::Open(open);
  if (!run) return run.error();
  std::vector<locate::Accusation> accusations;
  for (const auto& verdict : accused.verdicts) {
    if (!verdict) continue;
    for (auto& accusation : Accusations(*verdict)) accusations.push_back(std::move(accusation));
  }
  return engine::Restored(*run, accusations);
}

/// All that is done with one case; runs in a process of its own. Its status.
int Child(const Accused& accused, const std::string& folder) {
  const auto shares = TestCase(accused, folder);
  Json result{{"problem", shares ? "" : shares.error().Text()}, {"shares", Json::array()}};
  if (shares) {
    for (const auto& share : *shares) result["shares"].push_back(share ? Json(*share) : Json(nullptr));
  }
  const std::string path = ResultPath(folder, accused.name).string();
  return WriteText(path, result.dump(-1, ' ', true, Json::error_handler_t::replace)).ok() ? 0 : 1;
}

CaseRetest ReadCase(const Accused& accused, const std::string& folder, const std::string& end) {
  CaseRetest out{.verdicts = std::vector<Retested>(accused.verdicts.size()), .problem = end};
  if (!end.empty()) return out;
  const auto result = ReadJsonObject(ResultPath(folder, accused.name).string());
  out.problem = result ? Text(*result, "problem") : result.error().Text();
  if (!out.problem.empty()) return out;
  const Json& shares = (*result)["shares"];
  size_t next = 0;
  const auto take = [&]() -> std::optional<double> {
    const Json& share = shares.at(next++);
    return share.is_number() ? std::optional(share.get<double>()) : std::nullopt;
  };
  for (size_t v = 0; v < accused.verdicts.size(); ++v) {
    const auto& verdict = accused.verdicts[v];
    Retested& tested = out.verdicts[v];
    tested.asked_rank = verdict && verdict->rank;
    tested.asked_op = verdict && !verdict->op.empty();
    if (tested.asked_rank) tested.rank = take();
    if (tested.asked_op) tested.op = take();
  }
  return out;
}

}  // namespace

std::optional<Verdict> VerdictOf(const Answer& answer, const std::vector<ReadStep>& steps) {
  const bool accuses = !answer.candidates.empty() && !answer.candidates.front().below_threshold;
  if (answer.status != AnswerStatus::kAbnormal || !accuses) return {};
  const Candidate& first = answer.candidates.front();
  if (!first.rank && first.op.empty()) return {};
  std::set<uint32_t> own;      // flagged steps of the accused
  std::set<uint32_t> indices;  // of flagged steps that some rank took
  for (const StepScore& step : answer.steps) {
    if (step.step >= steps.size() || step.score < answer.threshold) continue;
    if (!first.rank || steps[step.step].rank == first.rank) own.insert(step.step);
    if (steps[step.step].rank) indices.insert(steps[step.step].index);
  }
  const bool elsewhere = own.empty();
  for (uint32_t s = 0; elsewhere && s < steps.size(); ++s) {
    if (steps[s].rank == first.rank && indices.contains(steps[s].index)) own.insert(own.end(), s);
  }
  return Verdict{.rank = first.rank, .op = first.op, .steps = {own.begin(), own.end()}};
}

base::Result<std::vector<CaseRetest>> Retest(const std::vector<Accused>& cases, const std::string& folder,
                                             const ChildLimits& limits) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return CannotWrite(folder, error);
  const auto statuses = InChildren(cases.size(), limits, [&](size_t i) { return Child(cases[i], folder); });
  if (!statuses) return statuses.error();
  std::vector<CaseRetest> out;
  for (size_t i = 0; i < cases.size(); ++i) {
    out.push_back(ReadCase(cases[i], folder, EndText((*statuses)[i], limits)));
    fs::remove_all(CopyPath(folder, cases[i].name), error);
  }
  return out;
}

}  // namespace teller::score
