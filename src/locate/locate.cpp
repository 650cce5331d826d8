#include "locate/locate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "locate/counter_cause.hpp"
#include "locate/counterfactual.hpp"
#include "locate/death.hpp"
#include "locate/explain.hpp"
#include "locate/front_end.hpp"
#include "locate/hypothesis.hpp"
#include "locate/log_cause.hpp"
#include "locate/look_alikes.hpp"
#include "locate/not_given.hpp"
#include "locate/select.hpp"
#include "locate/stand_still.hpp"
#include "locate/workload.hpp"
#include "slice/slice.hpp"

namespace teller::locate {

namespace {

using trace::Diagnosis;
using trace::Finding;
using trace::VerdictStatus;

constexpr double kComputes = 0.3;       // processors that a front end uses when it is slow because it computes
constexpr size_t kMostLogEvidence = 2;  // of what the causal slice brings along

/// A process that died, ran out of memory or faulted says so itself; what traces show around it is its echo.
bool IsProof(const Finding& finding) {
  return finding.fault == trace::FaultClass::kProcDeath || finding.fault == trace::FaultClass::kGpuMemOom ||
         finding.fault == trace::FaultClass::kGpuAppFault || finding.fault == trace::FaultClass::kGpuHwFault;
}

/// Adds warnings and errors that the causal slice of the finding's first span holds: what the log says at that time.
void AddLogEvidence(const trace::Store& store, const trace::Trees& trees, Finding& finding) {
  if (finding.evidence.empty() || !finding.evidence.front().span.valid()) return;
  const slice::Slice slice = slice::CausalSlice(store, trees, finding.evidence.front().span);
  size_t added = 0;
  for (const slice::Node& node : slice.nodes) {
    if (!node.log.valid() || added >= kMostLogEvidence) continue;
    const trace::LogRecord& record = store.logs[node.log.value()];
    if (record.level < trace::LogLevel::kWarning || record.at < finding.onset - record.at_error ||
        record.at > finding.end + record.at_error)
      continue;
    trace::Evidence evidence;
    evidence.id = "E" + std::to_string(finding.evidence.size() + 1);
    evidence.kind = trace::Evidence::Kind::kLog;
    evidence.file = record.file;
    evidence.ref = "line:" + std::to_string(record.line);
    evidence.log = node.log;
    evidence.at = record.at;
    evidence.text = record.message.substr(0, record.message.find('\n')).substr(0, 200);
    finding.evidence.push_back(std::move(evidence));
    ++added;
  }
}

/// Work in the front end takes processors from the scheduler beside it, so gaps between steps grow with it; and a slow
/// scheduler lets requests wait. The one that costs more is the source.
void OrderFrontEnd(std::vector<Finding>& findings, std::vector<Finding>& front_end, const CpuWitness& witness) {
  for (Finding& front : front_end) {
    const bool computes = witness.Used(front.culprit.process, front.onset, front.end) >= kComputes;
    for (Finding& other : findings) {
      // A front end that computes takes the processor of whoever it shares one with.
      const bool starved = computes && other.fault == trace::FaultClass::kCpuStarved && front.cost > other.cost;
      const bool gaps =
          other.fault == trace::FaultClass::kHostCpuBound &&
          (other.culprit.layer == "scheduler" || other.culprit.layer == "host" || other.culprit.layer == "python");
      if ((!gaps && !starved) || other.onset >= front.end || front.onset >= other.end) continue;
      Finding& echo = front.cost > other.cost ? other : front;
      const Finding& source = front.cost > other.cost ? front : other;
      echo.score = std::min(echo.score, source.score - 0.01);
    }
  }
}

void OrderFindings(std::vector<Finding>& findings) {
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    const bool a_proof = IsProof(a);
    const bool b_proof = IsProof(b);
    if (a_proof != b_proof) return a_proof;
    return a.score > b.score;
  });
}

/// Numbers findings and evidence over the run, and the references to them in the texts.
void Number(std::vector<Finding>& findings) {
  size_t next = 1;
  for (size_t f = 0; f < findings.size(); ++f) {
    Finding& finding = findings[f];
    finding.id = "F" + std::to_string(f + 1);
    // Last first, so that [E1] -> [E11] is not renumbered again.
    std::vector<std::pair<std::string, std::string>> names;
    for (auto& evidence : finding.evidence) {
      const std::string fresh = "E" + std::to_string(next++);
      names.emplace_back("[" + evidence.id + "]", "[" + fresh + "]");
      evidence.id = fresh;
    }
    std::string text;
    for (size_t at = 0; at < finding.explanation.size();) {
      bool replaced = false;
      for (const auto& [old_name, new_name] : names) {
        if (finding.explanation.compare(at, old_name.size(), old_name) == 0) {
          text += new_name;
          at += old_name.size();
          replaced = true;
          break;
        }
      }
      if (!replaced) text += finding.explanation[at++];
    }
    finding.explanation = std::move(text);
  }
}

/// True when the traces show operators or kernels; an idle process's file does not.
bool HoldsWork(const trace::Store& store) {
  for (size_t row = 0; row < store.spans.size(); ++row) {
    if (store.kind(row) == trace::SpanKind::kOp || store.kind(row) == trace::SpanKind::kKernel) return true;
  }
  return false;
}

/// True when ranks spend much of their steps in collectives, so that a rank without a trace may be why.
bool WaitsMatter(const trace::Trees& trees) {
  double inside = 0;
  double all = 0;
  for (const auto& collective : trees.collectives) {
    for (const auto& member : collective.members) inside += static_cast<double>(member.end - member.arrival);
  }
  for (const trace::Step& step : trees.steps) all += static_cast<double>(step.duration());
  return inside > 0.5 * all;
}

/// True when some steps take much longer than others of their kind and size, for whatever reason.
bool SomeStepsAreLong(const trace::Trees& trees) {
  constexpr size_t kFewest = 4;
  constexpr Nanos kLonger = 5 * base::kMilli;
  std::map<std::tuple<uint32_t, trace::StepKind, int64_t>, std::vector<Nanos>> groups;
  for (const trace::Step& step : trees.steps) {
    // A prompt's length explains a step; what the profiler touched says nothing.
    if (step.observer || step.kind == trace::StepKind::kPrefill || step.kind == trace::StepKind::kMixed) continue;
    groups[{step.process.value(), step.kind, step.new_tokens}].push_back(step.duration());
  }
  return std::any_of(groups.begin(), groups.end(), [&](auto& entry) {
    std::vector<Nanos>& durations = entry.second;
    if (durations.size() < kFewest) return false;
    std::sort(durations.begin(), durations.end());
    const Nanos usual = durations[durations.size() / 2];
    return durations.back() > 2 * usual && durations.back() - usual > kLonger;
  });
}

/// Steps of which nothing tells how much they compute, some of them much longer than the others: a fault or more work.
/// The share of them that is long; 0 where they hardly differ or sizes are known.
double LongWithoutSizes(const trace::Trees& trees) {
  constexpr size_t kFewest = 6;
  constexpr Nanos kLonger = 3;  // times the usual
  constexpr Nanos kMost = 5;    // of the time, one part in so many: less is a busy machine
  std::map<uint32_t, std::vector<Nanos>> processes;
  for (const trace::Step& step : trees.steps) {
    if (step.new_tokens >= 0 || step.work >= 0) return 0;
    if (!step.observer) processes[step.process.value()].push_back(std::max<Nanos>(0, step.duration()));
  }
  double share = 0;
  for (auto& [process, durations] : processes) {
    if (durations.size() < kFewest) continue;
    std::sort(durations.begin(), durations.end());
    const Nanos usual = durations[durations.size() / 3];
    const auto first = std::upper_bound(durations.begin(), durations.end(), kLonger * usual);
    Nanos all = 0;
    for (const Nanos d : durations) all += d / kMost;
    Nanos excess = 0;
    for (auto it = first; it != durations.end(); ++it) excess += *it - usual;
    if (durations.end() - first < 2 || excess < all) continue;
    share = std::max(share, static_cast<double>(durations.end() - first) / static_cast<double>(durations.size()));
  }
  return share;
}

/// What stands in the way of an answer when nothing was found.
std::vector<std::string> Missing(const trace::Store& store, const trace::Trees& trees,
                                 const std::vector<StepNormal>& normals) {
  std::vector<std::string> missing;
  size_t judged = 0;
  for (const auto& normal : normals) judged += normal.judged;
  // Request spans alone tell that a request was slow, not why.
  const bool traced = std::any_of(store.spans.category.begin(), store.spans.category.end(), [&](uint8_t category) {
    return store.categories[category].kind != trace::SpanKind::kService;
  });
  if (!traced && store.logs.empty() && store.comm_records.empty() && store.comm_perf.empty()) {
    missing.push_back(std::string(store.spans.size() > 0 ? "the inputs hold request spans and counters only"
                                                         : "the inputs hold no spans and no log records") +
                      ": capture a torch.profiler trace of 20 or more steps, or the service log");
  } else if (trees.steps.empty() && HoldsWork(store)) {
    missing.push_back(
        "no steps were recognized in the traces: capture with the engine's step annotations on, over 20 or more steps");
  } else if (!trees.steps.empty() && judged == 0) {
    missing.push_back("too few steps of a similar shape to say what is normal: capture 20 or more steps");
  } else if (const double share = LongWithoutSizes(trees); share > 0) {
    missing.push_back(
        fmt::format("{:.0f} % of the steps take more than three times as long as the others, and nothing in the traces "
                    "says how much they compute: capture with record_shapes=True or the engine's step annotations",
                    100 * share));
  }
  const bool known_line = std::any_of(store.logs.begin(), store.logs.end(), [](const trace::LogRecord& record) {
    return record.source != trace::LogSource::kUnknown && record.source != trace::LogSource::kProgramOutput;
  });
  if (missing.empty() && !traced && store.comm_records.empty() && store.comm_perf.empty() && !known_line) {
    missing.push_back("no log line is in a known form: give the service's own log");
  }
  std::set<int> ranks;
  int world = 0;
  for (const auto& process : store.processes) {
    if (process.rank.has_value()) ranks.insert(*process.rank);
    world = std::max(world, process.world_size.value_or(0));
  }
  if (store.spans.size() > 0 && !ranks.empty() && world > static_cast<int>(ranks.size()) &&
      (!missing.empty() || WaitsMatter(trees) || SomeStepsAreLong(trees))) {
    missing.push_back(fmt::format("traces of {} of {} ranks: capture all ranks of the same steps to see who is late",
                                  ranks.size(), world));
  }
  return missing;
}

std::string Summary(const Diagnosis& diagnosis, bool lost) {
  switch (diagnosis.status) {
    case VerdictStatus::kNormal:
      if (lost)
        return "Nothing abnormal was found in what could be read, but some input was lost or damaged; the remarks "
               "about the input say what.";
      return "Nothing abnormal was found.";
    case VerdictStatus::kCannotTell:
      return "Cannot tell: " +
             (diagnosis.missing.empty() ? std::string("too little evidence") : diagnosis.missing.front()) + ".";
    case VerdictStatus::kAbnormal: return diagnosis.findings.front().explanation;
  }
  return {};
}

}  // namespace

Diagnosis Locate(const trace::Store& store, const trace::Trees& trees, const LocateOptions& options) {
  Diagnosis diagnosis;
  const std::vector<StepProfile> profiles = ProfileSteps(store, trees);
  const std::vector<StepNormal> normals = FitNormals(trees, profiles);
  const CpuWitness witness(store);
  const Scene scene{store, trees, profiles, normals, &witness};

  std::vector<Hypothesis> claims = SearchVertical(scene);
  for (auto& claim : SearchHorizontal(scene)) claims.push_back(std::move(claim));
  DropExplained(scene, claims, diagnosis.notes);
  DropLookAlikes(scene, claims, diagnosis.notes);
  claims = SelectCauses(scene, std::move(claims), options.false_alarms);
  const auto tests = TestClaims(scene, claims);
  for (size_t c = 0; c < claims.size(); ++c) {
    diagnosis.findings.push_back(Explain(scene, claims[c], tests[c]));
    AddLogEvidence(store, trees, diagnosis.findings.back());
  }
  for (auto* search : {&FindLogCauses, &FindCommRecordCauses, &FindCommPerfCauses, &FindTopologyCauses}) {
    LogCauses causes = (*search)(store);
    for (auto& finding : causes.findings) {
      if (finding.false_alarm_probability < options.false_alarms) diagnosis.findings.push_back(std::move(finding));
    }
    for (auto& note : causes.notes) diagnosis.notes.push_back(std::move(note));
  }
  std::vector<Finding> front_end = FindFrontEndCauses(store, trees, diagnosis.notes, &witness);
  std::erase_if(front_end, [&](const Finding& f) { return f.false_alarm_probability >= options.false_alarms; });
  OrderFrontEnd(diagnosis.findings, front_end, witness);
  for (Finding& finding : front_end) {
    if (finding.false_alarm_probability < options.false_alarms) diagnosis.findings.push_back(std::move(finding));
  }
  std::vector<Finding> still = FindStandStills(store, trees, witness, diagnosis.notes);
  std::erase_if(still, [&](const Finding& f) { return f.false_alarm_probability >= options.false_alarms; });
  JoinStandStills(std::move(still), diagnosis.findings);
  std::vector<Finding> counters = FindCounterCauses(store, trees, diagnosis.notes);
  std::erase_if(counters, [&](const Finding& f) { return f.false_alarm_probability >= options.false_alarms; });
  JoinCounterCauses(std::move(counters), diagnosis.findings);
  for (Finding& finding : diagnosis.findings) CompleteDeath(store, trees, finding);
  NoteLongSteps(scene, diagnosis.notes);
  OrderFindings(diagnosis.findings);
  Number(diagnosis.findings);

  if (!diagnosis.findings.empty()) {
    diagnosis.status = VerdictStatus::kAbnormal;
    diagnosis.confidence = std::clamp(diagnosis.findings.front().score, 0.0, 0.999);
  } else {
    diagnosis.missing = Missing(store, trees, normals);
    diagnosis.status = diagnosis.missing.empty() ? VerdictStatus::kNormal : VerdictStatus::kCannotTell;
    diagnosis.confidence = !diagnosis.missing.empty() ? 0.0 : store.diagnostics.LostInput() ? 0.5 : 0.9;
  }
  diagnosis.not_given = WhatWasNotGiven(store, trees);
  diagnosis.summary = Summary(diagnosis, store.diagnostics.LostInput());
  return diagnosis;
}

}  // namespace teller::locate
