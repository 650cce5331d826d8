#pragma once

#include <cstdint>
#include <vector>

#include "base/nanos.hpp"

namespace teller::ingest::otlp {

/// A span to be put on a lane.
struct LaneSpan {
  base::Nanos begin = 0;
  base::Nanos end = 0;
  uint32_t parent = kNoParent;  ///< index into the same list; none for a root
  static constexpr uint32_t kNoParent = 0xFFFFFFFF;
};

/// How many lanes one process gets at most; what is beyond shares the lane that is free next.
inline constexpr uint32_t kMaxLanes = 4096;

/// Lane of each span, so that spans of one lane nest or follow each other, and a span lies on a lane inside another
/// only where that one is its ancestor. Requests of one service overlap in time as they like; on one track they would
/// seem to contain each other. Input: order by (begin ascending, end descending), ancestors first among equals; so are
/// parents' indices below their children's, or they are ignored. The number of lanes is the largest number of spans
/// that run at once without being each other's ancestors (at most kMaxLanes). Cost: O(n log n).
std::vector<uint32_t> AssignLanes(const std::vector<LaneSpan>& spans);

}  // namespace teller::ingest::otlp
