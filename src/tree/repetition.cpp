#include "tree/repetition.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace teller::tree {

namespace {

using trace::SpanKind;

constexpr size_t kFewestRepeats = 4;
constexpr size_t kShortestPeriod = 4;     // shorter ones are loops inside an operator
constexpr size_t kLongestSearched = 200'000;  // the period of the beginning is taken for the whole
constexpr double kMatching = 0.9;

/// Outermost spans of a kind on a track.
std::vector<uint32_t> Outermost(const trace::Store& store, const trace::Track& track, bool gpu) {
  std::vector<uint32_t> rows;
  for (uint32_t row = track.first_span; row < track.first_span + track.span_count; ++row) {
    const SpanKind kind = store.kind(row);
    if (gpu ? kind != SpanKind::kKernel : kind != SpanKind::kOp) continue;
    if (!gpu) {
      const trace::SpanRow parent = store.spans.parent.empty() ? trace::SpanRow() : store.spans.parent[row];
      if (parent.valid() && store.kind(parent.value()) == SpanKind::kOp) continue;
    }
    rows.push_back(row);
  }
  return rows;
}

double Matching(const std::vector<uint32_t>& s, size_t period) {
  size_t same = 0;
  for (size_t i = 0; i + period < s.size(); ++i) same += s[i] == s[i + period];
  return static_cast<double>(same) / static_cast<double>(s.size() - period);
}

}  // namespace

size_t FindPeriod(const std::vector<uint32_t>& sequence) {
  std::map<uint32_t, std::vector<size_t>> places;
  for (size_t i = 0; i < sequence.size(); ++i) places[sequence[i]].push_back(i);
  const std::vector<size_t>* rarest = nullptr;
  for (const auto& [symbol, at] : places) {
    if (at.size() < kFewestRepeats) continue;
    // Ties by place: ids follow the order of the file, places that of time.
    if (rarest == nullptr || std::pair(at.size(), at.front()) < std::pair(rarest->size(), rarest->front())) rarest = &at;
  }
  if (rarest == nullptr) return 0;
  std::map<size_t, size_t> distances;
  for (size_t i = 1; i < rarest->size(); ++i) ++distances[(*rarest)[i] - (*rarest)[i - 1]];
  std::vector<std::pair<size_t, size_t>> common;  // (count, distance)
  for (const auto& [distance, count] : distances) common.emplace_back(count, distance);
  std::sort(common.begin(), common.end(), [](auto a, auto b) { return std::pair(b.first, a.second) < std::pair(a.first, b.second); });
  if (common.size() > 16) common.resize(16);
  for (const auto& [count, distance] : common) {
    if (distance < kShortestPeriod || distance * kFewestRepeats > sequence.size()) continue;
    if (Matching(sequence, distance) >= kMatching) return distance;
  }
  return 0;
}

std::vector<Repeat> FindRepeats(const trace::Store& store, trace::ProcessRow process) {
  std::vector<uint32_t> rows;
  trace::TrackRow lane;
  for (const bool gpu : {false, true}) {
    for (uint32_t t = 0; t < store.tracks.size(); ++t) {
      const auto& track = store.tracks[t];
      if (track.process != process || track.is_stream != gpu) continue;
      std::vector<uint32_t> here = Outermost(store, track, gpu);
      if (here.size() > rows.size()) {
        rows = std::move(here);
        lane = trace::TrackRow(t);
      }
    }
    if (rows.size() >= kFewestRepeats * kShortestPeriod) break;
  }
  std::vector<uint32_t> sequence;
  sequence.reserve(rows.size());
  for (const uint32_t row : rows) sequence.push_back(store.spans.name[row].value());
  const size_t searched = std::min(sequence.size(), kLongestSearched);
  const size_t period = FindPeriod({sequence.begin(), sequence.begin() + static_cast<std::ptrdiff_t>(searched)});
  std::vector<Repeat> out;
  if (period == 0) return out;
  // Start each step at the rarest symbol's phase: the first position whose symbol occurs once per period.
  std::unordered_map<uint32_t, size_t> counts;
  for (const uint32_t symbol : sequence) ++counts[symbol];
  const size_t repeats = sequence.size() / period;
  size_t start = 0;
  for (size_t i = 0; i < period; ++i) {
    if (counts[sequence[i]] <= repeats + 1) {
      start = i;
      break;
    }
  }
  const uint32_t anchor = sequence[start];
  std::vector<size_t> begins;
  for (size_t i = start; i < sequence.size(); ++i) {
    if (sequence[i] == anchor && (begins.empty() || i - begins.back() >= period / 2)) begins.push_back(i);
  }
  for (size_t b = 0; b < begins.size(); ++b) {
    const size_t last = (b + 1 < begins.size() ? begins[b + 1] : std::min(sequence.size(), begins[b] + period)) - 1;
    out.push_back({lane, store.spans.begin[rows[begins[b]]], store.spans.end(rows[last])});
  }
  if (out.size() < kFewestRepeats) out.clear();
  return out;
}

}  // namespace teller::tree
