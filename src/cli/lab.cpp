#include "cli/lab.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/guarded.hpp"
#include "cli/lab_python.hpp"
#include "cli/lab_score.hpp"
#include "cli/talk.hpp"
#include "cli/terminal.hpp"
#include "engine/engine.hpp"
#include "inject/check.hpp"
#include "inject/retime_case.hpp"
#include "inject/sim/simulate.hpp"
#include "report/printable.hpp"
#include "report/units.hpp"
#include "retime/what_if.hpp"

namespace teller::cli {

namespace {

base::Status Print(const CommonOptions& common, const std::string& text) {
  auto output = Output::Open(common.output);
  if (!output) return output.error();
  TELLER_TRY(output->Write(text));
  return output->Close();
}

int Finish(const base::Status& written, int status) {
  return written.ok() ? status : Fail(written.error().Text());
}

/// An option that says nothing about the fault would be left out in silence, and the case be another one than was
/// meant.
base::Status CheckOptions(const LabRetimeOptions& what) {
  const auto& kinds = inject::PlantKinds();
  const auto kind =
      std::find_if(kinds.begin(), kinds.end(), [&](const inject::PlantKind& k) { return what.fault == k.name; });
  if (kind == kinds.end()) return {};  // said with the others that cannot be planted
  const std::pair<std::string_view, bool> given[] = {{"--rank", what.rank.has_value()},
                                                     {"--peer", what.peer.has_value()},
                                                     {"--op", !what.op.empty()},
                                                     {"--scale", what.scale.has_value()},
                                                     {"--length", what.length.has_value()},
                                                     {"--first-step", what.first_step.has_value()},
                                                     {"--last-step", what.last_step.has_value()}};
  for (const auto& [option, is_given] : given) {
    if (is_given && std::find(kind->options.begin(), kind->options.end(), option) == kind->options.end())
      return base::Error{base::Code::kUsage, fmt::format("--fault {} has no {}; leave it out", what.fault, option)};
  }
  return {};
}

/// The fault that the options ask for.
base::Result<inject::Plant> PlantOf(const LabRetimeOptions& what) {
  TELLER_TRY(CheckOptions(what));
  inject::Plant plant;
  plant.fault = what.fault;
  plant.rank = what.rank;
  plant.peer = what.peer;
  plant.op = what.op;
  if (what.scale) plant.scale = *what.scale;
  plant.first_step = what.first_step;
  plant.last_step = what.last_step;
  plant.seed = what.seed;
  if (what.length) {
    const auto length = retime::ParseWanted(*what.length);
    if (!length || length->kind != retime::Wanted::Kind::kDuration)
      return base::Error{base::Code::kUsage, "\"" + *what.length + "\" is no duration; write it as 250ms"};
    plant.length = length->duration;
  }
  return plant;
}

int Run(const CommonOptions& common, const LabListOptions&) {
  std::string text = "Faults that \"teller lab retime\" can put into a recorded run:\n";
  for (const inject::PlantKind& kind : inject::PlantKinds()) text += fmt::format("  {:<14} {}\n", kind.name, kind.what);
  text += "\nFaults and look-alikes that \"teller lab simulate\" can put into a simulated run:\n";
  for (const inject::sim::KindInfo& kind : inject::sim::Kinds()) {
    text += fmt::format("  {:<18} {:<20} {}\n", kind.name, trace::Name(kind.fault), kind.what);
  }
  text += "\nStacks that run on this machine, and the faults that they can have:\n";
  const auto stacks = ListOfLabPython();
  text += stacks ? *stacks : "  not known: " + stacks.error().message + "\n";
  return Finish(Print(common, text), kDone);
}

int Run(const CommonOptions&, const LabPythonOptions& what) {
  return RunLabPython(what.args);
}

int Run(const CommonOptions& common, const LabCheckOptions&) {
  std::string text;
  size_t checked = 0;
  size_t wrong = 0;
  const auto cases = inject::FindCases(common.paths);
  if (!cases) return Fail(cases.error().Text());
  for (const std::string& folder : *cases) {
    const auto problems = inject::CheckCase(folder, common.threads);
    ++checked;
    wrong += !problems.empty();
    for (const std::string& problem : problems) text += report::Printable(problem) + "\n";
  }
  text += fmt::format("{} checked, {} with problems\n", report::Count(checked, "case"), wrong);
  return Finish(Print(common, text), wrong == 0 ? kDone : kFailed);
}

int Retime(const CommonOptions& common, const LabRetimeOptions& what, const inject::Plant& plant) {
  engine::Options options;
  options.inputs = {.paths = common.paths, .logs = {}};
  options.threads = common.threads;
  const auto run = engine::Open(options);
  if (!run) return Fail(run.error().Text());
  const auto made = inject::MakeRetimedCase(*run, common.paths.front(), plant, common.output);
  if (!made) return Fail(made.error().Text());
  if (common.quiet) return kDone;
  if (!made->label.culprit) {
    Say(fmt::format("{}: a control; {} with {} moved", common.output, report::Count(made->files, "trace"),
                    report::Count(made->events.moved, "span")));
    return kDone;
  }
  const inject::LabelCulprit& culprit = *made->label.culprit;
  Say(fmt::format("{}: {} of {}{}; {} with {} moved; its steps take {} instead of {}", common.output, what.fault,
                  culprit.rank ? fmt::format("rank {}", *culprit.rank) : "the process",
                  culprit.op.empty() ? "" : ", " + culprit.op, report::Count(made->files, "trace"),
                  report::Count(made->events.moved, "span"), report::Duration(made->changed),
                  report::Duration(made->recorded)));
  return kDone;
}

int Run(const CommonOptions& common, const LabRetimeOptions& what) {
  if (common.paths.size() != 1) return Fail("one run is re-timed at a time; name one PATH");
  if (common.output.empty() || common.output == "-") return Fail("name the folder for the case with -o CASE");
  const auto plant = PlantOf(what);
  if (!plant) return Fail(plant.error().Text());
  return Guarded([&] { return Retime(common, what, *plant); });
}

int Simulate(const CommonOptions& common, const LabSimulateOptions& what) {
  inject::sim::SimulateOptions options;
  options.engine = what.engine == "vllm"     ? inject::sim::Engine::kVllm
                   : what.engine == "sglang" ? inject::sim::Engine::kSglang
                                             : inject::sim::Engine::kFsdp;
  options.ranks = what.ranks;
  options.stages = what.stages;
  options.fault = what.fault;
  options.magnitude = what.magnitude;
  options.count = what.count;
  options.seed = what.seed;
  options.steps = what.steps;
  options.lost = what.lost;
  options.late = what.late;
  options.threads = common.threads;
  const auto made = inject::sim::Simulate(options, common.output);
  if (!made) return Fail(made.error().Text());
  if (!common.quiet) {
    Say(fmt::format("{}: {} with {} ranks each, {:.1f} MB of traces", common.output, report::Count(made->cases, "case"),
                    what.ranks, static_cast<double>(made->trace_bytes) / 1e6));
  }
  return kDone;
}

int Run(const CommonOptions& common, const LabSimulateOptions& what) {
  if (common.output.empty() || common.output == "-") return Fail("name the folder for the cases with -o CASES");
  return Guarded([&] { return Simulate(common, what); });
}

int Run(const CommonOptions& common, const LabScoreOptions& what) {
  return RunScore(common, what);
}

/// Not a verb of the laboratory.
template <class What>
int Run(const CommonOptions&, const What&) {
  return Fail("no command of the laboratory");
}

}  // namespace

bool IsLab(const Command& command) {
  return std::holds_alternative<LabListOptions>(command.what) ||
         std::holds_alternative<LabPythonOptions>(command.what) ||
         std::holds_alternative<LabCheckOptions>(command.what) ||
         std::holds_alternative<LabRetimeOptions>(command.what) ||
         std::holds_alternative<LabSimulateOptions>(command.what) ||
         std::holds_alternative<LabScoreOptions>(command.what);
}

int RunLab(const Command& command) {
  return std::visit([&](const auto& what) { return Run(command.common, what); }, command.what);
}

}  // namespace teller::cli
