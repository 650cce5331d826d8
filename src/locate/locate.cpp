#include "locate/locate.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>

#include "locate/counter_cause.hpp"
#include "locate/counterfactual.hpp"
#include "locate/death.hpp"
#include "locate/divergence.hpp"
#include "locate/explain.hpp"
#include "locate/front_end.hpp"
#include "locate/hypothesis.hpp"
#include "locate/log_cause.hpp"
#include "locate/log_facts.hpp"
#include "locate/look_alikes.hpp"
#include "locate/lost_ranks.hpp"
#include "locate/maybe.hpp"
#include "locate/measured.hpp"
#include "locate/missing.hpp"
#include "locate/net_path.hpp"
#include "locate/not_given.hpp"
#include "locate/operator_calls.hpp"
#include "locate/peer_shift.hpp"
#include "locate/quota.hpp"
#include "locate/repeated_calls.hpp"
#include "locate/resources.hpp"
#include "locate/saves.hpp"
#include "locate/select.hpp"
#include "locate/stand_still.hpp"
#include "locate/suspects.hpp"
#include "locate/unanswered.hpp"
#include "locate/vanished.hpp"
#include "locate/workload.hpp"
#include "slice/slice.hpp"

namespace teller::locate {

namespace {

using trace::Diagnosis;
using trace::Finding;
using trace::VerdictStatus;

constexpr double kComputes = 0.3;       // processors that a front end uses when it is slow because it computes
constexpr size_t kMostReplays = 32;     // to tell which gaps are another stage's doing
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
    AddEvidence(finding, store, node.log.value());
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

/// A stage of a pipeline has nothing to do until the one before it is done: its gaps are longer, and shorter ones would
/// save nothing. Such claims go before causes are chosen: they are the echo of one. Where there are too many to test,
/// the rest is only suspected.
void DropWaitingStages(const Scene& scene, std::vector<Hypothesis>& claims, double false_alarms) {
  const auto& all = scene.trees.collectives;
  if (std::none_of(all.begin(), all.end(), [](const trace::Collective& c) { return c.point_to_point; })) return;
  std::vector<size_t> places;
  std::vector<Hypothesis> gaps;
  for (size_t c = 0; c < claims.size(); ++c) {
    const Hypothesis& h = claims[c];
    const bool gap = h.trouble == Trouble::kGapWork || (h.trouble == Trouble::kPause && h.in_gap);
    if (!gap || h.false_alarm >= false_alarms || !UsesDevice(scene, h.process)) continue;
    places.push_back(c);
    gaps.push_back(h);
  }
  const auto tests = TestClaims(scene, gaps, kMostReplays);
  std::vector<size_t> by_loss(gaps.size());  // those that cost most were tested
  std::iota(by_loss.begin(), by_loss.end(), size_t{0});
  std::stable_sort(by_loss.begin(), by_loss.end(), [&](size_t a, size_t b) { return gaps[a].lost > gaps[b].lost; });
  std::vector<bool> echo(claims.size(), false);
  for (size_t i = 0; i < by_loss.size(); ++i) {
    const auto& test = tests[by_loss[i]];
    Hypothesis& claim = claims[places[by_loss[i]]];
    if (i >= kMostReplays) claim.false_alarm = std::max({claim.false_alarm, kMaybe, false_alarms});
    echo[places[by_loss[i]]] =
        test && test->lost > 0 && static_cast<double>(test->saved) < kNecessary * static_cast<double>(test->lost);
  }
  size_t next = 0;
  std::erase_if(claims, [&](const Hypothesis&) { return echo[next++]; });
}

/// An operator of the host whose repair would hardly help is slow beside what the job waits for: no cause. Not so a
/// kernel: what makes one slower does so on all ranks, and repairing one of them alone says nothing.
bool IsRejected(const Scene& scene, const Hypothesis& claim, const std::optional<Counterfactual>& test) {
  std::set<int> ranks;
  for (const trace::Process& process : scene.store.processes) {
    // Where a rank was read twice its twin would be waited for.
    if (process.rank && !ranks.insert(*process.rank).second) return false;
  }
  return claim.trouble == Trouble::kSlowOperator && claim.slot.kind == SlotKey::Kind::kOp && test && test->lost > 0 &&
         static_cast<double>(test->saved) < kNecessary * static_cast<double>(test->lost);
}

/// Slow transfers are what a broken link between devices causes: where a log names one, that is the source.
void OrderLinks(std::vector<Finding>& findings) {
  for (const Finding& named : findings) {
    if (named.fault != trace::FaultClass::kIntraLinkDegraded) continue;
    for (Finding& other : findings) {
      if (other.fault == trace::FaultClass::kNetLinkFault && named.onset <= other.end)
        other.score = std::min(other.score, named.score - 0.01);
    }
  }
}

void OrderFindings(std::vector<Finding>& findings) {
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    const bool a_proof = IsProof(a);
    const bool b_proof = IsProof(b);
    if (a_proof != b_proof) return a_proof;
    // Of what is equally sure, what began first and cost most: others wait for it. What has no time comes last.
    const auto by = [](const Finding& f) { return std::tuple(-f.score, f.onset == trace::kNoTime, f.onset, -f.cost); };
    return by(a) < by(b);
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
  const Measured measured(store, trees);
  const Scene& scene = measured.scene;
  const CpuWitness& witness = measured.witness;

  std::vector<Hypothesis> claims = SearchVertical(scene);
  for (auto* search : {&SearchHorizontal, &SearchPeerShifts, &SearchOperatorCalls}) {
    for (auto& claim : (*search)(scene)) {
      claim.compares_ranks = true;
      claims.push_back(std::move(claim));
    }
  }
  for (auto* search : {&SearchRepeatedCalls, &SearchQuotas, &SearchSlowSaves}) {
    for (auto& claim : (*search)(scene)) claims.push_back(std::move(claim));
  }
  NoteSaves(scene, claims, diagnosis.notes);
  DropExplained(scene, claims, diagnosis.notes);
  DropLookAlikes(scene, claims, diagnosis.notes);
  DropWaitingStages(scene, claims, options.false_alarms);
  Unproved unproved;
  unproved.Note(claims, options.false_alarms);
  claims = SelectCauses(scene, std::move(claims), options.false_alarms);
  const auto tests = TestClaims(scene, claims);
  for (size_t c = 0; c < claims.size(); ++c) {
    if (IsRejected(scene, claims[c], tests[c])) {
      claims[c].false_alarm = std::max({claims[c].false_alarm, kMaybe, options.false_alarms});
      unproved.Note({claims[c]}, options.false_alarms);
      continue;
    }
    diagnosis.findings.push_back(Explain(scene, claims[c], tests[c]));
    AddLogEvidence(store, trees, diagnosis.findings.back());
  }
  for (auto* search : {&FindLogCauses, &FindCommRecordCauses, &FindCommPerfCauses, &FindTopologyCauses}) {
    LogCauses causes = (*search)(store);
    unproved.TakeFrom(causes.findings, options.false_alarms);
    for (auto& finding : causes.findings) diagnosis.findings.push_back(std::move(finding));
    for (auto& note : causes.notes) diagnosis.notes.push_back(std::move(note));
  }
  std::vector<Finding> path = FindNetPath(scene);
  unproved.TakeFrom(path, options.false_alarms);
  for (Finding& finding : path) diagnosis.findings.push_back(std::move(finding));
  OrderLinks(diagnosis.findings);
  std::vector<Finding> front_end = FindFrontEndCauses(store, trees, diagnosis.notes, &witness);
  unproved.TakeFrom(front_end, options.false_alarms);
  OrderFrontEnd(diagnosis.findings, front_end, witness);
  for (Finding& finding : front_end) diagnosis.findings.push_back(std::move(finding));
  std::vector<Finding> still = FindStandStills(store, trees, witness, diagnosis.notes);
  unproved.TakeFrom(still, options.false_alarms);
  JoinStandStills(std::move(still), diagnosis.findings);
  std::vector<Finding> unanswered = FindUnanswered(store, trees, witness, diagnosis.notes);
  unproved.TakeFrom(unanswered, options.false_alarms);
  JoinUnanswered(std::move(unanswered), diagnosis.findings);
  std::vector<Finding> counters = FindCounterCauses(store, trees, diagnosis.notes);
  unproved.TakeFrom(counters, options.false_alarms);
  JoinCounterCauses(std::move(counters), diagnosis.findings, OnlyCountedProcess(store));
  std::vector<Finding> vanished = FindVanished(store, trees, diagnosis.findings);
  unproved.TakeFrom(vanished, options.false_alarms);
  for (Finding& finding : vanished) diagnosis.findings.push_back(std::move(finding));
  for (Finding& finding : diagnosis.findings) {
    CompleteDeath(store, trees, finding);
    CompleteDivergence(store, trees, finding);
  }
  DoubtWhatLostRanksMayExplain(store, diagnosis.findings);
  PutEchoesBehind(store, diagnosis.findings);
  NoteLongSteps(scene, diagnosis.notes);
  OrderFindings(diagnosis.findings);
  Number(diagnosis.findings);

  if (!diagnosis.findings.empty()) {
    diagnosis.status = VerdictStatus::kAbnormal;
    diagnosis.confidence = std::clamp(diagnosis.findings.front().score, 0.0, 0.999);
  } else {
    diagnosis.missing = WhatIsMissing(store, trees, measured.normals);
    diagnosis.status = diagnosis.missing.empty() ? VerdictStatus::kNormal : VerdictStatus::kCannotTell;
    diagnosis.confidence = !diagnosis.missing.empty() ? 0.0 : store.diagnostics.LostInput() ? 0.5 : 0.9;
  }
  diagnosis.suspects = FindSuspects(scene, std::move(unproved), diagnosis.findings, options.most_suspects);
  diagnosis.not_given = WhatWasNotGiven(store, trees);
  diagnosis.summary = Summary(diagnosis, store.diagnostics.LostInput());
  return diagnosis;
}

}  // namespace teller::locate
