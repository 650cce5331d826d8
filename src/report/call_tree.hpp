#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.hpp"

namespace teller::report {

/// One line of a call tree: all calls of one name under one parent.
struct CallNode {
  trace::StringId name;
  trace::TrackRow track;  ///< of the first call; the lane itself for top nodes
  trace::SpanKind kind = trace::SpanKind::kOther;
  bool is_lane = false;  ///< top node that stands for a thread or stream
  /// Module or operator that replayed kernels were aligned to, not a call that was recorded: the lowest confidence of
  /// them; 0 = recorded.
  float aligned = 0;
  bool learned = false;  ///< some of them to a sequence that was learned earlier
  uint64_t count = 0;
  base::Nanos total = 0;              ///< sum of durations
  base::Nanos self = 0;               ///< total less that of children on the same lane
  base::Nanos weight = 0;             ///< total, or what lies below when that is more (GPU work outlasts its launch)
  base::Nanos first = base::kNoTime;  ///< begin of the first call
  base::Nanos longest = 0;
  trace::SpanRow longest_span;
  std::vector<uint32_t> children;  ///< order: by first
};

/// Which part of a run a call tree shows.
struct CallTreeScope {
  std::optional<trace::ProcessRow> process;  ///< none = all
  base::Nanos begin = base::kNoTime;         ///< spans that begin in [begin, end); kNoTime = all
  base::Nanos end = base::kNoTime;
};

/// Calls merged by name under their parent: python -> op -> runtime -> kernel. GPU work hangs under its launch,
/// whenever it ran; GPU work without one under its stream. Between a graph's launch and a replayed kernel stand the
/// modules and the operator that the kernel was aligned to. Immutable.
struct CallTree {
  std::vector<CallNode> nodes;
  std::vector<uint32_t> lanes;    ///< top nodes; order: by process, then track
  std::vector<uint32_t> node_of;  ///< by span row; kNoNode = not in scope

  static constexpr uint32_t kNoNode = UINT32_MAX;
};

/// Cost: O(spans). Spans::parent must be filled.
CallTree BuildCallTree(const engine::Run& run, const CallTreeScope& scope);

/// Name as shown: frames of <built-in ...> and the like as they are; lanes get process and thread.
std::string NodeLabel(const trace::Store& store, const CallNode& node);

/// Follows interpreter frames that do little but call the next one, down to the last of them; `label` becomes
/// "first > (3 frames) > last", or the node's own label when it is no such frame.
const CallNode* FollowFrames(const trace::Store& store, const CallTree& tree, const CallNode* node, std::string& label);

}  // namespace teller::report
