#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/engine.hpp"

namespace teller::report {

/// What the detailed views of a report look at: the worst abnormal step, else the time of the worst finding, else the
/// longest step.
struct Focus {
  std::optional<size_t> finding;      ///< index into Diagnosis::findings
  const trace::Step* step = nullptr;  ///< null when no step is concerned; lives as long as the run
  base::Nanos begin = base::kNoTime;  ///< the step with the gap before it, widened to the evidence around
  base::Nanos end = base::kNoTime;
};
Focus ChooseFocus(const engine::Run& run, const trace::Diagnosis& diagnosis);

struct TimelineSpan {
  trace::SpanRow span;
  uint32_t row = 0;  ///< 0 = top of the lane
};

/// One thread or stream.
struct TimelineLane {
  trace::TrackRow track;
  uint32_t rows = 0;
  std::vector<TimelineSpan> spans;  ///< order: by begin
};

/// What is drawn of a stretch of time.
struct Timeline {
  base::Nanos begin = 0;
  base::Nanos end = 0;
  std::vector<TimelineLane> lanes;  ///< order: by rank, then track
  uint64_t hidden_spans = 0;        ///< in the stretch, but too short or too deep to draw
  uint64_t hidden_lanes = 0;
};

struct TimelineLimits {
  size_t spans = 6000;
  uint32_t rows_per_lane = 20;
  size_t lanes_per_process = 6;
  size_t processes = 16;
};

/// Chooses what to draw so that a page stays small: the longest spans, evidence always.
Timeline BuildTimeline(const engine::Run& run, const trace::Diagnosis& diagnosis, const Focus& focus,
                       const TimelineLimits& limits = {});

}  // namespace teller::report
