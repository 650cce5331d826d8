#pragma once

#include <map>
#include <optional>
#include <vector>

#include "retime/replay.hpp"

namespace teller::retime {

/// Where recorded times of a lane lie after a replay. Lifetime: refers to its arguments. Threads: immutable.
class TimeMap {
 public:
  TimeMap(const trace::Store& store, const Graph& graph, const Times& times);

  /// First position of the lane that was recorded at `at` or later; the lane's end when none was.
  uint32_t FirstAt(uint32_t lane, trace::Nanos at) const;
  /// The new time: of the point at it, or in between in proportion; before and behind the lane's points as far from
  /// them as recorded.
  trace::Nanos NewTime(uint32_t lane, trace::Nanos at) const;
  uint32_t LaneOf(uint32_t position) const;
  /// The thread of the process with most points in [begin, end); no value for a process without threads.
  std::optional<uint32_t> BusiestThread(trace::ProcessRow process, trace::Nanos begin, trace::Nanos end) const;

 private:
  trace::Nanos At(uint32_t position) const { return RecordedAt(store_, graph_.points[position]); }

  const trace::Store& store_;
  const Graph& graph_;
  const Times& times_;
  std::map<uint32_t, std::vector<uint32_t>> threads_;  ///< lanes by process
};

}  // namespace teller::retime
