#include "report/call_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "report/summary.hpp"
#include "report/units.hpp"

namespace teller::report {

namespace {

using base::Nanos;
using trace::SpanKind;

/// A frame that spends this part of its time in its only child says nothing by itself.
constexpr double kPassThrough = 0.9;

class Builder {
 public:
  Builder(const engine::Run& run, const CallTreeScope& scope) : run_(run), store_(run.store), scope_(scope) {
    tree_.node_of.assign(store_.spans.size(), CallTree::kNoNode);
  }

  CallTree Build() {
    AddCpuSpans();
    AddLaunchedWork();
    AddStrayWork();
    Weigh();
    for (CallNode& node : tree_.nodes) {
      std::sort(node.children.begin(), node.children.end(), [&](uint32_t a, uint32_t b) {
        return std::pair(tree_.nodes[a].first, a) < std::pair(tree_.nodes[b].first, b);
      });
    }
    return std::move(tree_);
  }

 private:
  bool InScope(size_t row) const {
    const Nanos begin = store_.spans.begin[row];
    return scope_.begin == base::kNoTime || (begin >= scope_.begin && begin < scope_.end);
  }
  bool Wanted(const trace::Track& track) const { return !scope_.process || track.process == *scope_.process; }

  /// Rows of a track that may be in scope.
  std::pair<size_t, size_t> Rows(const trace::Track& track) const {
    size_t first = track.first_span;
    size_t last = first + track.span_count;
    if (scope_.begin != base::kNoTime) {
      const auto& begins = store_.spans.begin;
      const auto at = [&](size_t row) { return begins.begin() + static_cast<std::ptrdiff_t>(row); };
      const auto lo = std::lower_bound(at(first), at(last), scope_.begin);
      const auto hi = std::lower_bound(lo, at(last), scope_.end);
      first = static_cast<size_t>(lo - begins.begin());
      last = static_cast<size_t>(hi - begins.begin());
    }
    return {first, last};
  }

  void AddCpuSpans() {
    for (uint32_t t = 0; t < store_.tracks.size(); ++t) {
      const trace::Track& track = store_.tracks[t];
      if (track.is_stream || !Wanted(track)) continue;
      const auto [first, last] = Rows(track);
      for (size_t row = first; row < last; ++row) {
        const trace::SpanRow parent = store_.spans.parent.empty() ? trace::SpanRow() : store_.spans.parent[row];
        uint32_t under = parent.valid() ? tree_.node_of[parent.value()] : CallTree::kNoNode;
        if (under == CallTree::kNoNode) {
          under = Lane(trace::TrackRow(t));
        } else {
          tree_.nodes[under].self -= store_.spans.duration[row];
        }
        AddCall(under, row);
      }
    }
  }

  void AddLaunchedWork() {
    for (const trace::LaunchLink& link : run_.trees.launches) {
      const uint32_t under = tree_.node_of[link.launch.value()];
      if (under != CallTree::kNoNode) AddCall(AlignedPlace(under, link.work), link.work.value());
    }
  }

  /// GPU work whose launch is not in the file, and other spans of streams.
  void AddStrayWork() {
    std::vector<bool> launched;
    if (scope_.begin != base::kNoTime) {
      launched.assign(store_.spans.size(), false);
      for (const trace::LaunchLink& link : run_.trees.launches) launched[link.work.value()] = true;
    }
    for (uint32_t t = 0; t < store_.tracks.size(); ++t) {
      const trace::Track& track = store_.tracks[t];
      if (!track.is_stream || !Wanted(track)) continue;
      const auto [first, last] = Rows(track);
      for (size_t row = first; row < last; ++row) {
        // Work of a launch outside the scope belongs to another step.
        if (tree_.node_of[row] != CallTree::kNoNode || (!launched.empty() && launched[row])) continue;
        if (store_.kind(row) == SpanKind::kGpuAnnotation) continue;
        AddCall(AlignedPlace(Lane(trace::TrackRow(t)), trace::SpanRow(static_cast<uint32_t>(row))), row);
      }
    }
  }

  /// The node of the module and operator below `under` that a replayed kernel was aligned to; `under` for other work.
  uint32_t AlignedPlace(uint32_t under, trace::SpanRow work) {
    const trace::GraphOrigin* origin = run_.trees.OriginOf(work);
    if (origin == nullptr) return under;
    std::string_view path = store_.text(origin->module);
    while (!path.empty()) {
      const std::string_view part = path.substr(0, path.find('/'));
      under = AlignedNode(under, store_.strings.Find(part), *origin, work);
      path.remove_prefix(std::min(path.size(), part.size() + 1));
    }
    if (origin->op.valid()) under = AlignedNode(under, origin->op, *origin, work);
    return under;
  }

  uint32_t AlignedNode(uint32_t under, trace::StringId name, const trace::GraphOrigin& origin, trace::SpanRow work) {
    const size_t row = work.value();
    const auto [it, fresh] = aligned_.try_emplace(static_cast<uint64_t>(under) << 32 | name.value(),
                                                  static_cast<uint32_t>(tree_.nodes.size()));
    if (fresh) {
      CallNode node;
      node.name = name;
      node.track = store_.spans.track[row];
      node.first = store_.spans.begin[row];
      node.aligned = origin.confidence;
      tree_.nodes.push_back(node);
      tree_.nodes[under].children.push_back(it->second);
    }
    CallNode& node = tree_.nodes[it->second];
    const Nanos duration = store_.spans.duration[row];
    node.aligned = std::min(node.aligned, origin.confidence);
    node.learned = node.learned || origin.source == trace::GraphSource::kLearned;
    ++node.count;
    node.total += duration;
    node.first = std::min(node.first, store_.spans.begin[row]);
    if (duration >= node.longest) {
      node.longest = duration;
      node.longest_span = work;
    }
    AddToLane(under, row);
    return it->second;
  }

  /// Children stand after their parent.
  void Weigh() {
    for (size_t i = tree_.nodes.size(); i-- > 0;) {
      CallNode& node = tree_.nodes[i];
      Nanos below = 0;
      for (const uint32_t child : node.children) below += tree_.nodes[child].weight;
      node.weight = std::max(node.total, below);
    }
  }

  uint32_t Lane(trace::TrackRow track) {
    const auto [it, fresh] = lanes_.try_emplace(track, static_cast<uint32_t>(tree_.nodes.size()));
    if (fresh) {
      CallNode node;
      node.track = track;
      node.is_lane = true;
      tree_.nodes.push_back(node);
      tree_.lanes.push_back(it->second);
    }
    return it->second;
  }

  void AddCall(uint32_t under, size_t row) {
    const uint64_t key = static_cast<uint64_t>(under) << 32 | store_.spans.name[row].value();
    const auto [it, fresh] = children_.try_emplace(key, static_cast<uint32_t>(tree_.nodes.size()));
    if (fresh) {
      CallNode node;
      node.name = store_.spans.name[row];
      node.track = store_.spans.track[row];
      node.kind = store_.kind(row);
      node.first = store_.spans.begin[row];
      tree_.nodes.push_back(node);
      tree_.nodes[under].children.push_back(it->second);
    }
    CallNode& node = tree_.nodes[it->second];
    const Nanos duration = store_.spans.duration[row];
    ++node.count;
    node.total += duration;
    node.self += duration;
    node.first = std::min(node.first, store_.spans.begin[row]);
    if (duration >= node.longest) {
      node.longest = duration;
      node.longest_span = trace::SpanRow(static_cast<uint32_t>(row));
    }
    tree_.node_of[row] = it->second;
    AddToLane(under, row);
  }

  /// A lane sums up what hangs directly below it.
  void AddToLane(uint32_t node, size_t row) {
    CallNode& lane = tree_.nodes[node];
    if (!lane.is_lane) return;
    ++lane.count;
    lane.total += store_.spans.duration[row];
    if (lane.first == base::kNoTime) lane.first = store_.spans.begin[row];
  }

  const engine::Run& run_;
  const trace::Store& store_;
  CallTreeScope scope_;
  CallTree tree_;
  std::unordered_map<trace::TrackRow, uint32_t> lanes_;
  std::unordered_map<uint64_t, uint32_t> children_;  // key: parent node, name
  std::unordered_map<uint64_t, uint32_t> aligned_;   // the same for modules and operators of replayed kernels
};

}  // namespace

CallTree BuildCallTree(const engine::Run& run, const CallTreeScope& scope) {
  return Builder(run, scope).Build();
}

std::string NodeLabel(const trace::Store& store, const CallNode& node) {
  if (node.aligned > 0) {
    return fmt::format("{} ({}, confidence {:.2f})", store.text(node.name),
                       node.learned ? "learned earlier" : "aligned", node.aligned);
  }
  if (!node.is_lane) return std::string(store.text(node.name));
  const trace::Track& track = store.tracks[node.track.value()];
  return ProcessLabel(store, track.process) + ", " + TrackLabel(track);
}

const CallNode* FollowFrames(const trace::Store& store, const CallTree& tree, const CallNode* node,
                             std::string& label) {
  label = NodeLabel(store, *node);
  size_t skipped = 0;
  while (node->kind == SpanKind::kPython && node->children.size() == 1) {
    const CallNode* only = &tree.nodes[node->children.front()];
    const bool same = only->kind == SpanKind::kPython && only->count == node->count &&
                      static_cast<double>(only->total) >= kPassThrough * static_cast<double>(node->total);
    if (!same) break;
    node = only;
    ++skipped;
  }
  if (skipped > 1) label += " > (" + Count(skipped - 1, "frame") + ")";
  if (skipped > 0) label += " > " + NodeLabel(store, *node);
  return node;
}

}  // namespace teller::report
