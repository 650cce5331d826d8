#include "tree/nesting.hpp"

#include <algorithm>
#include <vector>

#include "base/limits.hpp"
#include "base/memory.hpp"
#include "base/parallel.hpp"

namespace teller::tree {

namespace {

using base::DiagnosticKind;
using base::Severity;
using trace::Nanos;
using trace::SpanKind;
using trace::SpanRow;

constexpr DiagnosticKind kOverlapPython = {
    "tree.overlap_python", Severity::kInfo,
    "an interpreter frame and another span overlap in part; they stand side by side"};
constexpr DiagnosticKind kOverlap = {"tree.overlap", Severity::kInfo,
                                     "two spans of a thread overlap in part; they stand side by side"};
constexpr DiagnosticKind kOverlapStream = {
    "tree.overlap_stream", Severity::kInfo,
    "GPU work of one stream overlaps in time (programmatic dependent launch does that); it stands side by side"};
constexpr DiagnosticKind kOverlapRange = {
    "tree.overlap_range", Severity::kInfo,
    "GPU work reaches out of an annotation on its stream; it stands outside of it"};
constexpr DiagnosticKind kTooDeep = {"tree.too_deep", Severity::kNotice,
                                     "calls nested deeper than the limit were hung up at the limit"};

struct Counts {
  uint64_t python = 0, other = 0, stream = 0, range = 0, deep = 0;
};

/// A span that may still get children.
struct Open {
  SpanRow row;
  Nanos end = 0;
};

/// Nests one track. The stack's ends decrease from bottom to top: an open span that ends before a later one does can be
/// left for good, because whatever fits into it from then on fits into the later one too.
class TrackNester {
 public:
  TrackNester(trace::Store& store, uint32_t max_depth) : store_(store), max_depth_(max_depth) {}

  Counts Thread(const trace::Track& track) {
    for (uint32_t row = track.first_span; row < track.first_span + track.span_count; ++row) {
      const Nanos begin = store_.spans.begin[row];
      const Nanos end = store_.spans.end(row);
      while (!stack_.empty() && (stack_.back().end < end || stack_.back().end <= begin)) {
        if (stack_.back().end > begin) CountOverlap(row);
        stack_.pop_back();
      }
      Hang(row, stack_.size());
      stack_.push_back({SpanRow(row), end});
    }
    return counts_;
  }

  /// GPU work holds nothing; annotations on the stream hold work and each other.
  Counts Stream(const trace::Track& track) {
    Nanos work_end = base::kNoTime;
    for (uint32_t row = track.first_span; row < track.first_span + track.span_count; ++row) {
      const Nanos begin = store_.spans.begin[row];
      const Nanos end = store_.spans.end(row);
      const bool holds = store_.kind(row) == SpanKind::kGpuAnnotation;
      while (!stack_.empty() && (stack_.back().end <= begin || (holds && stack_.back().end < end))) {
        if (stack_.back().end > begin) ++counts_.other;
        stack_.pop_back();
      }
      const auto holder =
          std::partition_point(stack_.begin(), stack_.end(), [end](const Open& open) { return open.end >= end; });
      if (holder != stack_.end()) ++counts_.range;
      Hang(row, static_cast<size_t>(holder - stack_.begin()));
      if (holds) stack_.push_back({SpanRow(row), end});
      if (!trace::IsGpuWork(store_.kind(row))) continue;
      if (begin < work_end) ++counts_.stream;
      work_end = std::max(work_end, end);
    }
    return counts_;
  }

 private:
  void CountOverlap(uint32_t row) {
    const bool python =
        store_.kind(row) == SpanKind::kPython || store_.kind(stack_.back().row.value()) == SpanKind::kPython;
    ++(python ? counts_.python : counts_.other);
  }

  /// Makes the innermost of the first `holders` open spans the parent.
  void Hang(uint32_t row, size_t holders) {
    if (holders > max_depth_) {
      ++counts_.deep;
      holders = max_depth_;
    }
    store_.spans.parent[row] = holders == 0 ? SpanRow() : stack_[holders - 1].row;
    store_.spans.depth[row] = static_cast<uint16_t>(holders);
  }

  trace::Store& store_;
  const uint32_t max_depth_;
  std::vector<Open> stack_;
  Counts counts_;
};

void Report(const Counts& counts, const trace::Track& track, trace::Store& store) {
  const trace::FileRow file = track.process.valid() ? store.processes[track.process.value()].file : trace::FileRow();
  const std::string place = track.name.empty() ? "track " + track.tid : track.name;
  const auto report = [&](const DiagnosticKind& kind, uint64_t count) {
    if (count > 0) store.diagnostics.Report(kind, file, place, count);
  };
  report(kOverlapPython, counts.python);
  report(kOverlap, counts.other);
  report(kOverlapStream, counts.stream);
  report(kOverlapRange, counts.range);
  report(kTooDeep, counts.deep);
}

}  // namespace

void Nest(trace::Store& store, unsigned threads) {
  const size_t n = store.spans.size();
  store.spans.parent.reserve(n);
  base::AdviseHugePages(store.spans.parent.data(), n * sizeof(SpanRow));
  store.spans.parent.resize(n);
  store.spans.depth.resize(n);
  std::vector<Counts> counts(store.tracks.size());
  const uint32_t max_depth = base::Limits{}.max_tree_depth;
  base::ParallelFor(base::ThreadCount(threads), store.tracks.size(), [&](size_t i) {
    const auto& track = store.tracks[i];
    TrackNester nester(store, max_depth);
    counts[i] = track.is_stream ? nester.Stream(track) : nester.Thread(track);
  });
  for (size_t i = 0; i < counts.size(); ++i) Report(counts[i], store.tracks[i], store);
}

}  // namespace teller::tree
