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

fs::path ResultPath(const std::string& folder, const std::string& name) {
  return fs::path(folder) / (name + ".json");
}

locate::Accusation Accuse(const Verdict& verdict, const std::string& op) {
  return {.rank = verdict.rank, .op = op, .steps = verdict.steps};
}

/// All that is done with one case; runs in a process of its own.
base::Status TestCase(const Accused& accused, const std::string& folder) {
  const fs::path copy = fs::path(folder) / accused.name;
  TELLER_TRY(CopyInputs(accused.truth->folder, copy, /*link=*/true));
  engine::Options open;
  open.inputs.paths = {copy.string()};
  open.threads = 1;
  const auto run = engine::Open(open);
  std::error_code ignored;
  fs::remove_all(copy, ignored);
  if (!run) return run.error();
  std::vector<locate::Accusation> accusations;
  for (const auto& verdict : accused.verdicts) {
    if (!verdict) continue;
    accusations.push_back(Accuse(*verdict, ""));
    if (!verdict->op.empty()) accusations.push_back(Accuse(*verdict, verdict->op));
  }
  Json shares = Json::array();
  for (const auto& share : engine::Restored(*run, accusations)) shares.push_back(share ? Json(*share) : Json(nullptr));
  return WriteText(ResultPath(folder, accused.name).string(), Json{{"shares", shares}}.dump());
}

std::vector<Retested> ReadCase(const Accused& accused, const std::string& folder) {
  std::vector<Retested> out;
  const auto result = ReadJsonObject(ResultPath(folder, accused.name).string());
  size_t next = 0;
  const auto take = [&]() -> std::optional<double> {
    if (!result || !result->contains("shares") || next >= (*result)["shares"].size()) return {};
    const Json& share = (*result)["shares"][next++];
    return share.is_number() ? std::optional(share.get<double>()) : std::nullopt;
  };
  for (const auto& verdict : accused.verdicts) {
    Retested& tested = out.emplace_back();
    if (!verdict) continue;
    tested.asked = true;
    tested.rank = take();
    if (!verdict->op.empty()) tested.op = take();
  }
  return out;
}

}  // namespace

std::optional<Verdict> VerdictOf(const Answer& answer, const std::vector<ReadStep>& steps) {
  const bool accuses = !answer.candidates.empty() && !answer.candidates.front().below_threshold;
  if (answer.status != AnswerStatus::kAbnormal || !accuses) return {};
  const Candidate& first = answer.candidates.front();
  std::set<uint32_t> flagged;
  std::set<uint32_t> indices;
  for (const StepScore& step : answer.steps) {
    if (step.step >= steps.size() || step.score < answer.threshold) continue;
    flagged.insert(step.step);
    indices.insert(steps[step.step].index);
  }
  Verdict verdict{.rank = first.rank, .op = first.op, .steps = {}};
  for (uint32_t s = 0; s < steps.size(); ++s) {
    // A step of the job is one of all ranks: whoever of them it was flagged for, the accused rank's own is tested.
    const bool accused = first.rank ? steps[s].rank == first.rank && indices.contains(steps[s].index) : flagged.contains(s);
    if (accused) verdict.steps.push_back(s);
  }
  return verdict;
}

base::Result<std::vector<std::vector<Retested>>> Retest(const std::vector<Accused>& cases, const std::string& folder,
                                                        const ChildLimits& limits) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return base::Error{.code = base::Code::kUnreadable, .message = "cannot be made: " + error.message(), .path = folder};
  const auto statuses =
      InChildren(cases.size(), limits, [&](size_t i) { return TestCase(cases[i], folder).ok() ? 0 : 1; });
  if (!statuses) return statuses.error();
  std::vector<std::vector<Retested>> out;
  out.reserve(cases.size());
  for (const Accused& accused : cases) out.push_back(ReadCase(accused, folder));
  return out;
}

}  // namespace teller::score
