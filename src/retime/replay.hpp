#pragma once

#include <vector>

#include "retime/graph.hpp"

namespace teller::retime {

/// The own time of a span and of all below it, times `factor`. On a stream: of the one piece of work.
struct ScaleSpan {
  trace::SpanRow span;
  double factor = 1;  ///< >= 0
};

/// Time that a thread spends before it begins a span, or that a stream stands idle before a piece of work.
struct Pause {
  trace::SpanRow before;
  trace::Nanos length = 0;  ///< >= 0
};

/// Everything that the threads, or the streams, of one rank do, times a factor.
struct ScaleRank {
  int rank = -1;
  double host = 1;
  double device = 1;
};

/// The transfer time of every collective with these ranks in it, times `factor`.
struct ScaleLink {
  int rank = -1;
  int peer = -1;  ///< -1: any
  double factor = 1;
};

/// What a thread or stream does by itself between two recorded times, times `factor`; waiting stays what it has to be.
struct ScaleTime {
  trace::TrackRow track;
  trace::Nanos begin = 0;
  trace::Nanos end = 0;
  double factor = 1;
};

/// The transfer time of one collective, times `factor`.
struct ScaleTransfer {
  uint32_t collective = 0;  ///< index into Trees::collectives
  double factor = 1;
};

/// What is different from the recorded run. Where spans or times overlap on one lane, the
/// outermost counts and nothing is scaled twice.
struct Changes {
  std::vector<ScaleSpan> spans;
  std::vector<ScaleTime> times;
  std::vector<Pause> pauses;
  std::vector<ScaleRank> ranks;
  std::vector<ScaleLink> links;
  std::vector<ScaleTransfer> transfers;
};

/// All times of a run after changes. Lanes that nothing ties to another keep their first point where it was recorded.
struct Times {
  std::vector<trace::Nanos> at;   ///< by Point; kNoTime for points that no lane holds
  uint64_t dependencies_cut = 0;  ///< that contradicted each other (clocks of host and device that disagree)

  trace::Nanos begin(trace::SpanRow row) const { return at[BeginOf(row)]; }
  trace::Nanos end(trace::SpanRow row) const { return at[EndOf(row)]; }
};

/// Recomputes every point from its lane's own times and its dependencies. Deterministic; linear in points and
/// dependencies. With no changes it gives what the model says of the recorded run: how far that is from the recorded
/// times is the model's error.
Times Replay(const trace::Store& store, const trace::Trees& trees, const Graph& graph, const Changes& changes = {});

}  // namespace teller::retime
