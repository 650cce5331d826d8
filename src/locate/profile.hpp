#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "trace/step.hpp"
#include "trace/store.hpp"

namespace teller::locate {

using trace::Nanos;

/// Place of a cost inside a step: the n-th occurrence of an operator's name, or the host time right after it. Equal
/// steps have equal slots, so a slot's cost can be compared over steps and ranks.
struct SlotKey {
  enum class Kind : uint8_t { kOp = 0, kHost = 1, kGpu = 2, kGap = 3 };
  uint32_t name = 0;     ///< StringId value of the operator (of the one before, for host time)
  uint32_t ordinal = 0;  ///< n-th of that name in the step, from 0
  Kind kind = Kind::kOp;

  friend auto operator<=>(const SlotKey&, const SlotKey&) = default;
};

/// What one slot of one step costs.
struct Slot {
  SlotKey key;
  Nanos cost = 0;      ///< self time; for host time without what collectives explain
  Nanos total = 0;     ///< op: with everything inside it; else as cost
  Nanos begin = 0;     ///< where its largest piece starts
  Nanos largest = 0;   ///< its largest uninterrupted piece
  bool waits = false;  ///< host time beside a collective: partly the way into and out of waiting
  uint32_t span = 0;   ///< op: the operator; host: innermost frame or annotation of the largest piece; row or kNoSpan
};
inline constexpr uint32_t kNoSpan = 0xFFFFFFFFu;

/// A step's time, split so that the parts sum to duration + gap (GPU slots are a second view of the same time).
struct StepProfile {
  uint32_t step = 0;        ///< index into Trees::steps
  Nanos ops = 0;            ///< inside operators
  Nanos host = 0;           ///< between operators, not explained by collectives
  Nanos beside = 0;         ///< part of host: in slots that wait
  Nanos comm_wait = 0;      ///< waiting for the last rank to arrive
  Nanos comm_transfer = 0;  ///< after that
  Nanos gap = 0;            ///< stall before the step while work was there; 0 when it may have been idle or saved
  bool late_start = false;  ///< nothing ran through the gap, but the other ranks waited: only that part of it counts
  int64_t saved_bytes = 0;  ///< copied to the host in the gap before the step, where it is much
  uint64_t op_count = 0;
  bool uses_device = false;  ///< it launched work on a device
  bool opaque = false;       ///< the recorder left this step's operators out: one host slot holds it all
  std::vector<Slot> slots;   ///< order: by key

  Nanos own() const { return ops + host; }
};

/// Profiles of all steps, in the order of `trees.steps`.
std::vector<StepProfile> ProfileSteps(const trace::Store& store, const trace::Trees& trees);

/// Calls that only wait for others, ranks or the device: their length says nothing about the caller.
bool IsWaitingCall(std::string_view name);

/// True when sequences were running through the gap before `steps[i]`, so that the gap is a stall and not idleness.
/// `steps` are those of one process in order.
bool GapIsStall(const std::vector<trace::Step>& steps, size_t i);

}  // namespace teller::locate
