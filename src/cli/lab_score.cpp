#include "cli/lab_score.hpp"

#include <cstdlib>
#include <filesystem>

#include "cli/guarded.hpp"
#include "cli/lab_python.hpp"
#include "cli/talk.hpp"
#include "cli/terminal.hpp"
#include "inject/draft.hpp"
#include "report/diagnosis_json.hpp"
#include "score/json_file.hpp"
#include "score/method.hpp"
#include "score/score.hpp"
#include "score/show.hpp"

namespace teller::cli {

namespace fs = std::filesystem;

namespace {

/// "a,b" gives two; a text with a command stays whole.
std::vector<std::string> Split(const std::vector<std::string>& texts) {
  std::vector<std::string> out;
  for (const std::string& text : texts) {
    if (text.find('=') != std::string::npos) {
      out.push_back(text);
      continue;
    }
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find(',', begin), text.size());
      out.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return out;
}

/// Whether the laboratory knows those methods that are neither built in nor commands; it says itself when it does not.
bool KnowBaselines(const std::vector<std::string>& methods) {
  std::string names;
  for (const std::string& name : methods) {
    if (name != "teller" && score::IsMethodName(name)) names += " " + name;
  }
  const auto command = LabPythonCommand("lab.baselines known");
  return names.empty() || !command || std::system((*command + names).c_str()) == 0;
}

base::Status WriteResults(const score::Scores& scores, const std::string& text, const fs::path& folder,
                          bool keep_work) {
  TELLER_TRY(score::WriteText((folder / "scores.json").string(), report::JsonText(score::ScoresToJson(scores))));
  TELLER_TRY(score::WriteText((folder / "scores.txt").string(), text));
  TELLER_TRY(score::WriteText((folder / "scores.html").string(), score::ScoresToHtml(scores)));
  std::error_code error;
  if (!keep_work) fs::remove_all(folder / "work", error);
  return {};
}

score::ScoreOptions OptionsOf(const CommonOptions& common, const LabScoreOptions& what) {
  score::ScoreOptions options;
  options.roots = common.paths;
  options.methods = Split(what.methods.empty() ? std::vector<std::string>{"teller"} : what.methods);
  if (auto baselines = LabPythonCommand("lab.baselines run")) options.baselines = std::move(*baselines);
  options.split = what.split;
  options.seed = what.seed;
  options.resamples = what.resamples;
  options.workers = common.threads;
  options.timeout_s = what.timeout;
  options.shuffle_labels = what.shuffle_labels;
  options.retest = what.retest;
  options.keep_work = what.keep_work;
  options.reads = what.reads;
  return options;
}

/// The part of the work that leaves nothing behind when it is stopped.
int ScoreInto(const CommonOptions& common, const LabScoreOptions& what, const score::ScoreOptions& options) {
  auto draft = inject::Draft::Make(common.output);
  if (!draft) return Fail(draft.error().Text());
  const auto scores = score::ScoreCases(options, draft->path().string(), [&](const std::string& line) {
    if (!common.quiet) Say(line);
  });
  if (!scores) return Fail(scores.error().Text());
  const std::string text = score::ScoresToText(*scores);
  if (const auto written = WriteResults(*scores, text, draft->path(), what.keep_work); !written.ok())
    return Fail(written.error().Text());
  if (const auto kept = draft->Keep(); !kept.ok()) return Fail(kept.error().Text());
  auto output = Output::Open("");
  base::Status printed = output->Write(text);
  if (printed.ok()) printed = output->Close();
  if (!printed.ok()) return Fail(printed.error().Text());
  const std::string lost = score::LostText(*scores);
  if (lost.empty()) return kDone;
  if (!common.quiet) Say(lost);
  return kLostInput;
}

}  // namespace

int RunScore(const CommonOptions& common, const LabScoreOptions& what) {
  if (common.output.empty() || common.output == "-") return Fail("name the folder for the results with -o RESULTS");
  const score::ScoreOptions options = OptionsOf(common, what);
  if (!KnowBaselines(options.methods)) return kFailed;
  return Guarded([&] { return ScoreInto(common, what, options); });
}

}  // namespace teller::cli
