#include "locate/log_facts.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <tuple>

#include "locate/log_text.hpp"
#include "locate/proof.hpp"

namespace teller::locate {

using trace::LogRecord;
using trace::LogSource;
using trace::Nanos;

namespace {

constexpr size_t kEvidenceKept = 12;  // more lines of one kind prove no more

void NoteWorld(const LogRecord& record, LogFacts& facts) {
  for (const std::string_view mark : {"world_size=", "world size ", "tp_size=", "nranks "}) {
    const auto value = NumberAfter(record.message, mark);
    if (value && *value > facts.world_size && *value < kMaxRank) facts.world_size = static_cast<int>(*value);
  }
}

/// torchrun's report names each dead process by both ranks, and by its pid on a later line:
///   rank      : 9 (local_rank: 1)
///   exitcode  : -9 (pid: 1234)
/// `rank` is what the last such line of the file said.
void NoteReport(std::string_view message, std::optional<int>& rank, LogFacts& facts) {
  for (size_t begin = 0; begin < message.size();) {
    const std::string_view line = FirstLine(message.substr(begin));
    begin += line.size() + 1;
    const size_t first = line.find_first_not_of(' ');
    if (first == std::string_view::npos) continue;
    const std::string_view text = line.substr(first);
    const size_t colon = text.find(':');
    const std::string_view key = text.substr(0, text.find_first_of(" :"));
    if (colon == std::string_view::npos || text.find_first_not_of(' ', key.size()) != colon) continue;
    if (key == "rank" && Has(text, "(local_rank:")) {
      const auto value = NumberAfter(text, ":");
      rank = value && *value >= 0 && *value < kMaxRank ? std::optional(static_cast<int>(*value)) : std::nullopt;
    } else if (key == "exitcode" && rank) {
      if (const auto pid = NumberAfter(text, "(pid:")) facts.rank_of_pid.emplace(*pid, *rank);
      rank.reset();
    }
  }
}

std::string Mark(size_t number) {
  std::string mark = "[E";
  mark += std::to_string(number);
  mark += ']';
  return mark;
}

bool IsWorkerName(std::string_view name) {
  return HasAny(name, {"Worker", "worker", "scheduler", "Scheduler", "shard"});
}

/// "VllmWorker-3" of a messenger: what the process calls itself, else the number as rank.
void ResolveWorker(const LogFacts& facts, trace::Culprit& culprit) {
  const std::string name = culprit.process;
  const size_t dash = name.find_last_of("-_");
  const bool numbered =
      dash != std::string::npos && dash + 1 < name.size() &&
      std::all_of(name.begin() + static_cast<long>(dash) + 1, name.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!numbered || name.size() - dash > 7) return;
  if (!culprit.rank && IsWorkerName(name)) culprit.rank = std::stoi(name.substr(dash + 1));
  if (culprit.rank) {
    const std::string own = ProcessOfRank(facts, *culprit.rank);
    if (IsWorkerName(own) && own != name) {
      culprit.process = own;
      return;
    }
  }
  if (Begins(name, "VllmWorker-"))
    culprit.process = facts.single_worker() ? "Worker" : "Worker_TP" + name.substr(dash + 1);
  if (Begins(name, "scheduler")) culprit.process = "scheduler";
}

/// Traces say which rank a process is where logs do not. Hosts number their processes each for itself: a number that
/// two ranks have says nothing.
void NoteTracedPids(const trace::Store& store, LogFacts& facts) {
  std::map<int64_t, std::set<int>> ranks;
  for (const trace::Process& process : store.processes) {
    int64_t pid = 0;
    const char* end = process.pid.data() + process.pid.size();
    const auto read = std::from_chars(process.pid.data(), end, pid);
    if (process.rank && read.ec == std::errc() && read.ptr == end && pid > 0) ranks[pid].insert(*process.rank);
  }
  for (const auto& [pid, of] : ranks) {
    if (of.size() == 1) facts.rank_of_pid.emplace(pid, *of.begin());
  }
}

}  // namespace

LogFacts GatherFacts(const trace::Store& store, const std::vector<Signal>& signals) {
  LogFacts facts;
  const size_t n = store.logs.size();
  std::map<uint32_t, std::set<int>> ranks_in_file;
  std::map<uint32_t, std::optional<int>> reported;  // of the report that a file is in
  std::set<uint32_t> shared_files;                  // several processes write there, some of them no ranks
  for (const auto& record : store.logs) {
    NoteWorld(record, facts);
    if (record.source != LogSource::kKernel) facts.kernel_only = false;
    if (record.rank) ranks_in_file[record.file.value()].insert(*record.rank);
    // Bare lines of a file belong to its rank only when no process that is none writes there.
    if (!record.process.empty() && (!record.rank || !IsWorkerName(record.process)))
      shared_files.insert(record.file.value());
    if (record.pid) {
      // A process may rename itself when it knows its place ("VllmWorker-0", then "Worker"): the later name counts.
      if (!record.process.empty() && record.source != LogSource::kKernel)
        facts.name_of_pid[*record.pid] = record.process;
      if (record.rank) facts.rank_of_pid[*record.pid] = *record.rank;
    }
  }
  NoteTracedPids(store, facts);
  for (const auto& record : store.logs) NoteReport(record.message, reported[record.file.value()], facts);
  for (const auto& [file, ranks] : ranks_in_file) {
    if (ranks.size() == 1 && shared_files.count(file) == 0) facts.rank_of_file[file] = *ranks.begin();
  }
  for (uint32_t f = 0; f < store.files.size(); ++f) {
    if (store.files[f].rank && store.files[f].kind == "log") facts.rank_of_file.emplace(f, *store.files[f].rank);
  }
  for (size_t row = 0; row < n; ++row) {
    const auto rank = RankOf(store, facts, row);
    if (!rank) continue;
    facts.ranks.insert(*rank);
    Nanos& last = facts.last_word.try_emplace(*rank, trace::kNoTime).first->second;
    last = std::max(last, store.logs[row].at);
  }
  for (const auto& process : store.processes) {
    if (process.rank) facts.ranks.insert(*process.rank);
    if (process.world_size && *process.world_size < kMaxRank)
      facts.world_size = std::max(facts.world_size, *process.world_size);
  }
  for (const auto& file : store.files) {
    if ((file.kind == "kineto" || file.kind == "nsys") && file.rank && file.spans > 0) facts.traced.insert(*file.rank);
  }
  for (const auto& signal : signals) {
    if (const auto rank = RankOf(store, facts, signal.row); signal.role == SignalRole::kShutdown && rank)
      facts.shut_down.insert(*rank);
    const bool word = signal.role == SignalRole::kShutdown || signal.own_word || signal.role == SignalRole::kTimeout;
    if (const auto rank = RankOf(store, facts, signal.row); word && rank) facts.ended.insert(*rank);
  }
  facts.order.resize(n);
  for (size_t i = 0; i < n; ++i) facts.order[i] = i;
  const auto key = [&](size_t row) {
    const LogRecord& r = store.logs[row];
    return std::tuple(r.at == trace::kNoTime, r.at, r.source != LogSource::kKernel, r.file.value(), r.line, row);
  };
  std::sort(facts.order.begin(), facts.order.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
  facts.place.resize(n);
  for (size_t i = 0; i < n; ++i) facts.place[facts.order[i]] = i;
  return facts;
}

std::optional<int> RankOf(const trace::Store& store, const LogFacts& facts, size_t row) {
  const LogRecord& record = store.logs[row];
  if (record.rank) return record.rank;
  if (record.pid) {
    if (const auto it = facts.rank_of_pid.find(*record.pid); it != facts.rank_of_pid.end()) return it->second;
  }
  const auto it = facts.rank_of_file.find(record.file.value());
  return it == facts.rank_of_file.end() ? std::nullopt : std::optional(it->second);
}

trace::Culprit CulpritOf(const trace::Store& store, const LogFacts& facts, const Signal& signal) {
  const LogRecord& record = store.logs[signal.row];
  trace::Culprit culprit;
  culprit.layer = std::string(signal.layer);
  culprit.log_record = signal.line;
  if (signal.role == SignalRole::kClient) {
    culprit.process = "client";
    return culprit;
  }
  culprit.rank = signal.rank;
  culprit.process = signal.process;
  if (signal.pid) {
    if (const auto it = facts.rank_of_pid.find(*signal.pid); it != facts.rank_of_pid.end() && !culprit.rank)
      culprit.rank = it->second;
    if (const auto it = facts.name_of_pid.find(*signal.pid); it != facts.name_of_pid.end())
      culprit.process = it->second;
    else if (culprit.rank)
      culprit.process = ProcessOfRank(facts, *culprit.rank);  // of a program's name there are several
  }
  const bool named = signal.rank || !signal.process.empty() || signal.pid;
  if (!named && record.source != LogSource::kKernel && signal.role != SignalRole::kDeath) {
    culprit.process = record.process;
    if (record.pid) {
      if (const auto it = facts.name_of_pid.find(*record.pid); it != facts.name_of_pid.end())
        culprit.process = it->second;
    }
    culprit.rank = RankOf(store, facts, signal.row);
  } else if (!named && signal.own_word) {
    culprit.process = record.process;
    culprit.rank = RankOf(store, facts, signal.row);
  }
  ResolveWorker(facts, culprit);
  if (!culprit.rank && IsWorkerName(culprit.process) && facts.single_worker()) culprit.rank = 0;
  if (culprit.process.empty() && culprit.rank) culprit.process = "rank" + std::to_string(*culprit.rank);
  return culprit;
}

std::string ProcessOfRank(const LogFacts& facts, int rank) {
  for (const auto& [pid, name] : facts.name_of_pid) {
    const auto it = facts.rank_of_pid.find(pid);
    if (it != facts.rank_of_pid.end() && it->second == rank && IsWorkerName(name)) return name;
  }
  return "rank" + std::to_string(rank);
}

std::vector<int> SilentRanks(const LogFacts& facts, Nanos at) {
  std::set<int> expected = facts.ranks;
  // Ranks that left nothing at all can only be missed where the others wrote under their own names.
  if (facts.rank_of_file.size() >= 2 || facts.last_word.size() >= 2) {
    for (int rank = 0; rank < facts.world_size && facts.world_size <= 4096; ++rank) expected.insert(rank);
  }
  std::vector<int> silent;
  size_t alive = 0;
  for (const int rank : expected) {
    const auto last = facts.last_word.find(rank);
    const bool went_on = last != facts.last_word.end() && (last->second > at || facts.ended.count(rank) > 0);
    if (went_on) ++alive;
    if (!went_on) silent.push_back(rank);
  }
  return alive > 0 ? silent : std::vector<int>();
}

std::string AddEvidence(trace::Finding& finding, const trace::Store& store, size_t row) {
  const LogRecord& record = store.logs[row];
  for (size_t i = 0; i < finding.evidence.size(); ++i) {
    if (finding.evidence[i].kind == trace::Evidence::Kind::kLog && finding.evidence[i].log.value() == row) {
      return Mark(i + 1);
    }
  }
  if (finding.evidence.size() >= kEvidenceKept) return {};  // no mark rather than that of another line
  trace::Evidence evidence;
  evidence.kind = trace::Evidence::Kind::kLog;
  evidence.file = record.file;
  evidence.ref = "line:" + std::to_string(record.line);
  evidence.log = trace::LogRow(static_cast<uint32_t>(row));
  evidence.at = record.at;
  const auto exceptions = ExceptionLines(record.message);
  evidence.text = Shorten(FirstLine(record.message), 240);
  if (!exceptions.empty()) evidence.text += " ... " + Shorten(exceptions.front(), 240);
  return Cite(finding, std::move(evidence));
}

double ScoreOf(double false_alarm) {
  return 1 - std::pow(std::clamp(false_alarm, 1e-8, 1.0), 0.25);
}

std::string Who(const trace::Culprit& culprit) {
  const std::string number = culprit.rank ? std::to_string(*culprit.rank) : std::string();
  if (number.empty()) return culprit.process;
  if (culprit.process.empty() || culprit.process == "rank" + number) return "rank " + number;
  return culprit.process + " (rank " + number + ")";
}

}  // namespace teller::locate
