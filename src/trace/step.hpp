#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trace/clock.hpp"
#include "trace/graph_origin.hpp"
#include "trace/request.hpp"
#include "trace/types.hpp"

namespace teller::trace {

/// What a step does.
enum class StepKind : uint8_t { kUnknown = 0, kPrefill = 1, kDecode = 2, kMixed = 3, kEmpty = 4 };
std::string_view Name(StepKind kind);

/// One scheduler iteration (forward pass) of one rank, and the gap before it.
struct Step {
  ProcessRow process;
  std::optional<int> rank;
  uint32_t index = 0;  ///< ordinal among the process's steps, from 0
  SpanRow span;        ///< the annotation that marks it; none when found by repetition
  std::string name;
  Nanos begin = kNoTime;
  Nanos end = kNoTime;
  Nanos gap_before = -1;  ///< idle time since the previous step's end; -1 for the first
  StepKind kind = StepKind::kUnknown;
  int64_t batch = -1;           ///< sequences; -1 unknown
  int64_t new_tokens = -1;      ///< tokens computed in this step
  int64_t context_tokens = -1;  ///< tokens attended to
  int64_t prefill_requests = -1;
  int64_t decode_requests = -1;
  StringId shape;         ///< key of equal-shaped steps (engine text or input dims)
  double work = -1;       ///< size of the work from input dims (elements), for regression; -1 unknown
  bool observer = false;  ///< touched by the profiler's start, stop or export

  Nanos duration() const { return end - begin; }
};

/// One rank's part in a collective.
struct CollectiveMember {
  int rank = -1;
  ProcessRow process;
  SpanRow span;             ///< the transfer (NCCL kernel, gloo worker span)
  SpanRow enqueue;          ///< the call that started it (c10d::allreduce_); none when unknown
  Nanos arrival = kNoTime;  ///< when this rank was ready
  Nanos end = kNoTime;
  Nanos wait = 0;  ///< for the last rank to arrive
};

/// One collective over ranks. wait + transfer of a member = end - arrival.
struct Collective {
  StringId name;
  std::string group;
  int64_t sequence = -1;                  ///< or the ordinal where the file has none
  std::vector<CollectiveMember> members;  ///< order: by rank
  int late_rank = -1;  ///< last to arrive; -1 when it and the one before it are closer than the clocks can tell
  Nanos late_by = 0;   ///< last arrival minus the median of the others
  Nanos transfer = 0;  ///< from last arrival to the median end
  bool matched_by_sequence = false;  ///< else by ordinal and shape
  bool point_to_point = false;       ///< a send and its receive
  bool inferred = false;             ///< no library names it one: told by what its members do across ranks
  double confidence = 0;
};

/// Relation of a launch to its GPU work.
struct LaunchLink {
  SpanRow launch;
  SpanRow work;
};

/// What tree makes of a store. Immutable after Build.
struct Trees {
  /// The origin of a replayed kernel, or null.
  const GraphOrigin* OriginOf(SpanRow work) const;

  std::vector<Step> steps;                 ///< order: by process, then begin
  std::vector<Collective> collectives;     ///< order: by first arrival
  std::vector<LaunchLink> launches;        ///< order: by work row
  uint64_t gpu_work = 0;                   ///< GPU spans with a correlation id
  uint64_t gpu_work_linked = 0;            ///< of these, with a launch in the file
  uint64_t gpu_work_unlaunched = 0;        ///< of these, the launch is not in the file
  std::vector<GraphReplay> graph_replays;  ///< order: by process, then first work
  std::vector<GraphOrigin> graph_origins;  ///< order: by work row
  Nanos clock_error = 0;                   ///< half width of what is open between the times of any two linked ranks
  Nanos clock_spread = 0;    ///< how far the members of one collective typically leave apart, clocks corrected
  std::string clock_method;  ///< "collectives", "shared clock, checked by collectives", "single clock", "uncalibrated"
  std::vector<ProcessClock> clocks;  ///< one a process of the store, in its order

  // Filled by align:
  std::string log_clock_method;   ///< how log times lie on the trace clock; empty without both
  Nanos log_clock_error = 0;      ///< half width of what that leaves open, for the records in traced time
  uint64_t logs_in_steps = 0;     ///< records tied to a step
  std::vector<Request> requests;  ///< order: by arrival, then id
  uint64_t logs_with_id = 0;      ///< records that carry a request's id
  uint64_t logs_on_request = 0;   ///< of these, tied to one request
};

}  // namespace teller::trace
