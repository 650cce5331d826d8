#include "report/diagnosis_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/clock.hpp"
#include "report/printable.hpp"
#include "report/summary.hpp"
#include "report/units.hpp"

namespace teller::report {

namespace {

using trace::Diagnosis;
using trace::Finding;
using trace::VerdictStatus;

constexpr size_t kShownSteps = 4;
constexpr size_t kShownVictims = 4;
constexpr size_t kShownFiles = 10;
constexpr size_t kShownPlaces = 3;

Ink InkOf(VerdictStatus status) {
  switch (status) {
    case VerdictStatus::kNormal: return Ink::kGreen;
    case VerdictStatus::kAbnormal: return Ink::kRed;
    case VerdictStatus::kCannotTell: return Ink::kYellow;
  }
  return Ink::kPlain;
}

std::string_view Title(VerdictStatus status) {
  switch (status) {
    case VerdictStatus::kNormal: return "NOTHING ABNORMAL";
    case VerdictStatus::kAbnormal: return "ABNORMAL";
    case VerdictStatus::kCannotTell: return "CANNOT TELL";
  }
  return "CANNOT TELL";
}

void AddVerdict(const Diagnosis& diagnosis, Page& page) {
  std::string head = page.Inked(InkOf(diagnosis.status), Title(diagnosis.status));
  if (!diagnosis.findings.empty()) head += "  " + page.Inked(Ink::kBold, Name(diagnosis.findings.front().fault));
  if (diagnosis.status != VerdictStatus::kNormal && diagnosis.confidence > 0) {
    head += "  " + page.Inked(Ink::kDim, fmt::format("confidence {:.2f}", diagnosis.confidence));
  }
  page.Raw(head);
  if (!diagnosis.summary.empty()) page.Paragraph(2, diagnosis.summary);
  if (diagnosis.status == VerdictStatus::kAbnormal && !diagnosis.findings.empty()) {
    page.Field("do first", FirstAction(diagnosis.findings.front().fault), Ink::kBold);
  }
  bool first = true;
  for (const std::string& missing : diagnosis.missing) {
    if (diagnosis.summary.find(missing) != std::string::npos) continue;
    page.Field(first ? "capture" : "", missing);
    first = false;
  }
}

/// No verdict: what whoever knows that something was slow looks at first. Nothing is put beside a verdict unless asked
/// for.
void AddSuspects(const Diagnosis& diagnosis, Page& page) {
  const auto& suspects = diagnosis.suspects;
  const bool all = page.options().all;
  if (suspects.empty() || (!diagnosis.findings.empty() && !all)) return;
  page.Field("not proved",
             diagnosis.findings.empty() ? "if something was slow all the same, look first at:" : "least usual besides:",
             Ink::kDim);
  const size_t shown = all ? suspects.size() : 1;
  for (size_t i = 0; i < shown; ++i) page.Field("", suspects[i].text, Ink::kDim);
}

std::string CulpritText(const trace::Culprit& culprit) {
  std::vector<std::string> parts;
  if (culprit.rank) parts.push_back(fmt::format("rank {}", *culprit.rank));
  if (!culprit.process.empty()) parts.push_back("process " + culprit.process);
  if (!culprit.thread.empty()) parts.push_back("thread " + culprit.thread);
  if (!culprit.layer.empty()) parts.push_back("layer " + culprit.layer);
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string StepText(const trace::AbnormalStep& step) {
  std::string text = step.rank ? fmt::format("rank {} ", *step.rank) : std::string();
  text += step.name.empty() ? fmt::format("step {}", step.index) : fmt::format("step {} \"{}\"", step.index, step.name);
  if (step.begin != trace::kNoTime && step.end != trace::kNoTime) {
    text += fmt::format(", {} at {}", Duration(step.end - step.begin), TimeOfDay(step.begin));
  }
  return text;
}

void AddSteps(const Finding& finding, Page& page) {
  const size_t shown = page.options().all ? finding.steps.size() : std::min(finding.steps.size(), kShownSteps);
  for (size_t i = 0; i < shown; ++i) page.Field(i == 0 ? "steps" : "", StepText(finding.steps[i]));
  if (finding.steps.size() > shown) page.Field("", fmt::format("and {} more", finding.steps.size() - shown), Ink::kDim);
}

void AddCost(const Finding& finding, Page& page) {
  std::string text;
  if (finding.cost > 0) text = Duration(finding.cost) + " lost";
  if (finding.cost > 0 && !finding.steps.empty()) text += " in " + Count(finding.steps.size(), "step");
  if (finding.step_without && finding.step_observed) {
    if (!text.empty()) text += "; ";
    text += fmt::format("one takes {} and would take {} without it", Duration(*finding.step_observed),
                        Duration(*finding.step_without));
  }
  if (!text.empty()) page.Field("cost", text);
}

void AddVictims(const Finding& finding, Page& page) {
  const size_t shown = page.options().all ? finding.victims.size() : std::min(finding.victims.size(), kShownVictims);
  for (size_t i = 0; i < shown; ++i) {
    const trace::Victim& victim = finding.victims[i];
    const std::string who = victim.rank ? fmt::format("rank {}: ", *victim.rank) : std::string();
    page.Field(i == 0 ? "victims" : "", who + victim.what);
  }
  if (finding.victims.size() > shown) {
    page.Field("", fmt::format("and {} more", finding.victims.size() - shown), Ink::kDim);
  }
}

void AddEvidence(const trace::Store& store, const Finding& finding, Page& page) {
  bool first = true;
  for (const trace::Evidence& evidence : finding.evidence) {
    std::vector<std::string> where;
    if (evidence.at != trace::kNoTime) where.push_back(TimeOfDay(evidence.at));
    const std::string path = FilePath(store, evidence.file);
    const std::string ref = EvidenceRef(store, evidence);
    if (!path.empty()) where.push_back(path);
    if (!ref.empty()) where.push_back(ref);
    page.Field(first ? "evidence" : "", fmt::format("[{}] {}", evidence.id, evidence.text));
    if (!where.empty()) page.Paragraph(kFieldColumn + 5, fmt::format("{}", fmt::join(where, "  ")), Ink::kDim);
    first = false;
  }
}

/// `told` is what stands above already.
void AddFinding(const trace::Store& store, const Finding& finding, const Diagnosis& told, Page& page) {
  page.Gap();
  page.Raw(page.Inked(Ink::kBold, finding.id + "  ") + page.Inked(Ink::kCyan, Name(finding.fault)) +
           page.Inked(Ink::kDim, fmt::format("  score {:.2f}, false alarm {:.2g} a run", finding.score,
                                             finding.false_alarm_probability)));
  const std::string culprit = CulpritText(finding.culprit);
  page.Field("culprit", culprit.empty() ? "not told by the evidence" : culprit, Ink::kBold);
  if (!finding.culprit.op.empty()) page.Field("operator", finding.culprit.op, Ink::kBold);
  if (!finding.culprit.module.empty()) page.Field("module", finding.culprit.module, Ink::kBold);
  if (!finding.culprit.log_record.empty()) page.Field("log line", finding.culprit.log_record);
  if (finding.onset != trace::kNoTime) {
    page.Field("when", finding.end == trace::kNoTime || finding.end <= finding.onset
                           ? Time(finding.onset)
                           : fmt::format("{} to {} ({})", Time(finding.onset), TimeOfDay(finding.end),
                                         Duration(finding.end - finding.onset)));
  }
  AddSteps(finding, page);
  AddCost(finding, page);
  AddVictims(finding, page);
  if (!finding.explanation.empty() && finding.explanation != told.summary) page.Field("why", finding.explanation);
  AddEvidence(store, finding, page);
  std::vector<std::string> others;
  for (const trace::Alternative& a : finding.alternatives)
    others.push_back(fmt::format("{} ({:.2f})", Name(a.fault), a.p));
  if (!others.empty()) page.Field("or", fmt::format("{}", fmt::join(others, ", ")));
  if (finding.fault != told.findings.front().fault) page.Field("do first", FirstAction(finding.fault));
}

void AddNotes(const Diagnosis& diagnosis, Page& page) {
  if (diagnosis.notes.empty()) return;
  page.Gap();
  page.Head("Seen, and no fault");
  for (const trace::Note& note : diagnosis.notes) {
    page.Field(note.begin == trace::kNoTime ? "-" : TimeOfDay(note.begin).substr(0, 8), note.text);
  }
}

void AddNotGiven(const Diagnosis& diagnosis, Page& page) {
  if (diagnosis.not_given.empty()) return;
  page.Gap();
  page.Head("Not given, and what it costs");
  for (const trace::NotGiven& n : diagnosis.not_given) page.Paragraph(2, n.input + ": " + n.cost, Ink::kDim);
}

/// One kind of diagnostic over all files.
struct DiagnosticGroup {
  const base::DiagnosticKind* kind = nullptr;
  uint64_t count = 0;
  std::vector<std::string> places;  ///< one a file
};

/// Order: worst first, then by code.
std::vector<DiagnosticGroup> GroupByKind(const trace::Store& store) {
  std::map<std::pair<int, std::string_view>, DiagnosticGroup> groups;
  for (const base::Diagnostic& d : store.diagnostics.All()) {
    DiagnosticGroup& group = groups[{-static_cast<int>(d.kind->severity), d.kind->code}];
    group.kind = d.kind;
    group.count += d.count;
    std::string place = FilePath(store, d.file);
    if (!d.places.empty()) place += (place.empty() ? "" : ": ") + d.places.front();
    group.places.push_back(std::move(place));
  }
  std::vector<DiagnosticGroup> out;
  for (auto& [key, group] : groups) out.push_back(std::move(group));
  return out;
}

std::string RanksText(const std::vector<int>& ranks) {
  if (ranks.empty()) return "no rank named";
  if (ranks.size() == 1) return fmt::format("rank {}", ranks.front());
  const bool dense = ranks.back() - ranks.front() + 1 == static_cast<int>(ranks.size());
  if (dense) return fmt::format("{} ranks ({}-{})", ranks.size(), ranks.front(), ranks.back());
  return fmt::format("{} ranks ({})", ranks.size(), fmt::join(ranks, ", "));
}

}  // namespace

void AddWhatWasRead(const engine::Run& run, Page& page) {
  const Summary s = Summarize(run);
  std::vector<std::string> parts;
  if (s.trace_files > 0) parts.push_back(Count(s.trace_files, "trace file"));
  if (s.log_files > 0) parts.push_back(Count(s.log_files, "log"));
  if (s.counter_files > 0) parts.push_back(Count(s.counter_files, "file") + " of counters");
  if (s.graph_files > 0) parts.push_back(Count(s.graph_files, "file") + " of learned graphs");
  if (!s.ranks.empty()) parts.push_back(RanksText(s.ranks));
  parts.push_back(Count(s.spans, "span"));
  parts.push_back(Count(s.steps, "step"));
  parts.push_back(Count(s.log_records, "log record"));
  if (s.requests > 0) parts.push_back(Count(s.requests, "request"));
  if (s.counter_samples > 0) parts.push_back(Count(s.counter_samples, "counter sample"));
  page.Field("read", fmt::format("{}", fmt::join(parts, ", ")));
  if (s.begin != trace::kNoTime) {
    page.Field("", fmt::format("{} to {}{} ({})", Time(s.begin), TimeOfDay(s.end), IsEpoch(s.begin) ? " UTC" : "",
                               Duration(s.end - s.begin)));
  }
  if (const std::string clock = ClockLine(run); !clock.empty()) page.Field("", clock);
  const uint64_t learned = trace::OriginsBySource(run.trees.graph_origins).at(trace::GraphSource::kLearned);
  if (learned > 0) page.Field("", Count(learned, "replayed kernel") + " with module or operator from learned graphs");
  if (!run.trees.log_clock_method.empty()) {
    std::string clock = "logs on the trace clock by " + run.trees.log_clock_method;
    if (run.trees.log_clock_error > 0) clock += ", +/- " + Duration(run.trees.log_clock_error);
    clock += "; " + std::to_string(run.trees.logs_in_steps) + " records fall into steps";
    page.Field("", clock);
  }
}

void AddUnusedFiles(const trace::Store& store, Page& page) {
  const size_t limit = page.options().all ? store.files.size() : kShownFiles;
  size_t shown = 0;
  size_t more = 0;
  for (const trace::File& file : store.files) {
    if (file.note.empty()) continue;
    if (shown == limit) {
      ++more;
      continue;
    }
    page.Field(shown++ == 0 ? "not used" : "", file.path + ": " + file.note);
  }
  if (more > 0) page.Field("", fmt::format("and {} more files", more), Ink::kDim);
}

void AddDiagnostics(const trace::Store& store, Page& page) {
  std::vector<DiagnosticGroup> groups = GroupByKind(store);
  if (groups.empty()) return;
  page.Gap();
  page.Head("About the input");
  for (const DiagnosticGroup& group : groups) {
    const bool lost = group.kind->severity >= base::Severity::kDataLoss;
    page.Raw("  " + page.Inked(lost ? Ink::kRed : Ink::kDim, Name(group.kind->severity)) + "  " +
             page.Inked(Ink::kPlain, fmt::format("{}  x{}", group.kind->code, Count(group.count))));
    page.Paragraph(6, group.kind->text);
    const size_t shown = page.options().all ? group.places.size() : std::min(group.places.size(), kShownPlaces);
    for (size_t i = 0; i < shown; ++i) page.Paragraph(6, group.places[i], Ink::kDim);
    if (group.places.size() > shown)
      page.Paragraph(6, fmt::format("and {} more files", group.places.size() - shown), Ink::kDim);
  }
}

std::string DiagnosisToText(const engine::Run& run, const Diagnosis& diagnosis, const TextOptions& options) {
  Page page(options);
  AddVerdict(diagnosis, page);
  AddSuspects(diagnosis, page);
  page.Gap();
  AddWhatWasRead(run, page);
  AddUnusedFiles(run.store, page);
  const size_t shown = ShownFindings(diagnosis, options.all);
  for (size_t i = 0; i < shown; ++i) AddFinding(run.store, diagnosis.findings[i], diagnosis, page);
  if (diagnosis.findings.size() > shown) {
    page.Gap();
    page.Line(2, fmt::format("{} more findings: --all shows them", diagnosis.findings.size() - shown), Ink::kDim);
  }
  AddNotes(diagnosis, page);
  AddNotGiven(diagnosis, page);
  AddDiagnostics(run.store, page);
  return page.Take();
}

}  // namespace teller::report
