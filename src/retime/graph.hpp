#pragma once

#include <cstdint>
#include <vector>

#include "trace/step.hpp"
#include "trace/store.hpp"

namespace teller::retime {

/// One end of a span: 2 * row for its begin, 2 * row + 1 for its end.
using Point = uint32_t;
constexpr Point BeginOf(trace::SpanRow row) {
  return row.value() * 2;
}
constexpr Point EndOf(trace::SpanRow row) {
  return row.value() * 2 + 1;
}
constexpr bool IsEnd(Point point) {
  return point % 2 == 1;
}
constexpr trace::SpanRow SpanOf(Point point) {
  return trace::SpanRow(point / 2);
}

/// Why a point cannot come before another one.
enum class DependencyKind : uint8_t {
  kLaunch = 0,      ///< GPU work after the call that launched it
  kStream = 1,      ///< GPU work after work of another stream
  kSync = 2,        ///< the return of a synchronizing or blocking call after the work it waits for
  kCollective = 3,  ///< leaving a collective after all have arrived and the data went over
  kHandOver = 4,    ///< a thread's work after another thread's that it was handed by or waits for
};

/// `at` comes no earlier than `latency` after its source; with `before_own`, the lane's own time before `at` begins no
/// earlier than that.
struct Dependency {
  uint32_t at = 0;      ///< position in Graph::points
  uint32_t source = 0;  ///< a Point; the index of a meeting for kCollective
  trace::Nanos latency = 0;
  DependencyKind kind = DependencyKind::kLaunch;
  bool before_own = false;
};

/// The points of one thread or stream, in program order.
struct Lane {
  trace::TrackRow track;
  bool is_stream = false;
  uint32_t first = 0;  ///< position in Graph::points
  uint32_t count = 0;
};

/// A collective whose members all have to arrive.
struct Meeting {
  uint32_t collective = 0;  ///< index into Trees::collectives
  uint32_t members = 0;
};

/// The arrival of a member.
struct Arrival {
  uint32_t at = 0;  ///< position in Graph::points
  uint32_t meeting = 0;
};

/// The dependency graph of a recorded run: every thread and stream as a sequence of points with the time that its own
/// work takes between them, and what each point has to wait for besides. Idle time that a dependency explains is not
/// kept but follows from it; all other idle time is kept as recorded.
/// Sources: the model of program order, stream order, launches and synchronization is the usual one of trace replay
/// (Lumos, MLSys 2025; dPRO, MLSys 2022).
struct Graph {
  std::vector<Lane> lanes;
  std::vector<Point> points;      ///< lane by lane
  std::vector<trace::Nanos> own;  ///< by position: time since the lane's previous point that is the lane's own; may be
                                  ///< negative on streams, where work overlaps. 0 at a lane's first point
  std::vector<Dependency> waits;  ///< order: by `at`
  std::vector<Meeting> meetings;
  std::vector<Arrival> arrivals;   ///< order: by `at`
  std::vector<uint32_t> position;  ///< by Point; kNoPosition for spans that no lane holds
  uint64_t kept_idle = 0;          ///< GPU work that began late for no reason found; its delay is kept

  static constexpr uint32_t kNoPosition = UINT32_MAX;
};

/// Builds the graph. Spans of services, of the profiler, synchronization records and annotations on streams are left
/// out: they do no work of their own. Needs trees of tree::Build.
Graph BuildGraph(const trace::Store& store, const trace::Trees& trees);

/// Recorded time of a point.
inline trace::Nanos RecordedAt(const trace::Store& store, Point point) {
  const size_t row = SpanOf(point).value();
  return IsEnd(point) ? store.spans.end(row) : store.spans.begin[row];
}

}  // namespace teller::retime
