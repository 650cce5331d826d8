#include "cli/cli.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <memory>
#include <new>
#include <set>

#include "cli/lab.hpp"
#include "cli/options.hpp"
#include "cli/talk.hpp"
#include "cli/terminal.hpp"
#include "cli/tpe.hpp"
#include "engine/engine.hpp"
#include "report/diagnosis_html.hpp"
#include "report/diagnosis_json.hpp"
#include "report/diagnosis_text.hpp"
#include "report/features.hpp"
#include "report/inspect.hpp"
#include "report/learned_graphs.hpp"
#include "report/logs.hpp"
#include "report/perfetto.hpp"
#include "report/printable.hpp"
#include "report/requests.hpp"
#include "report/tree_text.hpp"
#include "report/units.hpp"
#include "report/what_if.hpp"

namespace teller::cli {

namespace {

uint64_t PeakBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

/// One command on one run. The result goes to the output; an error means exit status 2.
class Session {
 public:
  explicit Session(const Command& command) : command_(command) {}

  int Execute() {
    options_.inputs = {.paths = command_.common.paths, .logs = command_.common.logs, .graphs = command_.common.graphs};
    options_.threads = command_.common.threads;
    {
      const std::unique_ptr<base::Progress> progress = MakeProgress(command_.common.quiet);
      options_.progress = progress.get();
      auto opened = engine::Open(options_);
      options_.progress = nullptr;
      if (!opened) return Fail(opened.error().Text());
      run_ = std::move(opened.value());
    }
    const base::Status possible = std::visit([&](const auto& what) { return Check(what); }, command_.what);
    if (!possible.ok()) return Fail(possible.error().Text());
    auto output = Output::Open(command_.common.output);
    if (!output) return Fail(output.error().Text());
    const base::Status written = std::visit([&](const auto& what) { return Run(what, output.value()); }, command_.what);
    if (!written.ok()) return Fail(written.error().Text());
    const base::Status closed = output->Close();
    if (!closed.ok()) return Fail(closed.error().Text());
    return ExitStatus();
  }

 private:
  int ExitStatus() const {
    if (found_) return kFound;
    if (!run_.store.diagnostics.LostInput()) return kDone;
    if (!command_.common.quiet) Say("some input was lost or wrong; the report says what");
    return kLostInput;
  }

  report::TextOptions Text() const {
    const bool to_terminal = command_.common.output.empty() || command_.common.output == "-";
    return {.width = TerminalWidth(STDOUT_FILENO),
            .color = to_terminal && WantsColor(STDOUT_FILENO, command_.common.no_color),
            .all = command_.common.all};
  }

  static report::Sink Into(Output& output) {
    return [&output](std::string_view text) { return output.Write(text); };
  }

  /// Whether the run has what was asked for. Known before anything is written.
  template <class What>
  base::Status Check(const What&) const {
    return {};
  }

  base::Status Check(const TreeOptions& what) const {
    std::set<int> ranks;
    for (const trace::Process& process : run_.store.processes) {
      if (process.rank) ranks.insert(*process.rank);
    }
    if (what.rank && ranks.count(*what.rank) == 0) return NoSuch("rank", *what.rank, "rank", ranks);
    if (!what.step) return {};
    std::set<int64_t> steps;
    for (const trace::Step& step : run_.trees.steps) {
      if (!what.rank || step.rank == what.rank) steps.insert(step.index);
    }
    if (steps.count(*what.step) != 0) return {};
    const std::string step = what.rank ? fmt::format("step of rank {} with index", *what.rank) : "step";
    return NoSuch(step, *what.step, "step", steps);
  }

  base::Status Run(const DiagnoseOptions& what, Output& output) {
    options_.false_alarms = what.false_alarms;
    const trace::Diagnosis diagnosis = engine::Diagnose(run_, options_);
    found_ = what.fail_on_finding && diagnosis.status == trace::VerdictStatus::kAbnormal;
    if (what.format == "json") {
      return output.Write(report::JsonText(report::DiagnosisToJson(run_, diagnosis, command_.common.all)));
    }
    if (what.format == "html") return output.Write(report::DiagnosisToHtml(run_, diagnosis, command_.common.all));
    return output.Write(report::DiagnosisToText(run_, diagnosis, Text()));
  }

  base::Status Run(const InspectOptions& what, Output& output) {
    if (what.json) return output.Write(report::JsonText(report::InspectToJson(run_)));
    return output.Write(report::InspectToText(run_, Text()));
  }

  base::Status Run(const TreeOptions& what, Output& output) {
    if (what.stats) return output.Write(report::StatsToText(run_, PeakBytes(), Text()));
    const report::TreeTextOptions options{.text = Text(),
                                          .depth = what.depth,
                                          .hide_below = command_.common.all ? 0 : report::TreeTextOptions().hide_below};
    if (what.step) return WriteStep(what, options, output);
    TELLER_TRY(output.Write(report::StepsToText(run_, what.rank, options.text)));
    if (!what.rank) return WriteCallTree({}, options, output);
    for (uint32_t p = 0; p < run_.store.processes.size(); ++p) {
      if (run_.store.processes[p].rank != what.rank) continue;
      report::CallTreeScope scope;
      scope.process = trace::ProcessRow(p);
      TELLER_TRY(WriteCallTree(scope, options, output));
    }
    return {};
  }

  base::Status WriteCallTree(const report::CallTreeScope& scope, const report::TreeTextOptions& options,
                             Output& output) {
    return output.Write("\n" + report::CallTreeToText(run_, report::BuildCallTree(run_, scope), options));
  }

  base::Status WriteStep(const TreeOptions& what, const report::TreeTextOptions& options, Output& output) {
    for (const trace::Step& step : run_.trees.steps) {
      if (step.index != *what.step || (what.rank && step.rank != what.rank)) continue;
      const report::CallTreeScope scope{.process = step.process, .begin = step.begin, .end = step.end};
      TELLER_TRY(output.Write(report::StepHeadToText(run_, step, options.text) +
                              report::CallTreeToText(run_, report::BuildCallTree(run_, scope), options) + "\n"));
    }
    return {};
  }

  /// Says what is not there, and what is instead.
  template <class Number>
  static base::Error NoSuch(const std::string& what, int64_t wanted, const char* unit, const std::set<Number>& there) {
    constexpr size_t kListed = 16;
    std::string known = fmt::format("no {} is known", unit);
    if (there.size() > kListed) {
      known = fmt::format("there are {} from {} to {}", there.size(), *there.begin(), *there.rbegin());
    } else if (!there.empty()) {
      known = fmt::format("there {} {}", there.size() == 1 ? "is" : "are", fmt::join(there, ", "));
    }
    return {.code = base::Code::kNotFound, .message = fmt::format("no {} {} in this run; {}", what, wanted, known)};
  }

  base::Status Run(const LogsOptions& what, Output& output) {
    if (what.json) return report::WriteLogsJson(run_, Into(output));
    return output.Write(report::LogsToText(run_, Text()));
  }

  base::Status Run(const RequestsOptions& what, Output& output) {
    if (what.json) return report::WriteRequestsJson(run_, Into(output));
    return output.Write(report::RequestsToText(run_, Text()));
  }

  base::Status Check(const RequestOptions& what) const {
    const auto row = report::FindRequest(run_, what.id);
    return row ? base::Status() : base::Status(row.error());
  }

  base::Status Run(const RequestOptions& what, Output& output) {
    const auto row = report::FindRequest(run_, what.id);
    if (!row) return row.error();
    if (what.json) return output.Write(report::JsonText(report::RequestToJson(run_, *row)));
    return output.Write(report::RequestToText(run_, *row, Text()));
  }

  /// The answer is what there is to check, so it is found before anything is written.
  base::Status Check(const WhatIfOptions& what) {
    const auto wanted = retime::ParseWanted(what.to);
    if (!wanted) return wanted.error();
    auto answer = engine::WhatIf(run_, {.step = what.step, .rank = what.rank, .op = what.op, .to = *wanted});
    if (!answer) return answer.error();
    answer_ = std::move(*answer);
    return {};
  }

  base::Status Run(const WhatIfOptions& what, Output& output) {
    if (what.json) return output.Write(report::JsonText(report::WhatIfToJson(run_, answer_)));
    return output.Write(report::WhatIfToText(run_, answer_, Text()));
  }

  base::Status Check(const GraphsLearnOptions&) {
    uint64_t left_out = 0;
    learned_ = engine::LearnGraphs(run_, left_out);
    if (learned_.empty()) {
      return base::Error{base::Code::kNotFound,
                         "nothing to learn: no capture of a graph and no step with modules or operators is in here; "
                         "record the warm-up, or a few steps without graphs, with Python frames (with_stack)",
                         command_.common.paths.empty() ? std::string() : command_.common.paths.front()};
    }
    size_t launches = 0;
    for (const auto& sequence : learned_) launches += sequence.launches.size();
    if (command_.common.quiet) return {};
    Say(fmt::format("learned {} of {} kernels and copies{}", report::Count(learned_.size(), "sequence"),
                    report::Count(launches),
                    left_out > 0 ? fmt::format("; {} more left out, a file is bounded", report::Count(left_out)) : ""));
    return {};
  }

  base::Status Run(const GraphsLearnOptions&, Output& output) {
    return output.Write(report::GraphsToJsonLines(run_.store, learned_));
  }

  base::Status Run(const ExportOptions& what, Output& output) {
    if (what.to == "features") return report::WriteFeatures(run_, Into(output));
    const trace::Diagnosis diagnosis = engine::Diagnose(run_, options_);
    return report::WritePerfetto(run_, diagnosis, Into(output));
  }

  /// Commands that read runs of their own are no sessions.
  template <class What>
  base::Status Run(const What&, Output&) {
    return base::Error{.code = base::Code::kUsage, .message = "no command on one run"};
  }

  const Command& command_;
  engine::Options options_;
  engine::Run run_;
  retime::Answer answer_;  ///< of whatif
  std::vector<trace::LearnedSequence> learned_;
  bool found_ = false;
};

int RunProgram(int argc, const char* const* argv) {
  // A reader that goes away is seen as EPIPE by the write.
  std::signal(SIGPIPE, SIG_IGN);
  // A file that may not grow further is seen as EFBIG.
  std::signal(SIGXFSZ, SIG_IGN);
  const Parsed parsed = ParseArguments(argc, argv);
  if (!parsed.error.empty()) return Fail(parsed.error);
  if (parsed.command && IsLab(*parsed.command)) return RunLab(*parsed.command);
  if (parsed.command && IsTpe(*parsed.command)) return RunTpe(*parsed.command);
  if (parsed.command) return Session(*parsed.command).Execute();
  auto output = Output::Open("");
  const base::Status written = output->Write(parsed.text);
  return written.ok() ? kDone : Fail(written.error().Text());
}

}  // namespace

int Main(int argc, const char* const* argv) {
  try {
    return RunProgram(argc, argv);
  } catch (const std::bad_alloc&) {
    return Fail("not enough memory for this input");
  } catch (const std::exception& error) {
    return Fail(error.what());
  }
}

}  // namespace teller::cli
