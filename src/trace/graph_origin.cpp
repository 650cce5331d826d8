#include "trace/graph_origin.hpp"

namespace teller::trace {

std::string_view Name(GraphSource source) {
  switch (source) {
    case GraphSource::kCapture: return "capture";
    case GraphSource::kEager: return "eager step";
    case GraphSource::kLearned: return "learned sequence";
  }
  return "unknown";
}

std::map<GraphSource, uint64_t> OriginsBySource(const std::vector<GraphOrigin>& origins) {
  std::map<GraphSource, uint64_t> counts{
      {GraphSource::kCapture, 0}, {GraphSource::kEager, 0}, {GraphSource::kLearned, 0}};
  for (const GraphOrigin& origin : origins) ++counts[origin.source];
  return counts;
}

}  // namespace teller::trace
