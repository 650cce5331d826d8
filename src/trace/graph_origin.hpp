#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "trace/types.hpp"

namespace teller::trace {

/// Where the sequence came from that a graph replay was aligned to.
enum class GraphSource : uint8_t {
  kCapture = 0,  ///< the launches that were recorded while the graph was captured
  kEager = 1,    ///< a step of the same model that ran without a graph
  kLearned = 2,  ///< a sequence that an earlier run showed (trace/learned_graphs.hpp)
};
std::string_view Name(GraphSource source);

/// Confidence from which an origin counts as sure.
inline constexpr float kSureOrigin = 0.8F;

/// Where a replayed kernel comes from, by alignment: a replay shows kernels, but no operator and no module.
struct GraphOrigin {
  SpanRow work;     ///< the replayed kernel, copy or memset
  SpanRow origin;   ///< the launch it was aligned to, in this file or a twin's; none when only its neighbours tell, or
                    ///< when it was learned earlier
  StringId module;  ///< nn.Module path, parts joined by "/", each part a string of the store too; a part whose number
                    ///< is open ends in "*"; none = not known
  StringId op;      ///< innermost framework operator around the origin; none = not known
  float confidence =
      0;  ///< that module and op are right; above kSureOrigin only where name and place agree and no other place fits
  GraphSource source = GraphSource::kCapture;
  base::FileRow learned;  ///< the file of learned sequences, where source is kLearned
};

/// How many origins each source gave.
std::map<GraphSource, uint64_t> OriginsBySource(const std::vector<GraphOrigin>& origins);

/// One launch of a graph: all GPU work that shares its correlation id.
struct GraphReplay {
  ProcessRow process;
  SpanRow launch;           ///< the call; none when it is not in the file
  uint32_t work = 0;        ///< kernels, copies and memsets
  uint32_t attributed = 0;  ///< of these, with an origin
};

}  // namespace teller::trace
