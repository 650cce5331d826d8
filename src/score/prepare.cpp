#include "score/prepare.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "base/rng.hpp"
#include "engine/engine.hpp"
#include "report/features.hpp"
#include "score/children.hpp"
#include "score/copies.hpp"
#include "score/json_file.hpp"

namespace teller::score {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

namespace {

std::string FeaturesPath(const std::string& work, const std::string& name) {
  return (fs::path(work) / "features" / (name + ".jsonl")).string();
}

base::Status SaveFeatures(const engine::Run& run, const fs::path& path, bool steps_only) {
  std::ofstream out(path, std::ios::binary);
  const auto write = [&](std::string_view text) -> base::Status {
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
    return {};
  };
  const base::Status written = report::WriteFeatures(run, write, steps_only);
  out.close();
  if (!out) return base::Error{base::Code::kUnreadable, "cannot be written", path.string()};
  return written;
}

/// All that is done with one case; runs in a process of its own.
base::Status ReadCase(const Truth& truth, const std::string& name, const PrepareOptions& options) {
  const fs::path copy = fs::path(options.work) / "cases" / name;
  TELLER_TRY(CopyInputs(truth.folder, copy, !options.keep_copies));
  engine::Options open;
  open.inputs.paths = {copy.string()};
  open.threads = 1;
  const auto begin = Clock::now();
  const auto run = engine::Open(open);
  if (!run) return run.error();
  Answer answer;
  if (!options.answers.empty()) answer = AnswerOf(engine::Diagnose(*run, open), name);
  answer.wall_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
  if (!options.answers.empty()) {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    answer.peak_bytes = int64_t{usage.ru_maxrss} * 1024;
    TELLER_TRY(WriteText((fs::path(options.answers) / (name + ".json")).string(), ToLine(answer)));
  }
  TELLER_TRY(SaveFeatures(*run, FeaturesPath(options.work, name), options.steps_only));
  std::error_code error;
  if (!options.keep_copies) fs::remove_all(copy, error);
  return {};
}

fs::path ProblemPath(const PrepareOptions& options, const std::string& name) {
  return fs::path(options.work) / "problems" / name;
}

/// Exit status of a reading that failed and could not write down why.
constexpr int kUnsaid = 2;

int Child(const Truth& truth, const std::string& name, const PrepareOptions& options) {
  int status = 1;
  std::string problem = "not enough memory";
  try {
    const base::Status done = ReadCase(truth, name, options);
    status = done.ok() ? 0 : 1;
    problem = done.ok() ? "" : done.error().Text();
  } catch (const std::bad_alloc&) {
    // Said by the text above.
  } catch (const std::exception& error) {
    problem = error.what();
  }
  if (status != 0 && !WriteText(ProblemPath(options, name).string(), problem).ok()) status = kUnsaid;
  return status;
}

/// What a reading that failed wrote down; empty when it did not come to that.
std::string WrittenProblem(const PrepareOptions& options, const std::string& name) {
  std::ifstream in(ProblemPath(options, name));
  std::string text;
  std::getline(in, text);
  return text;
}

std::string ProblemOf(int status, const ChildLimits& limits, const std::string& written) {
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0 && !written.empty()) return written;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kUnsaid)
    return "what came of it cannot be written: no space, or no permission";
  return EndText(status, limits);
}

/// The steps at the beginning of a features file.
std::vector<ReadStep> ReadSteps(const std::string& path) {
  std::vector<ReadStep> steps;
  std::ifstream in(path);
  std::string line;
  while (std::getline(in, line)) {
    const Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!object.is_object()) break;
    const std::string type = object.value("type", "");
    if (type == "run") continue;
    if (type != "step") break;
    ReadStep step;
    if (object["rank"].is_number()) step.rank = object["rank"].get<int64_t>();
    step.index = object.value("index", 0u);
    step.kind = object.value("kind", "");
    if (object["begin_ns"].is_number()) step.begin = object["begin_ns"].get<int64_t>();
    if (object["end_ns"].is_number()) step.end = object["end_ns"].get<int64_t>();
    step.gap = object.value("gap_ns", int64_t{-1});
    step.observer = object.value("observer", false);
    steps.push_back(step);
  }
  return steps;
}

}  // namespace

std::vector<std::string> NeutralNames(size_t count, uint64_t seed) {
  std::vector<uint32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0u);
  base::Rng rng(seed);
  for (size_t i = count; i > 1; --i) std::swap(numbers[i - 1], numbers[rng.Below(i)]);
  std::vector<std::string> names;
  for (const uint32_t number : numbers) names.push_back(fmt::format("case-{:05}", number));
  return names;
}

base::Result<std::vector<Prepared>> PrepareCases(const std::vector<Truth>& cases, const std::vector<std::string>& names,
                                                 const PrepareOptions& options) {
  std::error_code error;
  for (const char* folder : {"cases", "features", "problems"}) {
    fs::create_directories(fs::path(options.work) / folder, error);
    if (error) return CannotWrite(fs::path(options.work) / folder, error);
  }
  const ChildLimits limits{.workers = options.workers, .timeout_s = options.timeout_s, .memory = options.memory};
  const auto statuses = InChildren(cases.size(), limits, [&](size_t i) { return Child(cases[i], names[i], options); });
  if (!statuses) return statuses.error();
  std::vector<Prepared> out(cases.size());
  for (size_t i = 0; i < out.size(); ++i) {
    out[i].name = names[i];
    out[i].problem = ProblemOf((*statuses)[i], limits, WrittenProblem(options, names[i]));
  }
  for (Prepared& prepared : out) prepared.steps = ReadSteps(FeaturesPath(options.work, prepared.name));
  return out;
}

std::vector<Prepared> PreparedBefore(const std::vector<std::string>& names, const std::string& work) {
  const PrepareOptions options{.work = work, .answers = {}};
  std::vector<Prepared> out;
  for (const std::string& name : names) {
    Prepared prepared{.name = name, .problem = WrittenProblem(options, name), .steps = {}};
    std::error_code error;
    if (prepared.problem.empty() && !fs::exists(FeaturesPath(work, name), error))
      prepared.problem = "could not be read when it was";
    prepared.steps = ReadSteps(FeaturesPath(work, name));
    out.push_back(std::move(prepared));
  }
  return out;
}

}  // namespace teller::score
