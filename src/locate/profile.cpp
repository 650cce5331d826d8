#include "locate/profile.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "locate/late_start.hpp"
#include "locate/saves.hpp"
#include "tree/collectives.hpp"

namespace teller::locate {

namespace {

using trace::SpanKind;
using trace::Step;

constexpr size_t kLongestPrefillChain =
    256;  // prefills in a row before a decode; a prefill-only worker has no end of them

/// When a process sits in a collective: [begin, split) waits for the last rank, [split, end) transfers.
struct CommInterval {
  Nanos begin = 0;
  Nanos split = 0;
  Nanos end = 0;
};

/// Collective intervals of each process, sorted and made disjoint.
class CommTable {
 public:
  CommTable(const trace::Store& store, const trace::Trees& trees) {
    std::unordered_map<uint32_t, Nanos> split;  // span -> last arrival on its own clock
    for (const auto& collective : trees.collectives) {
      for (const auto& member : collective.members) {
        split[member.span.value()] = store.spans.begin[member.span.value()] + member.wait;
      }
    }
    for (uint32_t row = 0; row < store.spans.size(); ++row) {
      const SpanKind kind = store.kind(row);
      if ((kind != SpanKind::kAnnotation && kind != SpanKind::kOp) || !tree::IsCollectiveSpan(store, row)) continue;
      const auto found = split.find(row);
      const Nanos begin = store.spans.begin[row];
      by_process_[store.track_of(row).process.value()].push_back(
          {begin, found == split.end() ? begin : found->second, store.spans.end(row)});
    }
    for (auto& [process, intervals] : by_process_) {
      std::sort(intervals.begin(), intervals.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
      // Several worker threads overlap: what an earlier interval covers is taken off, so that ends rise too.
      Nanos covered = trace::kNoTime;
      std::erase_if(intervals, [&](CommInterval& interval) {
        if (interval.end <= covered) return true;
        interval.begin = std::max(interval.begin, covered);
        interval.split = std::clamp(interval.split, interval.begin, interval.end);
        covered = interval.end;
        return false;
      });
    }
  }

  /// Parts of [begin, end) that are wait and transfer.
  void Overlap(uint32_t process, Nanos begin, Nanos end, Nanos& wait, Nanos& transfer) const {
    const auto found = by_process_.find(process);
    if (found == by_process_.end()) return;
    const auto& list = found->second;
    auto it =
        std::lower_bound(list.begin(), list.end(), begin, [](const CommInterval& c, Nanos t) { return c.end <= t; });
    for (; it != list.end() && it->begin < end; ++it) {
      wait += std::max<Nanos>(0, std::min(end, it->split) - std::max(begin, it->begin));
      transfer += std::max<Nanos>(0, std::min(end, it->end) - std::max(begin, it->split));
    }
  }

 private:
  std::map<uint32_t, std::vector<CommInterval>> by_process_;
};

/// Splits one step's main thread into slots.
class Splitter {
 public:
  Splitter(const trace::Store& store, const CommTable& comm, StepProfile& out)
      : store_(store), comm_(comm), out_(out) {}

  void Run(const Step& step, trace::TrackRow track) {
    process_ = step.process.value();
    const auto& t = store_.tracks[track.value()];
    const auto base = store_.spans.begin.begin();
    const auto first = base + t.first_span;
    const auto last = first + t.span_count;
    uint32_t row = static_cast<uint32_t>(std::lower_bound(first, last, step.begin) - base);
    at_ = step.begin;
    for (; row < t.first_span + t.span_count && store_.spans.begin[row] < step.end; ++row) {
      const SpanKind kind = store_.kind(row);
      if (kind == SpanKind::kProfiler || kind == SpanKind::kOverhead) continue;
      const Nanos begin = store_.spans.begin[row];
      CloseUntil(begin);
      Emit(begin);
      Open(row, std::min(store_.spans.end(row), step.end));
    }
    CloseUntil(step.end);
    Emit(step.end);
    Finish();
  }

 private:
  struct Frame {
    uint32_t row = 0;
    Nanos end = 0;
    uint32_t op_slot = kNoSpan;  // index into slots_ of the innermost operator, or none
  };

  static bool IsWork(SpanKind kind) {
    return kind == SpanKind::kOp || trace::IsApiCall(kind) || kind == SpanKind::kSync;
  }

  void Open(uint32_t row, Nanos end) {
    Frame frame{row, end, stack_.empty() ? kNoSpan : stack_.back().op_slot};
    if (IsWork(store_.kind(row))) {
      const uint32_t name = store_.spans.name[row].value();
      const uint32_t ordinal = ordinals_[name]++;
      frame.op_slot = static_cast<uint32_t>(slots_.size());
      slots_.push_back({{name, ordinal, SlotKey::Kind::kOp},
                        0,
                        end - store_.spans.begin[row],
                        store_.spans.begin[row],
                        0,
                        false,
                        row});
      ++out_.op_count;
      last_op_ = {name, ordinal, SlotKey::Kind::kHost};
    }
    stack_.push_back(frame);
  }

  void CloseUntil(Nanos now) {
    while (!stack_.empty() && stack_.back().end <= now) {
      Emit(stack_.back().end);
      stack_.pop_back();
    }
  }

  /// Books the time since the last event to whoever was innermost.
  void Emit(Nanos now) {
    if (now <= at_) return;
    const Nanos begin = at_;
    at_ = now;
    Nanos piece = now - begin;
    if (!stack_.empty() && stack_.back().op_slot != kNoSpan) {
      Slot& slot = slots_[stack_.back().op_slot];
      if (tree::IsCommunicationName(store_.name(slot.span))) piece -= BookComm(begin, now);
      slot.cost += piece;
      out_.ops += piece;
      if (piece > slot.largest) {
        slot.largest = piece;
        slot.begin = begin;
      }
      return;
    }
    const Nanos comm = BookComm(begin, now);
    piece -= comm;
    if (piece <= 0 && comm == 0) return;
    out_.host += piece;
    Slot& slot = HostSlot();
    slot.waits = slot.waits || comm > 0;
    slot.cost += piece;
    slot.total += piece;
    // Interpreter frames come and go inside one stretch of host time; only work and collectives end it.
    const bool goes_on = comm == 0 && begin == host_until_;
    host_run_ = goes_on ? host_run_ + piece : piece;
    host_until_ = now;
    if (piece > host_piece_ || !goes_on) {
      host_piece_ = piece;
      host_owner_ = stack_.empty() ? kNoSpan : stack_.back().row;
    }
    if (host_run_ > slot.largest) {
      slot.largest = host_run_;
      slot.begin = now - host_run_;
      slot.span = host_owner_;
    }
  }

  Nanos BookComm(Nanos begin, Nanos end) {
    Nanos wait = 0;
    Nanos transfer = 0;
    comm_.Overlap(process_, begin, end, wait, transfer);
    out_.comm_wait += wait;
    out_.comm_transfer += transfer;
    return wait + transfer;
  }

  Slot& HostSlot() {
    if (slots_.empty() || slots_.back().key != last_op_) {
      if (host_slot_ != kNoSpan && slots_[host_slot_].key == last_op_) return slots_[host_slot_];
      host_slot_ = static_cast<uint32_t>(slots_.size());
      const bool after = tree::IsCommunicationName(store_.strings.Text(trace::StringId(last_op_.name)));
      slots_.push_back({last_op_, 0, 0, at_, 0, after, kNoSpan});
    }
    return slots_[host_slot_];
  }

  void Finish() {
    std::sort(slots_.begin(), slots_.end(), [](const Slot& a, const Slot& b) { return a.key < b.key; });
    for (const Slot& slot : slots_) {
      if (slot.waits) out_.beside += slot.cost;
    }
    out_.slots = std::move(slots_);
  }

  const trace::Store& store_;
  const CommTable& comm_;
  StepProfile& out_;
  uint32_t process_ = 0;
  Nanos at_ = 0;
  std::vector<Frame> stack_;
  std::vector<Slot> slots_;
  std::unordered_map<uint32_t, uint32_t> ordinals_;
  SlotKey last_op_ = {0, 0, SlotKey::Kind::kHost};
  uint32_t host_slot_ = kNoSpan;
  Nanos host_run_ = 0;    // current stretch of host time
  Nanos host_until_ = 0;  // where it ends so far
  Nanos host_piece_ = 0;  // its largest piece
  uint32_t host_owner_ = kNoSpan;
};

/// The lane a step runs on: its mark's, or the process's busiest thread.
trace::TrackRow LaneOf(const trace::Store& store, const Step& step) {
  if (step.span.valid()) return store.spans.track[step.span.value()];
  trace::TrackRow best;
  uint32_t most = 0;
  for (uint32_t t = 0; t < store.tracks.size(); ++t) {
    const auto& track = store.tracks[t];
    if (track.process == step.process && !track.is_stream && track.span_count > most) {
      most = track.span_count;
      best = trace::TrackRow(t);
    }
  }
  return best;
}

/// Recorders that sample (operators of every n-th graph only) leave most steps without any: those are opaque, not
/// empty.
void MarkOpaque(const trace::Trees& trees, std::vector<StepProfile>& profiles) {
  std::map<uint32_t, std::pair<size_t, size_t>> counts;  // process -> (steps, of these without operators)
  for (const StepProfile& p : profiles) {
    auto& [steps, without] = counts[trees.steps[p.step].process.value()];
    ++steps;
    if (p.op_count == 0) ++without;
  }
  for (StepProfile& p : profiles) {
    const auto& [steps, without] = counts[trees.steps[p.step].process.value()];
    p.opaque = p.op_count == 0 && without * 5 > steps;
  }
}

/// Adds the GPU work that was launched inside each step as slots of its own.
void AddGpuSlots(const trace::Store& store, const trace::Trees& trees, std::vector<StepProfile>& profiles) {
  if (trees.launches.empty()) return;
  std::map<uint32_t, std::vector<uint32_t>> steps_of;  // process -> steps in order
  for (uint32_t i = 0; i < trees.steps.size(); ++i) steps_of[trees.steps[i].process.value()].push_back(i);
  std::vector<std::pair<uint32_t, trace::LaunchLink>> inside;  // (step, link)
  for (const auto& link : trees.launches) {
    const auto& track = store.track_of(link.launch.value());
    const auto found = steps_of.find(track.process.value());
    if (found == steps_of.end()) continue;
    const Nanos at = store.spans.begin[link.launch.value()];
    const auto& list = found->second;
    auto it =
        std::upper_bound(list.begin(), list.end(), at, [&](Nanos t, uint32_t s) { return t < trees.steps[s].begin; });
    if (it == list.begin()) continue;
    const uint32_t step = *(it - 1);
    if (at < trees.steps[step].end) inside.emplace_back(step, link);
  }
  std::sort(inside.begin(), inside.end(), [&](const auto& a, const auto& b) {
    return std::tuple(a.first, store.spans.begin[a.second.work.value()], a.second.work.value()) <
           std::tuple(b.first, store.spans.begin[b.second.work.value()], b.second.work.value());
  });
  std::unordered_set<uint32_t>
      inferred;  // kernels that wait for other ranks: their length says nothing about their own rank
  for (const auto& collective : trees.collectives) {
    if (!collective.inferred) continue;
    for (const auto& member : collective.members) inferred.insert(member.span.value());
  }
  std::unordered_map<uint32_t, uint32_t> ordinals;
  uint32_t current = kNoSpan;
  for (const auto& [step, link] : inside) {
    if (step != current) ordinals.clear();
    current = step;
    const uint32_t row = link.work.value();
    if (tree::IsCollectiveSpan(store, row) || inferred.count(row) > 0) continue;
    const uint32_t name = store.spans.name[row].value();
    const Nanos cost = store.spans.duration[row];
    profiles[step].uses_device = true;
    profiles[step].slots.push_back(
        {{name, ordinals[name]++, SlotKey::Kind::kGpu}, cost, cost, store.spans.begin[row], cost, false, row});
  }
  for (auto& profile : profiles) {
    std::sort(profile.slots.begin(), profile.slots.end(), [](const Slot& a, const Slot& b) { return a.key < b.key; });
  }
}

}  // namespace

bool IsWaitingCall(std::string_view name) {
  return tree::IsCommunicationName(name) || name.find("Synchronize") != std::string_view::npos;
}

bool GapIsStall(const std::vector<Step>& steps, size_t i) {
  if (i == 0 || steps[i - 1].process != steps[i].process) return false;
  const Step& before = steps[i - 1];
  const Step& after = steps[i];
  if (before.kind == trace::StepKind::kEmpty) return false;  // the engine said that nothing runs
  if (after.decode_requests > 0) {
    // Sequences that decode now were admitted before: by the step before, or they ran through the gap.
    return true;
  }
  if (after.decode_requests == 0 && after.prefill_requests > 0) {
    // A prefill alone: others ran through the gap only when more decode afterwards than were prefilled since.
    int64_t prefilled = 0;
    for (size_t k = i; k < steps.size() && k < i + kLongestPrefillChain && steps[k].process == after.process; ++k) {
      if (steps[k].decode_requests > 0) return steps[k].decode_requests > prefilled;
      prefilled += std::clamp<int64_t>(steps[k].prefill_requests, 0, INT32_MAX);
    }
    return false;
  }
  if (after.kind == trace::StepKind::kDecode) return true;
  if (after.kind == trace::StepKind::kPrefill) return false;
  if (after.new_tokens > 0 && before.new_tokens > 0) {
    // Without a kind (llama.cpp): the same small batch goes on as it was.
    return after.new_tokens == before.new_tokens;
  }
  return after.kind == trace::StepKind::kUnknown && after.shape == before.shape;
}

std::vector<StepProfile> ProfileSteps(const trace::Store& store, const trace::Trees& trees) {
  const CommTable comm(store, trees);
  const HostCopies copies(store);
  const std::vector<Nanos> late = LateStarts(trees);
  std::vector<StepProfile> profiles(trees.steps.size());
  for (uint32_t i = 0; i < trees.steps.size(); ++i) {
    StepProfile& profile = profiles[i];
    profile.step = i;
    const Step& step = trees.steps[i];
    if (const trace::TrackRow lane = LaneOf(store, step); lane.valid()) Splitter(store, comm, profile).Run(step, lane);
    const int64_t copied =
        copies.Between(step.process.value(), step.begin - std::max<Nanos>(0, step.gap_before), step.begin);
    if (copied >= kLeastSaved) {
      profile.saved_bytes = copied;
    } else if (GapIsStall(trees.steps, i)) {
      // A collective between two steps is waited for there as in a step.
      Nanos wait = 0;
      Nanos transfer = 0;
      comm.Overlap(step.process.value(), step.begin - std::max<Nanos>(0, step.gap_before), step.begin, wait, transfer);
      profile.gap = std::max<Nanos>(0, step.gap_before - wait - transfer);
    } else if (late[i] > 0) {
      profile.gap = late[i];
      profile.late_start = true;
    }
  }
  MarkOpaque(trees, profiles);
  AddGpuSlots(store, trees, profiles);
  return profiles;
}

}  // namespace teller::locate
