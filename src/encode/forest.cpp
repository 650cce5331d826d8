#include "encode/forest.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <tuple>

#include "encode/name_text.hpp"

namespace teller::encode {

namespace {

using trace::Nanos;
using trace::SpanRow;

constexpr uint32_t kNone = UINT32_MAX;

/// "thread 4711 (pt_gloo_runloop)" -> "pt_gloo_runloop"; names that differ in numbers are one.
std::string ThreadName(std::string_view name) {
  if (name.starts_with("thread ") && name.ends_with(')')) {
    const size_t open = name.find('(');
    if (open != std::string_view::npos) name = name.substr(open + 1, name.size() - open - 2);
  }
  std::string out = Bounded(WithoutNumbers(name));
  return out.empty() ? "thread" : out;
}

}  // namespace

uint32_t SymbolTable::Row(const Symbol& symbol) {
  std::string key(1, static_cast<char>(symbol.layer));
  key += symbol.name;
  const auto [it, fresh] = rows_.try_emplace(std::move(key), static_cast<uint32_t>(symbols_.size()));
  if (fresh) symbols_.push_back(symbol);
  return it->second;
}

ForestBuilder::ForestBuilder(const trace::Store& store, const trace::Trees& trees, SymbolTable& table)
    : store_(store), trees_(trees), table_(table), symbols_(store) {
  const size_t spans = store.spans.size();
  linked_.resize(spans);
  work_.reserve(trees.launches.size());
  for (const trace::LaunchLink& link : trees.launches) {
    linked_[link.work.value()] = true;
    work_.emplace_back(link.launch.value(), link.work.value());
  }
  // Streams run side by side: work of one is kept together, so that a race between two does not change the order.
  std::sort(work_.begin(), work_.end(), [&](const auto& a, const auto& b) {
    const auto key = [&](const auto& pair) {
      return std::tuple(pair.first, store_.spans.track[pair.second], store_.spans.begin[pair.second], pair.second);
    };
    return key(a) < key(b);
  });
  SortByTime();
  child_time_.assign(spans, 0);
  for (uint32_t row = 0; row < spans; ++row) {
    const SpanRow parent = store.spans.parent[row];
    if (parent.valid()) child_time_[parent.value()] += store.spans.duration[row];
  }
  first_child_.assign(spans, kNone);
  next_sibling_.assign(spans, kNone);
}

/// Merges the tracks of each process, which are sorted already; finds the thread with the most spans.
void ForestBuilder::SortByTime() {
  std::vector<std::vector<uint32_t>> tracks(store_.processes.size());
  uint64_t spans = 0;
  for (uint32_t t = 0; t < store_.tracks.size(); ++t) {
    const trace::Track& track = store_.tracks[t];
    if (!track.process.valid()) continue;
    tracks[track.process.value()].push_back(t);
    spans += track.span_count;
  }
  by_time_.reserve(spans);
  busiest_.assign(tracks.size(), kNone);
  lane_of_.assign(store_.tracks.size(), kNone);
  using Next = std::pair<Nanos, uint32_t>;  // begin and row of the next span of a track
  std::priority_queue<Next, std::vector<Next>, std::greater<>> waiting;
  for (uint32_t p = 0; p < tracks.size(); ++p) {
    process_first_.push_back(by_time_.size());
    for (const uint32_t t : tracks[p]) {
      const trace::Track& track = store_.tracks[t];
      if (track.span_count > 0) waiting.emplace(store_.spans.begin[track.first_span], track.first_span);
      if (track.is_stream) continue;
      if (busiest_[p] == kNone || track.span_count > store_.tracks[busiest_[p]].span_count) busiest_[p] = t;
    }
    while (!waiting.empty()) {
      const uint32_t row = waiting.top().second;
      waiting.pop();
      by_time_.push_back(row);
      const trace::Track& track = store_.tracks[store_.spans.track[row].value()];
      if (row + 1 < track.first_span + track.span_count) waiting.emplace(store_.spans.begin[row + 1], row + 1);
    }
  }
  process_first_.push_back(by_time_.size());
}

uint64_t ForestBuilder::traced_spans() const {
  uint64_t spans = 0;
  for (const trace::Track& track : store_.tracks) {
    if (track.process.valid() && !store_.processes[track.process.value()].service) spans += track.span_count;
  }
  return spans;
}

uint32_t ForestBuilder::RowOf(uint32_t span) {
  const uint64_t key = uint64_t{store_.spans.name[span].value()} << 8 | static_cast<uint64_t>(store_.kind(span));
  const auto [it, fresh] = known_.try_emplace(key, 0);
  if (fresh) it->second = table_.Row(symbols_.Of(SpanRow(span)));
  return it->second;
}

void ForestBuilder::AddNode(uint32_t span, uint32_t depth, Forest& forest) {
  forest.symbol.push_back(RowOf(span));
  forest.depth.push_back(depth);
  forest.span.push_back(SpanRow(span));
  forest.total.push_back(store_.spans.duration[span]);
  forest.self.push_back(std::max<Nanos>(0, store_.spans.duration[span] - child_time_[span]));
}

void ForestBuilder::AddStructure(Layer layer, const std::string& name, Forest& forest) {
  forest.symbol.push_back(table_.Row({layer, name}));
  forest.depth.push_back(0);
  forest.span.push_back(SpanRow());
  forest.total.push_back(0);
  forest.self.push_back(0);
  ++forest.structure;
}

void ForestBuilder::AddWork(uint32_t launch, uint32_t depth, Forest& forest) {
  if (!trace::IsApiCall(store_.kind(launch))) return;
  auto it = std::lower_bound(work_.begin(), work_.end(), std::pair(launch, 0U),
                             [](const auto& a, const auto& b) { return a.first < b.first; });
  for (; it != work_.end() && it->first == launch; ++it) AddNode(it->second, depth, forest);
}

std::vector<ForestBuilder::Root> ForestBuilder::RootsOf(const std::vector<Lane>& lanes) const {
  std::vector<Root> roots;
  for (uint32_t l = 0; l < lanes.size(); ++l) {
    for (uint32_t row = lanes[l].first; row < lanes[l].last; ++row) {
      const SpanRow parent = store_.spans.parent[row];
      if (!linked_[row] && (!parent.valid() || parent.value() < lanes[l].first)) roots.push_back({row, l});
    }
  }
  std::sort(roots.begin(), roots.end(), [&](const Root& a, const Root& b) {
    return std::tuple(store_.spans.begin[a.row], a.lane, a.row) < std::tuple(store_.spans.begin[b.row], b.lane, b.row);
  });
  return roots;
}

/// Adds the trees of `roots` below the node that was added last. Children are found by their parents, because on
/// streams a subtree is not one run of rows.
void ForestBuilder::AddRoots(std::vector<Root> roots, const std::vector<Lane>& lanes, Forest& forest) {
  const size_t top = forest.size() - 1;
  for (const Lane& lane : lanes) {
    for (uint32_t row = lane.last; row-- > lane.first;) {
      const SpanRow parent = store_.spans.parent[row];
      if (linked_[row] || !parent.valid() || parent.value() < lane.first) continue;
      next_sibling_[row] = first_child_[parent.value()];
      first_child_[parent.value()] = row;
    }
  }
  struct Open {
    uint32_t row;
    uint32_t depth;
  };
  std::vector<Open> stack;
  for (const Root& root : roots) {
    forest.total[top] += store_.spans.duration[root.row];
    stack.push_back({root.row, 1});
    while (!stack.empty()) {
      const Open open = stack.back();
      stack.pop_back();
      AddNode(open.row, open.depth, forest);
      AddWork(open.row, open.depth + 1, forest);
      if (next_sibling_[open.row] != kNone) stack.push_back({next_sibling_[open.row], open.depth});
      if (first_child_[open.row] != kNone) stack.push_back({first_child_[open.row], open.depth + 1});
    }
  }
  for (const Lane& lane : lanes) {
    std::fill(first_child_.begin() + lane.first, first_child_.begin() + lane.last, kNone);
    std::fill(next_sibling_.begin() + lane.first, next_sibling_.begin() + lane.last, kNone);
  }
}

/// Only the tracks with spans in the segment: a process may have as many threads as steps.
void ForestBuilder::FindLanes(const Segment& segment, std::vector<Lane>& threads, std::vector<Lane>& streams) {
  const auto rows = [&](size_t process) {
    return by_time_.begin() + static_cast<std::ptrdiff_t>(process_first_[process]);
  };
  const auto first = rows(segment.process.value());
  const auto last = rows(segment.process.value() + 1);
  const auto at = [&](Nanos time, auto none) {
    if (time == trace::kNoTime) return none;
    return std::lower_bound(first, last, time, [&](uint32_t row, Nanos t) { return store_.spans.begin[row] < t; });
  };
  std::vector<Lane> lanes;
  const auto end = at(segment.end, last);
  for (auto it = at(segment.begin, first); it < end; ++it) {
    ++visits_;
    const uint32_t track = store_.spans.track[*it].value();
    if (lane_of_[track] == kNone) {
      lane_of_[track] = static_cast<uint32_t>(lanes.size());
      lanes.push_back({track, *it, *it + 1});
    }
    lanes[lane_of_[track]].last = *it + 1;
  }
  for (const Lane& lane : lanes) lane_of_[lane.track] = kNone;
  std::sort(lanes.begin(), lanes.end(), [](const Lane& a, const Lane& b) { return a.track < b.track; });
  for (const Lane& lane : lanes) (store_.tracks[lane.track].is_stream ? streams : threads).push_back(lane);
}

/// The thread that drives the steps: that of the mark, else the one with the most spans.
uint32_t ForestBuilder::MainTrack(const Segment& segment) const {
  if (segment.step.valid()) {
    const SpanRow mark = trees_.steps[segment.step.value()].span;
    if (mark.valid()) return store_.spans.track[mark.value()].value();
  }
  return busiest_[segment.process.value()];
}

void ForestBuilder::AddThreads(const std::vector<Lane>& lanes, uint32_t main_track, Forest& forest) {
  std::map<std::pair<bool, std::string>, std::vector<Lane>> groups;
  for (const Lane& lane : lanes) {
    const bool main = lane.track == main_track;
    groups[{!main, main ? "main" : ThreadName(store_.tracks[lane.track].name)}].push_back(lane);
  }
  for (const auto& [key, group] : groups) {
    AddStructure(Layer::kThread, key.second, forest);
    AddRoots(RootsOf(group), group, forest);
  }
}

void ForestBuilder::AddStreams(const std::vector<Lane>& lanes, Forest& forest) {
  for (const Lane& lane : lanes) {
    const std::vector<Lane> one = {lane};
    std::vector<Root> roots = RootsOf(one);
    if (roots.empty()) continue;  // all of it stands under its launches
    AddStructure(Layer::kStream, "stream", forest);
    AddRoots(std::move(roots), one, forest);
  }
}

Forest ForestBuilder::Build(const Segment& segment) {
  Forest forest;
  std::vector<Lane> threads, streams;
  FindLanes(segment, threads, streams);
  AddThreads(threads, MainTrack(segment), forest);
  AddStreams(streams, forest);
  return forest;
}

}  // namespace teller::encode
