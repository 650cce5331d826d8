#include "ingest/otlp/lanes.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace teller::ingest::otlp {

namespace {

constexpr int kMaxAncestors = 64;  // how far up a containing ancestor is looked for

class Lanes {
 public:
  explicit Lanes(const std::vector<LaneSpan>& spans) : spans_(spans), lane_(spans.size()) {}

  std::vector<uint32_t> Run() {
    for (uint32_t i = 0; i < spans_.size(); ++i) {
      uint32_t lane = 0;
      if (!UnderAncestor(i, lane)) lane = FreeLane(i);
      lane_[i] = lane;
      open_[lane].push_back(i);
    }
    return std::move(lane_);
  }

 private:
  /// Takes what has ended off a lane.
  void Close(uint32_t lane, base::Nanos now) {
    auto& open = open_[lane];
    while (!open.empty() && spans_[open.back()].end <= now) open.pop_back();
  }

  /// The nearest ancestor that is innermost on its lane and holds the span.
  bool UnderAncestor(uint32_t i, uint32_t& lane) {
    uint32_t ancestor = spans_[i].parent;
    uint32_t below = i;
    for (int step = 0; step < kMaxAncestors && ancestor < below; ++step) {
      lane = lane_[ancestor];
      CloseInside(lane, ancestor, spans_[i].begin);
      if (!open_[lane].empty() && open_[lane].back() == ancestor && spans_[i].end <= spans_[ancestor].end) return true;
      below = ancestor;
      ancestor = spans_[ancestor].parent;
    }
    return false;
  }

  /// As Close, but a lane's own ancestor of no length stays open for children of no length at the same time.
  void CloseInside(uint32_t lane, uint32_t ancestor, base::Nanos now) {
    auto& open = open_[lane];
    while (!open.empty() && open.back() != ancestor && spans_[open.back()].end <= now) open.pop_back();
  }

  uint32_t FreeLane(uint32_t i) {
    const base::Nanos begin = spans_[i].begin;
    const bool full = open_.size() >= kMaxLanes;
    uint32_t lane = 0;
    if (!free_at_.empty() && (free_at_.top().first <= begin || full)) {
      lane = free_at_.top().second;
      free_at_.pop();
      Close(lane, begin);
    } else {
      lane = static_cast<uint32_t>(open_.size());
      open_.emplace_back();
    }
    free_at_.emplace(spans_[i].end, lane);
    return lane;
  }

  const std::vector<LaneSpan>& spans_;
  std::vector<uint32_t> lane_;
  std::vector<std::vector<uint32_t>> open_;  // by lane: spans that run, outermost first
  using Free = std::pair<base::Nanos, uint32_t>;
  std::priority_queue<Free, std::vector<Free>, std::greater<>> free_at_;  // end of a lane's outermost span, lane
};

}  // namespace

std::vector<uint32_t> AssignLanes(const std::vector<LaneSpan>& spans) {
  return Lanes(spans).Run();
}

}  // namespace teller::ingest::otlp
