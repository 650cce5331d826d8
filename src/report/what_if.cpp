#include "report/what_if.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "report/summary.hpp"
#include "report/units.hpp"

namespace teller::report {

namespace {

using base::Nanos;
using Json = nlohmann::ordered_json;

double Percent(Nanos part, Nanos whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

std::string Signed(Nanos ns) {
  return (ns < 0 ? "-" : "+") + Duration(std::abs(ns));
}

std::string WhoseStep(const engine::Run& run, const retime::StepChange& change) {
  const trace::Step& step = run.trees.steps[change.step];
  return fmt::format("step {} of {}", step.index, ProcessLabel(run.store, step.process));
}

std::string ChangeText(const retime::StepChange& change) {
  return fmt::format("{} -> {} ({}, {:+.1f} %)", Duration(change.recorded), Duration(change.expected()),
                     Signed(change.difference()), Percent(change.difference(), change.recorded));
}

Json ChangeToJson(const engine::Run& run, const retime::StepChange& change) {
  const trace::Step& step = run.trees.steps[change.step];
  return {{"step", step.index},
          {"rank", step.rank ? Json(*step.rank) : Json()},
          {"process", ProcessLabel(run.store, step.process)},
          {"recorded_ns", change.recorded},
          {"expected_ns", change.expected()},
          {"difference_ns", change.difference()},
          {"model_error_ns", change.modelled - change.recorded}};
}

}  // namespace

std::string WhatIfToText(const engine::Run& run, const retime::Answer& answer, const TextOptions& options) {
  Page page(options);
  page.Paragraph(
      0, fmt::format("{} of {} in {}: {} -> {}", Count(answer.calls.size(), "call"), answer.op,
                     WhoseStep(run, answer.step), Duration(answer.calls_recorded), Duration(answer.calls_wanted)));
  page.Paragraph(0, fmt::format("The step: {}", ChangeText(answer.step)), Ink::kBold);
  if (answer.nothing_changes) {
    page.Paragraph(0, answer.calls_usual
                          ? "Nothing would change: these calls take no longer or shorter than other steps' usually do."
                          : "Nothing would change: the difference is less than one hundredth of the step, or than the "
                            "model can tell.");
  }
  page.Gap();
  for (const retime::StepChange& other : answer.others)
    page.Paragraph(2, fmt::format("{}: {}", WhoseStep(run, other), ChangeText(other)));
  if (!answer.others.empty()) page.Gap();
  page.Paragraph(
      2,
      fmt::format(
          "Replayed without the change the step takes {} (model error {:+.1f} %); {:.0f} % of its time follows from "
          "dependencies, the rest is kept as recorded.",
          Duration(answer.step.modelled), Percent(answer.step.modelled - answer.step.recorded, answer.step.recorded),
          100 * answer.recomputed),
      Ink::kDim);
  if (answer.compared > 0)
    page.Paragraph(2, fmt::format("Normal is taken from {} of other steps.", Count(answer.compared, "call")),
                   Ink::kDim);
  return page.Take();
}

Json WhatIfToJson(const engine::Run& run, const retime::Answer& answer) {
  Json calls = Json::array();
  for (const trace::SpanRow call : answer.calls) {
    calls.push_back({{"span", call.value()},
                     {"begin_ns", run.store.spans.begin[call.value()]},
                     {"duration_ns", run.store.spans.duration[call.value()]}});
  }
  Json others = Json::array();
  for (const retime::StepChange& other : answer.others) others.push_back(ChangeToJson(run, other));
  return {{"schema", "teller.whatif/1"},
          {"op", answer.op},
          {"calls", std::move(calls)},
          {"calls_recorded_ns", answer.calls_recorded},
          {"calls_wanted_ns", answer.calls_wanted},
          {"compared_calls", answer.compared},
          {"calls_usual", answer.calls_usual},
          {"nothing_changes", answer.nothing_changes},
          {"recomputed_share", answer.recomputed},
          {"step", ChangeToJson(run, answer.step)},
          {"other_processes", std::move(others)}};
}

}  // namespace teller::report
