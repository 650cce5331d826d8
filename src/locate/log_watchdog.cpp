// What torch's collective watchdogs of several ranks say together. Source: docs/reference/log-grammars.md, section 3.
#include <algorithm>
#include <map>

#include "locate/log_incident.hpp"
#include "locate/log_text.hpp"

namespace teller::locate {

using trace::FaultClass;
using trace::Finding;

namespace {

struct Report {
  size_t row = 0;
  int64_t sequence = -1;   ///< the collective that was not completed
  int64_t completed = -2;  ///< last completed one; -1 is written for "none", -2 = not told
  int64_t enqueued = -2;
  std::string what;  ///< operation and size
};

std::string TextBetween(std::string_view text, std::string_view mark, std::string_view stops) {
  const size_t at = text.find(mark);
  if (at == std::string_view::npos) return {};
  const size_t begin = at + mark.size();
  return std::string(text.substr(begin, text.find_first_of(stops, begin) - begin));
}

int64_t Either(std::string_view text, std::initializer_list<std::string_view> marks, int64_t otherwise) {
  for (const auto mark : marks) {
    if (const auto value = NumberAfter(text, mark)) return *value;
  }
  return otherwise;
}

void ReadReport(std::string_view text, size_t row, Report& report) {
  const int64_t sequence = Either(text, {"SeqNum=", "work sequence id: ", "at work: ", "at NCCL work: "}, -1);
  if (sequence >= 0 && (report.sequence < 0 || sequence < report.sequence)) {
    report.sequence = sequence;
    report.row = row;
  }
  report.completed =
      std::max(report.completed, Either(text, {"last completed NCCL work: ", "last completed work: "}, -2));
  report.enqueued = std::max(report.enqueued, Either(text, {"last enqueued NCCL work: ", "last enqueued work: "}, -2));
  const std::string op = TextBetween(text, "OpType=", ",)");
  if (!op.empty() && report.what.empty()) report.what = op + "/" + TextBetween(text, "NumelIn=", ",)");
}

std::string Ranks(const std::vector<int>& ranks) {
  std::string out;
  for (const int rank : ranks) out += (out.empty() ? "" : ", ") + std::to_string(rank);
  return out;
}

/// Ranks whose value differs from that of most.
template <class Value>
std::vector<int> Minority(const std::map<int, Value>& values) {
  std::map<Value, size_t> votes;
  for (const auto& [rank, value] : values) ++votes[value];
  if (votes.size() < 2) return {};
  auto most = votes.begin();
  for (auto it = votes.begin(); it != votes.end(); ++it) {
    if (it->second > most->second) most = it;
  }
  std::vector<int> out;
  for (const auto& [rank, value] : values) {
    if (!(value == most->first)) out.push_back(rank);
  }
  return out;
}

void Blame(Finding& finding, int rank) {
  finding.culprit.rank = rank;
  finding.culprit.process = "rank" + std::to_string(rank);
}

}  // namespace

void ReadWatchdogs(const trace::Store& store, const LogFacts& facts, const std::vector<const Signal*>& timeouts,
                   Finding& finding) {
  std::map<int, Report> reports;
  for (const Signal* s : timeouts) {
    const auto rank = RankOf(store, facts, s->row);
    if (rank) ReadReport(store.logs[s->row].message, s->row, reports[*rank]);
  }
  if (facts.world_size <= 1 && facts.ranks.size() <= 1) {
    // One worker has nobody to wait for: its own loop stood still.
    finding.fault = FaultClass::kUnknown;
    finding.alternatives = {{FaultClass::kSchedStall, 0.3}, {FaultClass::kRuntimePause, 0.3}};
    finding.culprit.layer = "scheduler";
    finding.false_alarm_probability = 8e-3;
    finding.explanation = "The watchdog saw no step for its whole time [E1]; the logs do not tell why.";
    return;
  }
  finding.view = "horizontal";
  finding.culprit.layer = "collective";
  finding.culprit.rank.reset();
  finding.culprit.process.clear();
  std::vector<int> waiting;
  std::map<int, int64_t> reached;
  std::map<int, std::string> what;
  bool first_op = !reports.empty();
  for (const auto& [rank, report] : reports) {
    waiting.push_back(rank);
    const int64_t done = report.completed > -2 ? report.completed : report.sequence - 1;
    reached[rank] = done;
    if (!report.what.empty()) what[rank] = report.what;
    first_op = first_op && report.sequence >= 0 && report.sequence <= 1 && done <= 0;
  }
  std::string text = waiting.empty() ? "A collective was never completed [E1]."
                                     : "The watchdog of rank " + Ranks(waiting) +
                                           " gave up on a collective that was never completed [E1].";
  for (const auto& [rank, report] : reports) AddEvidence(finding, store, report.row);
  std::vector<int> silent = SilentRanks(facts, finding.onset);
  silent.erase(std::remove_if(silent.begin(), silent.end(), [&](int r) { return reports.count(r) > 0; }), silent.end());
  int slowest = -1;
  for (const auto& [rank, done] : reached) {
    if (slowest < 0 || done < reached[slowest]) slowest = rank;
  }
  const bool behind = slowest >= 0 && std::any_of(reached.begin(), reached.end(),
                                                  [&](const auto& r) { return r.second > reached[slowest]; });
  const auto odd = Minority(what);
  finding.alternatives = {{FaultClass::kStragglerRank, 0.2}, {FaultClass::kProcDeath, 0.15}};
  if (first_op && silent.size() != 1) {
    finding.fault = FaultClass::kCollFirstOpHang;
    finding.alternatives = {{FaultClass::kIntraLinkDegraded, 0.2}, {FaultClass::kNetPathWrong, 0.2}};
    text +=
        " It is the first collective and nobody completed it: the path between the peers does not work; no rank is to "
        "blame.";
  } else if (silent.size() == 1) {
    Blame(finding, silent.front());
    if (first_op) finding.fault = FaultClass::kCollFirstOpHang;
    text +=
        " Rank " + std::to_string(silent.front()) + " alone wrote nothing about it: it is the one the others wait for.";
  } else if (behind) {
    Blame(finding, slowest);
    text += " Rank " + std::to_string(slowest) + " completed collective " + std::to_string(reached[slowest]) +
            " last, the others are further: it went another way.";
  } else if (odd.size() == 1) {
    Blame(finding, odd.front());
    text += " Rank " + std::to_string(odd.front()) + " waits in another operation (" + what[odd.front()] +
            ") than the others.";
  } else {
    finding.false_alarm_probability = std::max(finding.false_alarm_probability, 5e-3);
    finding.alternatives = {{FaultClass::kNetLinkFault, 0.3}, {FaultClass::kStragglerRank, 0.2}};
    text += " All reports are alike, so the logs do not tell which rank or path is to blame.";
  }
  finding.explanation = text;
}

}  // namespace teller::locate
