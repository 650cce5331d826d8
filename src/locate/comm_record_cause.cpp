// Who holds up the others, according to NCCL Flight Recorder dumps.
//
// For every process group the collectives are numbered alike on all ranks. A rank whose oldest unfinished collective
// was finished by others is *stuck*: its own device or its watcher stopped. A rank that has not even issued the
// collective in which the others wait is *missing*. A missing rank that itself waits for another one is that one's
// victim. Roots remain.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "locate/log_cause.hpp"
#include "locate/log_facts.hpp"
#include "locate/proof.hpp"

namespace teller::locate {

namespace {

using trace::CommRecord;
using trace::FaultClass;
using trace::Finding;
using trace::Nanos;

constexpr size_t kVictims = 8;
constexpr double kFalseAlarm = 1e-3;  // a dump is written when something already hung

/// How far one rank came in one group.
struct Progress {
  int64_t issued = -1;
  int64_t finished = -1;
  const CommRecord* oldest = nullptr;  ///< oldest unfinished collective
  bool known = false;
};

struct Group {
  std::string name;
  std::set<int> members;
  std::map<int, Progress> ranks;
  int64_t together = -1;  ///< the last operation that ended on some rank and that none can end without all others
  bool apart = false;     ///< dumps of different moments: some rank is ahead by what another one has not begun
  std::set<int> stuck;
  std::set<int> missing;
  std::set<int> odd;  ///< issued another operation under the same number
  std::vector<const CommRecord*> unfinished;
  const CommRecord* waited = nullptr;  ///< the collective the others wait in
};

bool Unfinished(const CommRecord& r) {
  return r.sequence >= 0 && !r.op.empty() && r.state != "completed";
}

/// Operations that no rank can finish before every rank has begun them. (The root of a broadcast can.)
bool NeedsAll(std::string_view op) {
  for (const std::string_view kind :
       {"all_reduce", "allreduce", "all_gather", "allgather", "reduce_scatter", "all_to_all", "alltoall", "barrier"}) {
    if (op.find(kind) != std::string_view::npos) return true;
  }
  return false;
}

std::map<std::string, Group> BuildGroups(const trace::Store& store) {
  std::map<std::string, Group> groups;
  std::vector<bool> joined(store.comm_groups.size(), false);  // thousands of records of a dump share one list
  for (const auto& r : store.comm_records) {
    Group& group = groups[r.group];
    group.name = r.group;
    if (const auto m = static_cast<size_t>(r.members); r.members >= 0 && !joined[m]) {
      joined[m] = true;
      group.members.insert(store.comm_groups[m].begin(), store.comm_groups[m].end());
    }
    group.members.insert(r.rank);
    if (r.sequence < 0) continue;  // point-to-point: numbered per pair, not comparable over ranks
    Progress& p = group.ranks[r.rank];
    p.known = true;
    if (r.state == "last-completed") {
      p.finished = std::max(p.finished, r.sequence);
      continue;
    }
    p.issued = std::max(p.issued, r.sequence);
    if (r.state == "completed") {
      p.finished = std::max(p.finished, r.sequence);
      if (NeedsAll(r.op)) group.together = std::max(group.together, r.sequence);
    }
    if (!Unfinished(r)) continue;
    group.unfinished.push_back(&r);
    if (p.oldest == nullptr || r.sequence < p.oldest->sequence) p.oldest = &r;
  }
  for (auto& [name, group] : groups) {
    for (auto& [rank, p] : group.ranks) {
      if (p.oldest != nullptr) p.finished = p.oldest->sequence - 1;
    }
  }
  return groups;
}

/// Ranks that issued an operation unlike the others' under one number. Sizes are compared where they must agree.
void FindMismatch(Group& group) {
  std::map<int64_t, std::map<std::string, std::set<int>>> kinds;
  for (const CommRecord* r : group.unfinished) {
    const bool equal = r->op.find("all_reduce") != std::string::npos || r->op.find("broadcast") != std::string::npos;
    kinds[r->sequence][equal ? r->op + " " + r->sizes : r->op].insert(r->rank);
  }
  for (const auto& [sequence, by_kind] : kinds) {
    if (by_kind.size() < 2) continue;
    const auto most = std::max_element(by_kind.begin(), by_kind.end(),
                                       [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    for (const auto& [kind, ranks] : by_kind) {
      if (kind != most->first && ranks.size() < most->second.size()) group.odd.insert(ranks.begin(), ranks.end());
    }
    return;  // later numbers differ because of the first
  }
}

void Judge(Group& group) {
  int64_t top = -1;
  size_t pending = 0;
  for (const auto& [rank, p] : group.ranks) {
    top = std::max(top, p.finished);
    pending += p.oldest != nullptr ? 1 : 0;
  }
  if (pending == 0 || group.members.size() < 2) return;
  // No rank can finish an operation that another one has not even issued: its dump was taken earlier, in a job that
  // runs.
  for (const auto& [rank, p] : group.ranks) group.apart |= p.known && p.issued >= 0 && p.issued < group.together;
  if (group.apart) return;
  int64_t furthest_waited = -1;
  for (const auto& [rank, p] : group.ranks) {
    if (p.oldest != nullptr) furthest_waited = std::max(furthest_waited, p.oldest->sequence);
  }
  for (const auto& [rank, p] : group.ranks) {
    // Who is stuck is soon waited for; a dump that just caught a rank in its last operation proves nothing.
    const bool behind = p.oldest != nullptr && p.oldest->sequence <= top;
    if (behind && furthest_waited > p.oldest->sequence) group.stuck.insert(rank);
  }
  for (const auto& [rank, p] : group.ranks) {
    if (p.oldest == nullptr || group.stuck.count(rank) > 0) continue;
    if (group.waited == nullptr || p.oldest->sequence < group.waited->sequence) group.waited = p.oldest;
  }
  if (group.waited != nullptr) {
    for (const int rank : group.members) {
      const auto it = group.ranks.find(rank);
      if (it != group.ranks.end() && it->second.known && it->second.issued >= group.waited->sequence) continue;
      // Nothing known of a rank is weak: it counts only against the word of most members.
      if ((it == group.ranks.end() || !it->second.known) && pending * 2 < group.members.size()) continue;
      group.missing.insert(rank);
    }
  }
  FindMismatch(group);
}

/// Ranks that wait for `rank` to do something, and whom `rank` itself waits for.
std::set<int> WaitsFor(const std::map<std::string, Group>& groups, int rank) {
  std::set<int> out;
  for (const auto& [name, group] : groups) {
    const auto it = group.ranks.find(rank);
    if (it == group.ranks.end() || it->second.oldest == nullptr || group.stuck.count(rank) > 0) continue;
    if (group.missing.count(rank) > 0) continue;
    out.insert(group.missing.begin(), group.missing.end());
    out.insert(group.stuck.begin(), group.stuck.end());
  }
  out.erase(rank);
  return out;
}

std::string Cite(Finding& finding, const CommRecord& record, const std::string& text) {
  trace::Evidence evidence;
  evidence.kind = trace::Evidence::Kind::kCollective;
  evidence.file = record.file;
  evidence.ref = "collective:" + std::to_string(record.sequence);
  evidence.at = record.created;
  evidence.text = text;
  return locate::Cite(finding, std::move(evidence));
}

std::string Describe(const CommRecord& record, const Group& group) {
  return "rank " + std::to_string(record.rank) + ": " + record.op + " number " + std::to_string(record.sequence) +
         " of group " + group.name + " is " + record.state + " " + record.sizes;
}

Finding Blame(const trace::Store& store, const std::map<std::string, Group>& groups, int rank, bool has_dump) {
  Finding finding;
  finding.view = "horizontal";
  finding.culprit.rank = rank;
  finding.culprit.process = "rank" + std::to_string(rank);
  finding.culprit.layer = "collective";
  finding.false_alarm_probability = kFalseAlarm;
  const std::string who = "Rank " + std::to_string(rank);
  std::string text;
  const Group* as_stuck = nullptr;
  const Group* as_missing = nullptr;
  const Group* as_odd = nullptr;
  for (const auto& [name, group] : groups) {
    const auto older = [](const CommRecord* a, const CommRecord* b) {
      return b == nullptr || (a != nullptr && a->created < b->created);
    };
    if (group.stuck.count(rank) > 0) {
      const CommRecord* own = group.ranks.at(rank).oldest;
      if (as_stuck == nullptr || older(own, as_stuck->ranks.at(rank).oldest)) as_stuck = &group;
    }
    if (group.missing.count(rank) > 0 && (as_missing == nullptr || older(group.waited, as_missing->waited)))
      as_missing = &group;
    if (group.odd.count(rank) > 0 && as_odd == nullptr) as_odd = &group;
  }
  if (as_odd != nullptr) {
    finding.fault = FaultClass::kCollDivergence;
    const CommRecord* own = as_odd->ranks.at(rank).oldest;
    text = who + " issued another operation than the others under the same number";
    if (own != nullptr) text += " " + Cite(finding, *own, Describe(*own, *as_odd));
    text += ".";
  } else if (as_stuck != nullptr) {
    finding.fault = FaultClass::kGpuHwFault;
    finding.alternatives = {{FaultClass::kGpuAppFault, 0.35}, {FaultClass::kRuntimePause, 0.1}};
    const CommRecord& own = *as_stuck->ranks.at(rank).oldest;
    finding.onset = own.created;
    text = who + " never finished a collective that other ranks of its group finished " +
           Cite(finding, own, Describe(own, *as_stuck)) +
           ": its own device stopped, or nobody there watches it any more.";
  }
  if (as_missing != nullptr) {
    const CommRecord& waited = *as_missing->waited;
    if (finding.evidence.empty() && as_odd == nullptr) {
      finding.fault = has_dump ? FaultClass::kCollDivergence : FaultClass::kProcDeath;
      finding.alternatives = has_dump ? std::vector<trace::Alternative>{{FaultClass::kRuntimePause, 0.35},
                                                                        {FaultClass::kStragglerRank, 0.2}}
                                      : std::vector<trace::Alternative>{{FaultClass::kCollDivergence, 0.3}};
      finding.onset = waited.created;
    }
    const auto own = as_missing->ranks.find(rank);
    text += (text.empty() ? "" : " ") + who + (has_dump ? "" : " left no dump and") +
            " has not issued the collective in which the others wait " +
            Cite(finding, waited, Describe(waited, *as_missing));
    if (own != as_missing->ranks.end() && own->second.issued >= 0)
      text += "; it came to number " + std::to_string(own->second.issued);
    text += ".";
  }
  for (const auto& r : store.comm_records) {
    if (Unfinished(r) && r.created != trace::kNoTime) finding.end = std::max(finding.end, r.created);
  }
  const Group* seen = as_missing != nullptr ? as_missing : as_stuck;
  for (const int other : seen != nullptr ? seen->members : std::set<int>()) {
    if (other == rank || finding.victims.size() >= kVictims || seen->missing.count(other) > 0 ||
        seen->stuck.count(other) > 0)
      continue;
    finding.victims.push_back({other, "waits in group " + seen->name});
  }
  finding.explanation = text;
  finding.score = ScoreOf(finding.false_alarm_probability);
  return finding;
}

/// Ranks issued the collectives of several groups in different orders: each waits for another.
Finding Circle(const std::map<std::string, Group>& groups, const std::set<int>& suspects) {
  Finding finding;
  finding.fault = FaultClass::kCollDivergence;
  finding.view = "horizontal";
  finding.culprit.layer = "collective";
  finding.false_alarm_probability = 3e-3;
  std::string ranks;
  for (const int rank : suspects) {
    if (ranks.size() < 60) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  }
  std::string marks;
  for (const auto& [name, group] : groups) {
    if (group.waited == nullptr || group.missing.empty() || finding.evidence.size() >= 6) continue;
    if (finding.onset == trace::kNoTime || group.waited->created < finding.onset) finding.onset = group.waited->created;
    finding.end = std::max(finding.end, group.waited->created);
    marks += " " + Cite(finding, *group.waited, Describe(*group.waited, group));
  }
  finding.explanation = "Ranks " + ranks + " wait for each other in different groups" + marks +
                        ": they issued their collectives in different orders.";
  finding.score = ScoreOf(finding.false_alarm_probability);
  return finding;
}

/// All wait in the same collective and nobody is missing.
void NobodyToBlame(const std::map<std::string, Group>& groups, LogCauses& out) {
  for (const auto& [name, group] : groups) {
    if (group.waited == nullptr) continue;
    if (group.waited->sequence <= 1) {
      Finding finding;
      finding.fault = FaultClass::kCollFirstOpHang;
      finding.view = "horizontal";
      finding.culprit.layer = "collective";
      finding.alternatives = {{FaultClass::kIntraLinkDegraded, 0.2}, {FaultClass::kNetPathWrong, 0.2}};
      finding.onset = group.waited->created;
      finding.end = finding.onset;
      finding.false_alarm_probability = 5e-3;
      const std::string mark = Cite(finding, *group.waited, Describe(*group.waited, group));
      finding.explanation = "All ranks of group " + name + " wait in its first collective " + mark +
                            ": the path between them does not work; no rank is to blame.";
      finding.score = ScoreOf(finding.false_alarm_probability);
      out.findings.push_back(std::move(finding));
      return;
    }
    out.notes.push_back({"All ranks of group " + name + " wait in the same collective; the dumps name nobody.",
                         group.waited->created, group.waited->created});
    return;
  }
}

}  // namespace

LogCauses FindCommRecordCauses(const trace::Store& store) {
  LogCauses out;
  if (store.comm_records.empty()) return out;
  std::set<int> dumps;
  for (const auto& file : store.files) {
    if (file.kind == "flight-recorder" && file.rank) dumps.insert(*file.rank);
  }
  for (const auto& r : store.comm_records) dumps.insert(r.rank);
  if (dumps.size() < 2) return out;  // one rank's view cannot tell who is late
  auto groups = BuildGroups(store);
  std::set<int> suspects;
  std::set<int> own_fault;  // stuck or odd: whatever they wait for does not excuse them
  for (auto& [name, group] : groups) {
    Judge(group);
    suspects.insert(group.missing.begin(), group.missing.end());
    own_fault.insert(group.stuck.begin(), group.stuck.end());
    own_fault.insert(group.odd.begin(), group.odd.end());
  }
  suspects.insert(own_fault.begin(), own_fault.end());
  std::vector<int> roots;
  for (const int rank : suspects) {
    if (own_fault.count(rank) > 0 || WaitsFor(groups, rank).empty()) roots.push_back(rank);
  }
  for (const int rank : roots) out.findings.push_back(Blame(store, groups, rank, dumps.count(rank) > 0));
  std::stable_sort(out.findings.begin(), out.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.onset < b.onset; });
  if (roots.empty() && !suspects.empty()) {
    out.findings.push_back(Circle(groups, suspects));
  } else if (roots.empty()) {
    NobodyToBlame(groups, out);
  }
  return out;
}

}  // namespace teller::locate
