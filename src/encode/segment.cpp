#include <algorithm>

#include "encode/forest.hpp"

namespace teller::encode {

std::string_view Name(Segment::Kind kind) {
  switch (kind) {
    case Segment::Kind::kStep: return "step";
    case Segment::Kind::kHead: return "head";
    case Segment::Kind::kTail: return "tail";
    case Segment::Kind::kWhole: return "whole";
  }
  return {};
}

std::vector<Segment> SegmentsOf(const trace::Store& store, const trace::Trees& trees) {
  std::vector<Segment> segments;
  size_t at = 0;
  for (uint32_t p = 0; p < store.processes.size(); ++p) {
    const trace::ProcessRow process(p);
    size_t last = at;
    while (last < trees.steps.size() && trees.steps[last].process == process) ++last;
    const size_t first = at;
    at = last;
    if (store.processes[p].service) continue;
    if (first == last) {
      segments.push_back({.kind = Segment::Kind::kWhole, .process = process});
      continue;
    }
    trace::Nanos begin = trees.steps[first].begin;
    segments.push_back({.kind = Segment::Kind::kHead, .process = process, .end = begin});
    for (size_t s = first; s < last; ++s) {
      trace::Nanos end = trees.steps[s].end;
      if (s + 1 < last) end = std::min(end, trees.steps[s + 1].begin);
      end = std::max(end, begin);
      segments.push_back({.kind = Segment::Kind::kStep,
                          .process = process,
                          .step = trace::StepRow(static_cast<uint32_t>(s)),
                          .begin = begin,
                          .end = end});
      begin = end;
    }
    segments.push_back({.kind = Segment::Kind::kTail, .process = process, .begin = begin});
  }
  return segments;
}

}  // namespace teller::encode
