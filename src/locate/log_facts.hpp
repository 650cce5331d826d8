#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "locate/log_signal.hpp"
#include "trace/diagnosis.hpp"
#include "trace/store.hpp"

namespace teller::locate {

/// What the logs of a run say about who takes part in it. Threads: immutable once built.
struct LogFacts {
  std::vector<size_t> order;             ///< log rows by time; kernel lines first where times are equal
  std::vector<size_t> place;             ///< log row -> index in `order`
  int world_size = 0;                    ///< largest one stated; 0 = none
  std::set<int> ranks;                   ///< ranks that wrote or were traced
  std::map<uint32_t, int> rank_of_file;  ///< log files that belong to one rank
  std::map<int64_t, std::string> name_of_pid;
  std::map<int64_t, int> rank_of_pid;
  std::map<int, trace::Nanos> last_word;  ///< by rank: time of its last record
  std::set<int> ended;                    ///< ranks that ended in order, or complained themselves
  std::set<int> shut_down;                ///< ranks that ended in order
  std::set<int> traced;                   ///< ranks that left a trace: they lived until it was written
  bool kernel_only = true;                ///< no service log was given

  bool single_worker() const {
    return world_size <= 1 && (ranks.empty() || (ranks.size() == 1 && *ranks.begin() == 0));
  }
};
LogFacts GatherFacts(const trace::Store& store, const std::vector<Signal>& signals);

/// The rank a record speaks for: its own, its process's or its file's.
std::optional<int> RankOf(const trace::Store& store, const LogFacts& facts, size_t row);
/// Who is at fault according to a signal.
trace::Culprit CulpritOf(const trace::Store& store, const LogFacts& facts, const Signal& signal);
/// What the worker of a rank calls itself ("Worker_TP1"), else "rankN".
std::string ProcessOfRank(const LogFacts& facts, int rank);
/// Ranks that fell silent by `at` while others went on; empty when the logs cannot tell.
std::vector<int> SilentRanks(const LogFacts& facts, trace::Nanos at);

/// Appends a log line as evidence and returns its mark, "[E1]"; empty when the finding has no room for it.
std::string AddEvidence(trace::Finding& finding, const trace::Store& store, size_t row);
/// Score that goes with a false-alarm probability.
double ScoreOf(double false_alarm);
/// "Worker_TP1 (rank 1)", "rank 3", "the scheduler": how texts name a culprit; empty when nobody is named.
std::string Who(const trace::Culprit& culprit);

}  // namespace teller::locate
