#include "slice/slice.hpp"

#include <algorithm>
#include <set>

namespace teller::slice {

namespace {

using trace::Nanos;
using trace::SpanRow;

class Builder {
 public:
  Builder(const trace::Store& store, const trace::Trees& trees, SpanRow symptom, const SliceOptions& options)
      : store_(store), trees_(trees), symptom_(symptom.value()), options_(options) {}

  Slice Run() {
    AddSpan(Relation::kSymptom, symptom_);
    AddAncestors();
    AddCollectives();
    AddLaunches();
    AddSiblings();
    FillWithChildrenAndLogs();
    std::stable_sort(slice_.nodes.begin(), slice_.nodes.end(), [&](const Node& a, const Node& b) {
      return std::pair(a.relation, TimeOf(a)) < std::pair(b.relation, TimeOf(b));
    });
    return std::move(slice_);
  }

 private:
  Nanos TimeOf(const Node& node) const {
    return node.span.valid() ? store_.spans.begin[node.span.value()] : store_.logs[node.log.value()].at;
  }
  Nanos begin() const { return store_.spans.begin[symptom_]; }
  Nanos end() const { return store_.spans.end(symptom_); }

  bool HasRoom() const { return slice_.nodes.size() < std::max(options_.budget, 1u); }

  void AddSpan(Relation relation, uint32_t span) {
    if (!seen_.insert(span).second) return;
    if (!HasRoom()) {
      ++slice_.left_out;
      return;
    }
    slice_.nodes.push_back({relation, SpanRow(span), {}});
  }

  void AddAncestors() {
    for (SpanRow at = store_.spans.parent[symptom_]; at.valid(); at = store_.spans.parent[at.value()]) {
      AddSpan(Relation::kAncestor, at.value());
    }
  }

  /// Collectives in which the symptom's process takes part while the symptom runs.
  void AddCollectives() {
    const trace::ProcessRow process = store_.track_of(symptom_).process;
    for (const auto& collective : trees_.collectives) {
      const auto mine = std::find_if(collective.members.begin(), collective.members.end(), [&](const auto& member) {
        const uint32_t span = member.span.value();
        return member.process == process && store_.spans.begin[span] < end() && store_.spans.end(span) > begin();
      });
      if (mine == collective.members.end()) continue;
      AddSpan(Relation::kCollective, mine->span.value());
      for (const auto& member : collective.members) {
        if (member.process != process) AddSpan(Relation::kPeer, member.span.value());
      }
    }
  }

  void AddLaunches() {
    const auto by_work = std::lower_bound(trees_.launches.begin(), trees_.launches.end(), symptom_,
                                          [](const trace::LaunchLink& link, uint32_t row) { return link.work.value() < row; });
    if (by_work != trees_.launches.end() && by_work->work.value() == symptom_) {
      AddSpan(Relation::kLaunch, by_work->launch.value());
      // What called the launch is the work's ancestry too: the stream knows nothing of the host.
      for (SpanRow at = store_.spans.parent[by_work->launch.value()]; at.valid(); at = store_.spans.parent[at.value()]) {
        AddSpan(Relation::kAncestor, at.value());
      }
    }
    const uint32_t track = store_.spans.track[symptom_].value();
    for (const auto& link : trees_.launches) {
      const uint32_t launch = link.launch.value();
      const bool inside = store_.spans.track[launch].value() == track && store_.spans.begin[launch] >= begin() &&
                          store_.spans.end(launch) <= end();
      if (inside) AddSpan(Relation::kWork, link.work.value());
    }
  }

  void AddSiblings() {
    const auto& track = store_.track_of(symptom_);
    const SpanRow parent = store_.spans.parent[symptom_];
    uint32_t before = 0;
    bool has_before = false;
    const uint32_t first = parent.valid() ? parent.value() + 1 : track.first_span;
    for (uint32_t row = first; row < symptom_; ++row) {
      if (store_.spans.parent[row] == parent && store_.spans.end(row) <= begin()) {
        before = row;
        has_before = true;
      }
    }
    if (has_before) AddSpan(Relation::kBefore, before);
    for (uint32_t row = symptom_ + 1; row < track.first_span + track.span_count; ++row) {
      if (parent.valid() && store_.spans.begin[row] >= store_.spans.end(parent.value())) break;
      if (store_.spans.parent[row] != parent || store_.spans.begin[row] < end()) continue;
      AddSpan(Relation::kAfter, row);
      break;
    }
  }

  void FillWithChildrenAndLogs() {
    std::vector<uint32_t> children;
    const auto& track = store_.track_of(symptom_);
    for (uint32_t row = symptom_ + 1; row < track.first_span + track.span_count && store_.spans.begin[row] < end(); ++row) {
      if (store_.spans.parent[row] == SpanRow(symptom_)) children.push_back(row);
    }
    std::stable_sort(children.begin(), children.end(), [&](uint32_t a, uint32_t b) {
      return store_.spans.duration[a] > store_.spans.duration[b];
    });
    std::vector<uint32_t> logs = Logs();
    for (size_t i = 0; i < std::max(children.size(), logs.size()); ++i) {
      if (i < children.size()) AddSpan(Relation::kChild, children[i]);
      if (i < logs.size()) AddLog(logs[i]);
    }
  }

  /// Records of the symptom's process in its time, worst level first.
  std::vector<uint32_t> Logs() const {
    const trace::ProcessRow process = store_.track_of(symptom_).process;
    std::vector<uint32_t> rows;
    for (uint32_t row = 0; row < store_.logs.size(); ++row) {
      const trace::LogRecord& record = store_.logs[row];
      if (record.at == trace::kNoTime) continue;
      if (record.at + record.at_error < begin() - options_.log_window || record.at - record.at_error > end() + options_.log_window) continue;
      const bool of_step = record.step.valid() && trees_.steps[record.step.value()].process == process;
      if (record.trace_process == process || of_step) rows.push_back(row);
    }
    std::stable_sort(rows.begin(), rows.end(), [&](uint32_t a, uint32_t b) {
      return store_.logs[a].level > store_.logs[b].level;
    });
    return rows;
  }

  void AddLog(uint32_t row) {
    if (!HasRoom()) {
      ++slice_.left_out;
      return;
    }
    slice_.nodes.push_back({Relation::kLog, {}, trace::LogRow(row)});
  }

  const trace::Store& store_;
  const trace::Trees& trees_;
  uint32_t symptom_;
  const SliceOptions& options_;
  Slice slice_;
  std::set<uint32_t> seen_;
};

}  // namespace

Slice CausalSlice(const trace::Store& store, const trace::Trees& trees, SpanRow symptom, const SliceOptions& options) {
  return Builder(store, trees, symptom, options).Run();
}

}  // namespace teller::slice
