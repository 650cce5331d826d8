#include "locate/suspects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <tuple>

#include "locate/explain.hpp"
#include "locate/log_text.hpp"
#include "locate/naming.hpp"
#include "locate/own_excess.hpp"
#include "locate/resources.hpp"

namespace teller::locate {

namespace {

using trace::FaultClass;
using trace::Finding;
using trace::Suspect;

constexpr size_t kMostProcesses = 3;
constexpr size_t kMostOperators = 3;  // of the first process
constexpr size_t kMostClaims = 16;    // that are looked at
constexpr size_t kMostSteps = 5;      // that are listed
constexpr double kSaysNothing = 0.5;  // chance of a healthy run to show as much
constexpr double kMostOf = 0.5;       // of what was lost: that part is what it is about
constexpr double kOneStep = 0.7;      // the same, of a single step
constexpr size_t kMostQuoted = 160;   // characters of a log's line

/// True where the process as a whole is suspected; its operator is then only the first place to look.
bool IsWhole(const trace::Culprit& culprit) {
  return culprit.layer == "host" || culprit.layer == "process" || culprit.layer == "scheduler";
}

std::string Who(const trace::Culprit& culprit) {
  std::string text = culprit.rank ? fmt::format("rank {}", *culprit.rank) : std::string();
  if (!culprit.process.empty() && !(culprit.rank && culprit.process == fmt::format("rank{}", *culprit.rank)))
    text += (text.empty() ? "" : ", ") + culprit.process;
  if (!culprit.op.empty() && !IsWhole(culprit)) text += (text.empty() ? "" : ", ") + culprit.op;
  if (!culprit.module.empty()) text += " in " + culprit.module;
  return text.empty() ? "no process or rank is named" : text;
}

/// "rank 1, aten::mm: 12 ms more than usual in 3 steps, most in step 14".
std::string What(const Suspect& suspect, size_t steps) {
  std::string text = Who(suspect.culprit) + ": ";
  text += suspect.lost > 0 ? Ms(suspect.lost) + " more than usual" : "not as usual";
  if (steps > 0) text += fmt::format(" in {} step{}", steps, steps == 1 ? "" : "s");
  if (!suspect.steps.empty()) text += fmt::format(", most in step {}", suspect.steps.front().index);
  if (!suspect.culprit.op.empty() && IsWhole(suspect.culprit))
    text += fmt::format("; {} is its most unusual operator", suspect.culprit.op);
  return text;
}

/// "5 of 100", "1 of 1000000".
std::string Chance(double p) {
  constexpr double kLeast = 1e-9;
  constexpr double kRoundsToOne = 0.95;
  if (p < kLeast) return fmt::format("less than 1 of {:.0f}", 1 / kLeast);
  double of = 100;
  while (p * of < kRoundsToOne) of *= 10;
  return fmt::format("{:.0f} of {:.0f}", std::round(p * of), of);
}

/// True when it names neither time nor steps nor anything that was read: nothing to look at.
bool SaysNothing(const Finding& finding) {
  return finding.cost <= 0 && finding.steps.empty() && finding.evidence.empty();
}

/// "rank 1: "..."", what it rests on.
std::string Quote(const Finding& finding) {
  const trace::Culprit& culprit = finding.culprit;
  const bool named = culprit.rank || !culprit.process.empty();
  return fmt::format("{}{}\"{}\"", named ? Who(culprit) : "", named ? ": " : "",
                     Shorten(FirstLine(finding.evidence.front().text), kMostQuoted));
}

Suspect FromFinding(const Finding& finding) {
  Suspect suspect{.culprit = finding.culprit,
                  .fault = finding.fault,
                  .view = finding.view,
                  .false_alarm_probability = std::min(1.0, finding.false_alarm_probability),
                  .lost = finding.cost};
  const size_t listed = std::min(kMostSteps, finding.steps.size());
  suspect.steps.assign(finding.steps.begin(), finding.steps.begin() + static_cast<std::ptrdiff_t>(listed));
  const bool timed = finding.cost > 0 || !finding.steps.empty();
  const std::string what = timed ? What(suspect, finding.steps.size()) : Quote(finding);
  suspect.text = fmt::format("{} (a healthy run shows as much in {})", what, Chance(*suspect.false_alarm_probability));
  return suspect;
}

class General {
 public:
  explicit General(const Scene& scene) : scene_(scene) {}

  std::vector<Suspect> Run() const {
    std::vector<OwnExcess> ranked = RankOwnExcess(scene_);
    if (ranked.size() > kMostProcesses) ranked.resize(kMostProcesses);
    std::vector<Suspect> out;
    std::vector<OperatorExcess> of_first;
    for (const OwnExcess& excess : ranked) {
      std::vector<OperatorExcess> operators = RankOperators(scene_, excess.process);
      out.push_back(OfProcess(excess, operators.empty() ? nullptr : &operators.front()));
      if (out.size() == 1) of_first = std::move(operators);
    }
    for (size_t i = 1; i < std::min(kMostOperators, of_first.size()); ++i)
      out.push_back(OfOperator(ranked.front().process, of_first[i]));
    return out;
  }

 private:
  using Losses = std::vector<std::pair<uint32_t, Nanos>>;

  Suspect Start(trace::ProcessRow process) const {
    Suspect suspect;
    suspect.culprit.rank = scene_.store.processes[process.value()].rank;
    suspect.culprit.process = ProcessName(scene_.store, process);
    suspect.view = "vertical";
    return suspect;
  }

  Suspect OfOperator(trace::ProcessRow process, const OperatorExcess& op) const {
    Suspect suspect = Start(process);
    NameOperator(op, suspect);
    Blame(process, op, suspect);
    Close(op.lost, op.steps, suspect);
    return suspect;
  }

  Suspect OfProcess(const OwnExcess& excess, const OperatorExcess* op) const {
    Suspect suspect = Start(excess.process);
    if (op != nullptr) NameOperator(*op, suspect);
    if (op != nullptr && static_cast<double>(op->lost) >= kMostOf * static_cast<double>(excess.lost)) {
      Blame(excess.process, *op, suspect);
      Close(op->lost, op->steps, suspect);
      return suspect;
    }
    const Nanos worst = excess.steps.empty() ? 0 : excess.steps.front().second;
    if (excess.gap_weight >= kMostOf * excess.weight) {
      suspect.fault = FaultClass::kHostCpuBound;
      suspect.culprit.layer = "scheduler";
      suspect.culprit.process = SchedulerName(scene_.store, excess.process);
      if (SchedulerIsElsewhere(scene_.store, excess.process)) suspect.culprit.rank.reset();
    } else if (static_cast<double>(worst) >= kOneStep * static_cast<double>(excess.lost)) {
      suspect.fault = FaultClass::kRuntimePause;
      suspect.culprit.layer = "process";
    } else {
      suspect.fault = Ranks() > 1 ? FaultClass::kStragglerRank : FaultClass::kCpuStarved;
      suspect.culprit.layer = "host";
    }
    Close(excess.lost, excess.steps, suspect);
    return suspect;
  }

  void NameOperator(const OperatorExcess& op, Suspect& suspect) const {
    suspect.culprit.op = std::string(scene_.store.name(op.span));
  }

  /// What it would be if the operator were slow. Where it launches work on a device, its own time is the host's.
  void Blame(trace::ProcessRow process, const OperatorExcess& op, Suspect& suspect) const {
    const bool kernel = op.kind == SlotKey::Kind::kGpu;
    suspect.culprit.layer = kernel ? "kernel" : "op";
    suspect.culprit.module = ModuleAt(scene_.store, op.span);
    suspect.fault = !kernel && UsesDevice(scene_, process) ? FaultClass::kHostCpuBound : FaultClass::kKernelRegression;
  }

  void Close(Nanos lost, const Losses& losses, Suspect& suspect) const {
    suspect.lost = lost;
    for (const auto& [s, part] : losses) {
      if (suspect.steps.size() == kMostSteps) break;
      const trace::Step& step = scene_.trees.steps[s];
      const auto share = static_cast<double>(part) / static_cast<double>(std::max<Nanos>(1, step.duration()));
      suspect.steps.push_back({.row = trace::StepRow(s),
                               .rank = step.rank,
                               .index = step.index,
                               .name = step.name,
                               .begin = step.begin,
                               .end = step.end,
                               .score = std::clamp(share, 0.0, 1.0)});
    }
    suspect.text = What(suspect, losses.size()) + " (only the most unusual here; every run has one)";
  }

  size_t Ranks() const {
    std::set<int> ranks;
    for (const trace::Process& process : scene_.store.processes) {
      if (process.rank) ranks.insert(*process.rank);
    }
    return ranks.size();
  }

  const Scene& scene_;
};

bool SameProcess(const trace::Culprit& a, const trace::Culprit& b) {
  return a.rank == b.rank && a.process == b.process;
}

/// Two that name nobody are the same only where they are about the same.
template <class Other>
bool SameCulprit(const Suspect& one, const Other& other) {
  const bool named = one.culprit.rank || !one.culprit.process.empty();
  const bool alike =
      one.fault == other.fault || (!one.culprit.layer.empty() && one.culprit.layer == other.culprit.layer);
  return SameProcess(one.culprit, other.culprit) && (named || alike);
}

/// True when a finding names the same process, or explains most of the steps.
bool IsCovered(const Suspect& suspect, const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
    if (SameCulprit(suspect, finding)) return true;
    if (suspect.steps.empty() || finding.onset == trace::kNoTime) return false;
    const auto meanwhile = std::count_if(suspect.steps.begin(), suspect.steps.end(), [&](const auto& step) {
      return step.begin <= finding.end && step.end >= finding.onset;
    });
    return 2 * static_cast<size_t>(meanwhile) > suspect.steps.size();
  });
}

/// True when one of these says at least as much.
bool IsSaid(const Suspect& suspect, const std::vector<Suspect>& said) {
  return std::any_of(said.begin(), said.end(), [&](const Suspect& other) {
    return SameCulprit(suspect, other) && (suspect.culprit.op.empty() || suspect.culprit.op == other.culprit.op);
  });
}

/// To say what a claim is takes a while, and there may be many.
void KeepLeastLikely(const Scene& scene, std::vector<Hypothesis>& claims) {
  const auto by = [&](const Hypothesis& h) {
    return std::tuple(h.false_alarm, -h.lost, h.rank, ProcessName(scene.store, h.process), h.onset,
                      scene.store.text(trace::StringId(h.slot.name)));
  };
  std::erase_if(claims, [](const Hypothesis& h) { return h.false_alarm > kSaysNothing || h.lost <= 0; });
  const size_t kept = std::min(kMostClaims, claims.size());
  std::partial_sort(claims.begin(), claims.begin() + static_cast<std::ptrdiff_t>(kept), claims.end(),
                    [&](const Hypothesis& a, const Hypothesis& b) { return by(a) < by(b); });
  claims.resize(kept);
}

}  // namespace

void Unproved::TakeFrom(std::vector<Finding>& list, double false_alarms) {
  const auto rest = std::stable_partition(list.begin(), list.end(),
                                          [&](const Finding& f) { return f.false_alarm_probability < false_alarms; });
  std::move(rest, list.end(), std::back_inserter(findings));
  list.erase(rest, list.end());
}

void Unproved::Note(const std::vector<Hypothesis>& list, double false_alarms) {
  std::copy_if(list.begin(), list.end(), std::back_inserter(claims),
               [&](const Hypothesis& claim) { return claim.false_alarm >= false_alarms; });
}

std::vector<Suspect> FindSuspects(const Scene& scene, Unproved unproved, const std::vector<Finding>& findings,
                                  size_t most) {
  if (most == 0) return {};
  std::vector<Suspect> found;
  for (const Finding& finding : unproved.findings) {
    if (finding.false_alarm_probability <= kSaysNothing && !SaysNothing(finding)) found.push_back(FromFinding(finding));
  }
  KeepLeastLikely(scene, unproved.claims);
  for (const Hypothesis& claim : unproved.claims) found.push_back(FromFinding(Explain(scene, claim, std::nullopt)));
  std::stable_sort(found.begin(), found.end(), [](const Suspect& a, const Suspect& b) {
    return *a.false_alarm_probability < *b.false_alarm_probability;
  });
  std::vector<Suspect> general = General(scene).Run();
  std::move(general.begin(), general.end(), std::back_inserter(found));
  std::vector<Suspect> out;
  for (Suspect& suspect : found) {
    if (out.size() == most) break;
    if (!IsCovered(suspect, findings) && !IsSaid(suspect, out)) out.push_back(std::move(suspect));
  }
  return out;
}

}  // namespace teller::locate
