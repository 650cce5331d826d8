#include "ingest/kineto/marks.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "ingest/common/decimal.hpp"
#include "ingest/kineto/diagnostics.hpp"

namespace teller::ingest {

void PairMarks(const std::vector<DraftSpan>& marks, trace::Nanos end_of_recording, trace::FileRow file,
               std::vector<DraftSpan>& spans, Tally& tally, base::Diagnostics& diagnostics) {
  std::vector<uint32_t> order(marks.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&marks](uint32_t a, uint32_t b) {
    return std::tuple(marks[a].lane, marks[a].begin, a) < std::tuple(marks[b].lane, marks[b].begin, b);
  });
  std::vector<std::pair<uint32_t, trace::Nanos>> paired;  // begin's index, end time
  std::map<uint32_t, std::vector<uint32_t>> open;         // lane -> begins not yet ended
  for (const uint32_t i : order) {
    auto& stack = open[marks[i].lane];
    if (marks[i].phase == 'B') {
      stack.push_back(i);
      continue;
    }
    if (stack.empty()) {
      diagnostics.Report(kineto::kUnmatchedEnd, file, "time " + std::to_string(marks[i].begin) + " ns");
      ++tally.dropped;
      continue;
    }
    paired.emplace_back(stack.back(), marks[i].begin);
    stack.pop_back();
    ++tally.repaired_away;
  }
  for (const auto& [lane, stack] : open) {
    for (const uint32_t i : stack) {
      diagnostics.Report(kineto::kUnmatchedBegin, file, "time " + std::to_string(marks[i].begin) + " ns");
      const trace::Nanos end = std::min(end_of_recording, marks[i].begin + kMaxDuration);  // both may be absurd
      paired.emplace_back(i, std::max(end, marks[i].begin));
    }
  }
  std::sort(paired.begin(), paired.end());
  for (const auto& [i, end] : paired) {
    DraftSpan span = marks[i];
    span.duration = end - span.begin;
    if (span.duration > kMaxDuration) {
      diagnostics.Report(kineto::kLongMark, file, "time " + std::to_string(span.begin) + " ns");
      span.duration = 0;
    }
    spans.push_back(span);
    ++tally.spans;
  }
}

}  // namespace teller::ingest
