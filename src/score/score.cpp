#include "score/score.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <tuple>

#include "base/rng.hpp"
#include "inject/check.hpp"
#include "inject/draft.hpp"
#include "score/json_file.hpp"
#include "score/reads.hpp"
#include "score/retest.hpp"

namespace teller::score {

namespace fs = std::filesystem;

namespace {

int64_t Since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin).count();
}

class Scorer {
 public:
  Scorer(const ScoreOptions& options, const std::string& folder, const std::function<void(const std::string&)>& say)
      : folder_(folder), say_(say) {
    scores_.options = options;
  }

  base::Result<Scores> Run() {
    const auto begin = std::chrono::steady_clock::now();
    auto methods = ParseMethods(scores_.options.methods, scores_.options.baselines);
    if (!methods) return methods.error();
    TELLER_TRY(ReadCases());
    auto folds = SplitCases(scores_.cases, scores_.options.split, scores_.options.seed);
    if (!folds) return folds.error();
    scores_.folds = std::move(*folds);
    for (const Fold& fold : scores_.folds)
      scores_.asked.insert(scores_.asked.end(), fold.test.begin(), fold.test.end());
    std::sort(scores_.asked.begin(), scores_.asked.end());
    if (scores_.asked.empty()) return base::Error{.code = base::Code::kUsage, .message = "this split asks no case"};
    TELLER_TRY(Prepare(*methods));
    for (Method& method : *methods) {
      MethodScore score;
      score.method = std::move(method);
      if (!score.method.command.empty()) TELLER_TRY(Ask(score));
      scores_.methods.push_back(std::move(score));
    }
    for (MethodScore& score : scores_.methods) JudgeAnswers(score);
    if (scores_.options.retest) TELLER_TRY(TestVerdicts());
    for (MethodScore& score : scores_.methods) Compare(score);
    CompareAll();
    TELLER_TRY(CheckAnswers());
    scores_.wall_ns = Since(begin);
    return std::move(scores_);
  }

 private:
  base::Status ReadCases() {
    const auto found = inject::FindCases(scores_.options.roots);
    if (!found) return found.error();
    for (const std::string& folder : *found) {
      auto truth = ReadTruth(folder);
      if (!truth) return truth.error();
      scores_.cases.push_back(std::move(*truth));
    }
    scores_.names = NeutralNames(scores_.cases.size(), scores_.options.seed);
    say_(fmt::format("{} cases", scores_.cases.size()));
    return {};
  }

  std::string Answers(const std::string& method) const { return (fs::path(folder_) / "answers" / method).string(); }
  std::string Work() const { return (fs::path(folder_) / "work").string(); }

  /// Where the features of the cases lie.
  std::string Reads() const { return scores_.options.reads.empty() ? Work() : scores_.options.reads; }

  /// True when an earlier run has read these cases, and then takes what it read.
  base::Result<bool> TakeReads(const std::vector<Method>& methods) {
    if (scores_.options.reads.empty()) return false;
    for (const Method& method : methods) {
      if (method.command.empty() || method.wants_copies) {
        return base::Error{.code = base::Code::kUsage,
                           .message = "--reads is for baselines alone; " + method.name + " reads the cases itself"};
      }
    }
    auto names = NamesRead(Reads(), scores_.cases);
    if (!names) return names.error();
    if (!*names) return false;
    scores_.names = std::move(**names);
    prepared_ = PreparedBefore(scores_.names, Reads());
    return true;
  }

  base::Status Prepare(const std::vector<Method>& methods) {
    const auto begin = std::chrono::steady_clock::now();
    const auto taken = TakeReads(methods);
    if (!taken) return taken.error();
    std::optional<inject::Draft> reads;
    if (!*taken && !scores_.options.reads.empty()) {
      std::error_code ignored;
      fs::remove(Reads(), ignored);  // an empty folder; another is none of ours, and refused
      auto made = inject::Draft::Make(Reads());
      if (!made) return made.error();
      reads.emplace(std::move(*made));
    }
    PrepareOptions options{.work = reads ? reads->path().string() : Reads(),
                           .answers = {},
                           .workers = scores_.options.workers,
                           .timeout_s = scores_.options.timeout_s,
                           .memory = scores_.options.memory,
                           .keep_copies = scores_.options.keep_work,
                           .steps_only = !scores_.options.keep_work};
    std::error_code error;
    for (const Method& method : methods) {
      fs::create_directories(Answers(method.name), error);
      if (error)
        return base::Error{base::Code::kUnreadable, "cannot be made: " + error.message(), Answers(method.name)};
      if (method.command.empty()) options.answers = Answers(method.name);
      options.keep_copies |= method.wants_copies;
      options.steps_only &= method.command.empty();
    }
    if (!*taken) {
      auto prepared = PrepareCases(scores_.cases, scores_.names, options);
      if (!prepared) return prepared.error();
      prepared_ = std::move(*prepared);
      if (reads) {
        TELLER_TRY(NoteReads(reads->path().string(), scores_.cases, scores_.names));
        TELLER_TRY(reads->Keep());
      }
    }
    for (size_t i = 0; i < prepared_.size(); ++i) {
      if (!prepared_[i].problem.empty())
        scores_.problems.push_back(scores_.cases[i].folder + ": " + prepared_[i].problem);
    }
    scores_.prepare_ns = Since(begin);
    say_(fmt::format("read in {:.1f} s", static_cast<double>(scores_.prepare_ns) / 1e9));
    return {};
  }

  /// Whose truth is told in the place of each lesson's own: its own, or, when labels are shuffled, that of another run
  /// of its kind (source, stack, ranks; re-timed cases: recording). What the kind of run alone tells stays; all else is
  /// a leak.
  std::vector<uint32_t> Tellers(const Fold& fold) const {
    std::vector<uint32_t> teller = fold.train;
    if (!scores_.options.shuffle_labels) return teller;
    base::Rng rng(scores_.options.seed);
    std::map<std::tuple<std::string, std::string, int64_t, std::string>, std::vector<size_t>> kinds;
    for (size_t i = 0; i < teller.size(); ++i) {
      const Truth& truth = scores_.cases[teller[i]];
      kinds[{truth.source, truth.label.stack, truth.label.world_size, RecordingOf(truth)}].push_back(i);
    }
    for (const auto& [kind, places] : kinds) {
      for (size_t i = places.size(); i > 1; --i) std::swap(teller[places[i - 1]], teller[places[rng.Below(i)]]);
    }
    return teller;
  }

  std::vector<Lesson> Lessons(const Fold& fold) const {
    const std::vector<uint32_t> tellers = Tellers(fold);
    base::Rng rng(scores_.options.seed + 1);
    std::vector<Lesson> lessons;
    for (size_t i = 0; i < fold.train.size(); ++i) {
      Lesson lesson{.name = scores_.names[fold.train[i]],
                    .truth = &scores_.cases[tellers[i]],
                    .abnormal_steps = {},
                    .ignored_steps = {}};
      auto verdicts = JudgeSteps(*lesson.truth, prepared_[tellers[i]].steps);
      verdicts.resize(prepared_[fold.train[i]].steps.size(), StepTruth::kIgnored);
      // Faults like the middle of a run: without this the place of the steps would still be true.
      if (scores_.options.shuffle_labels) {
        for (size_t k = verdicts.size(); k > 1; --k) std::swap(verdicts[k - 1], verdicts[rng.Below(k)]);
      }
      for (uint32_t s = 0; s < verdicts.size(); ++s) {
        if (verdicts[s] == StepTruth::kAbnormal) lesson.abnormal_steps.push_back(s);
        if (verdicts[s] == StepTruth::kIgnored) lesson.ignored_steps.push_back(s);
      }
      lessons.push_back(std::move(lesson));
    }
    return lessons;
  }

  /// Runs an outside method on every fold and gathers its answers.
  base::Status Ask(MethodScore& score) {
    std::vector<uint32_t> folds;
    std::vector<std::string> tasks;
    const auto folder = [&](uint32_t fold) {
      return (fs::path(Work()) / "methods" / score.method.name / std::to_string(fold)).string();
    };
    for (uint32_t f = 0; f < scores_.folds.size(); ++f) {
      const Fold& fold = scores_.folds[f];
      std::vector<std::string> asked;
      for (const uint32_t i : fold.test) asked.push_back(scores_.names[i]);
      std::sort(asked.begin(), asked.end());
      if (asked.empty()) continue;
      auto task = WriteTask(Reads(), folder(f), Lessons(fold), asked, scores_.options.seed);
      if (!task) return task.error();
      folds.push_back(f);
      tasks.push_back(std::move(*task));
    }
    const size_t at_once = score.method.all_folds ? folds.size() : 1;
    for (size_t first = 0; first < folds.size(); first += at_once) {
      const auto begin = static_cast<std::ptrdiff_t>(first);
      size_t asked = 0;
      for (size_t k = first; k < first + at_once; ++k) asked += scores_.folds[folds[k]].test.size();
      const auto run =
          RunMethod(score.method, {tasks.begin() + begin, tasks.begin() + begin + static_cast<std::ptrdiff_t>(at_once)},
                    std::chrono::seconds(asked * scores_.options.timeout_s));
      if (!run) return run.error();
      score.wall_ns += run->wall_ns;
      if (!run->problem.empty()) {
        const std::string& name = scores_.folds[folds[first]].name;
        score.problems.push_back(fmt::format("{}: {}", at_once == 1 ? name : "all folds", run->problem));
      }
      for (size_t k = first; k < first + at_once; ++k) {
        const Fold& fold = scores_.folds[folds[k]];
        if (auto remarks = RemarksOf(folder(folds[k])); !remarks.is_null())
          score.remarks[fold.name] = std::move(remarks);
        for (const uint32_t i : fold.test)
          Gather(score, fs::path(folder(folds[k])) / "answers" / (scores_.names[i] + ".json"), i, *run, asked);
      }
    }
    say_(fmt::format("{} in {:.1f} s", score.method.name, static_cast<double>(score.wall_ns) / 1e9));
    return {};
  }

  void Gather(MethodScore& score, const fs::path& path, uint32_t index, const MethodRun& run, size_t asked) {
    std::error_code error;
    if (!fs::exists(path, error)) return;
    auto answer = ReadAnswer(path.string());
    if (!answer) {
      score.problems.push_back(scores_.names[index] + ": " + answer.error().message);
      return;
    }
    if (answer->name != scores_.names[index]) {
      score.problems.push_back(scores_.names[index] + ": the answer names another case");
      return;
    }
    if (!answer->wall_ns) answer->wall_ns = run.wall_ns / static_cast<int64_t>(asked);
    if (!answer->peak_bytes) answer->peak_bytes = run.peak_bytes;
    const std::string kept = (fs::path(Answers(score.method.name)) / (scores_.names[index] + ".json")).string();
    if (const auto written = WriteText(kept, ToLine(*answer)); !written.ok())
      score.problems.push_back(written.error().Text());
  }

  base::Result<Answer> AnswerTo(const MethodScore& score, uint32_t index) const {
    return ReadAnswer((fs::path(Answers(score.method.name)) / (scores_.names[index] + ".json")).string());
  }

  void JudgeAnswers(MethodScore& score) const {
    for (const uint32_t i : scores_.asked) {
      const auto answer = AnswerTo(score, i);
      score.unanswered += !answer;
      score.judged.push_back(Judge(scores_.cases[i], prepared_[i].steps, answer ? &*answer : nullptr));
    }
  }

  /// What re-timing says of every verdict about a fault.
  base::Status TestVerdicts() {
    const auto begin = std::chrono::steady_clock::now();
    std::vector<Accused> accused;
    std::vector<size_t> places;  // in `asked`
    for (size_t k = 0; k < scores_.asked.size(); ++k) {
      const uint32_t i = scores_.asked[k];
      if (!scores_.cases[i].label.is_fault || !prepared_[i].problem.empty()) continue;
      Accused one{.truth = &scores_.cases[i], .name = scores_.names[i], .verdicts = {}};
      for (const MethodScore& score : scores_.methods) {
        const auto answer = AnswerTo(score, i);
        one.verdicts.push_back(answer ? VerdictOf(*answer, prepared_[i].steps) : std::nullopt);
      }
      if (std::none_of(one.verdicts.begin(), one.verdicts.end(), [](const auto& v) { return v.has_value(); })) continue;
      places.push_back(k);
      accused.push_back(std::move(one));
    }
    const ChildLimits limits{.workers = scores_.options.workers,
                             .timeout_s = scores_.options.timeout_s * static_cast<unsigned>(scores_.methods.size()),
                             .memory = scores_.options.memory};
    const auto tested = Retest(accused, (fs::path(Work()) / "retests").string(), limits);
    if (!tested) return tested.error();
    for (size_t a = 0; a < accused.size(); ++a) {
      for (size_t m = 0; m < scores_.methods.size(); ++m)
        scores_.methods[m].judged[places[a]].retested = (*tested)[a].verdicts[m];
      if (!(*tested)[a].problem.empty())
        scores_.untested.push_back(fmt::format("{}: {}", accused[a].truth->folder, (*tested)[a].problem));
    }
    say_(fmt::format("verdicts about {} cases re-timed in {:.1f} s", accused.size(),
                     static_cast<double>(Since(begin)) / 1e9));
    return {};
  }

  TableOptions Tables() const { return {.resamples = scores_.options.resamples, .seed = scores_.options.seed}; }

  std::vector<const Truth*> Truths() const {
    std::vector<const Truth*> truths;
    for (const uint32_t i : scores_.asked) truths.push_back(&scores_.cases[i]);
    return truths;
  }

  void Compare(MethodScore& score) const {
    const std::vector<const Truth*> truths = Truths();
    score.tables = MakeTables(score.method.name, truths, score.judged, Tables());
    score.losses = GroupLosses(truths, score.judged);
    score.necessity = CompareNecessity(truths, score.judged, Tables());
    score.confirmed = CompareRetests(truths, {&score.judged}, Tables());
  }

  void CompareAll() {
    std::vector<const std::vector<Judged>*> methods;
    for (const MethodScore& score : scores_.methods) {
      if (!score.method.command.empty()) methods.push_back(&score.judged);
    }
    scores_.confirmed = CompareRetests(Truths(), methods, Tables());
  }

  /// Figures of no answer at all would look like those of bad ones.
  base::Status CheckAnswers() const {
    std::string why;
    for (const MethodScore& score : scores_.methods) {
      if (score.unanswered < scores_.asked.size()) return {};
      if (why.empty() && !score.problems.empty()) why = score.method.name + ": " + score.problems.front();
    }
    if (why.empty() && !scores_.problems.empty()) why = scores_.problems.front();
    return base::Error{
        .code = base::Code::kNotFound,
        .message = "nothing to score: no method answered a case" + (why.empty() ? "" : " (" + why + ")")};
  }

  const std::string& folder_;
  const std::function<void(const std::string&)>& say_;
  Scores scores_;
  std::vector<Prepared> prepared_;
};

}  // namespace

base::Result<Scores> ScoreCases(const ScoreOptions& options, const std::string& folder,
                                const std::function<void(const std::string&)>& say) {
  return Scorer(options, folder, say).Run();
}

std::string LostText(const Scores& scores) {
  std::string text;
  const auto add = [&](const std::string& what) { text += (text.empty() ? "" : "; ") + what; };
  if (!scores.problems.empty())
    add(fmt::format("{} of {} cases not read", scores.problems.size(), scores.cases.size()));
  if (!scores.untested.empty()) add(fmt::format("verdicts about {} cases not tested", scores.untested.size()));
  for (const MethodScore& method : scores.methods) {
    if (method.unanswered > 0) {
      add(fmt::format("{} gave no answer to {} of {} cases", method.method.name, method.unanswered,
                      scores.asked.size()));
    } else if (!method.problems.empty()) {
      add(method.method.name + " failed after its answers");
    }
  }
  return text.empty() ? text : text + "; scores.txt says why";
}

}  // namespace teller::score
