#include "align/request_phases.hpp"

#include <algorithm>
#include <array>

namespace teller::align {

namespace {

using trace::kNoTime;
using trace::Nanos;
using trace::PhaseKind;
using trace::Request;
using trace::RequestRecord;

constexpr Nanos kLongest = 400'000'000'000'000'000;  // of a duration: twelve years

constexpr std::array kInOrder = {PhaseKind::kFrontEnd, PhaseKind::kQueue,  PhaseKind::kPrefill,
                                 PhaseKind::kDecode,   PhaseKind::kOutput, PhaseKind::kUnexplained};

void TakeTime(Nanos from, Nanos& into) {
  if (into == kNoTime) into = from;
}
void TakeCount(int64_t from, int64_t& into) {
  if (into < 0) into = from;
}
void TakeText(const std::string& from, std::string& into) {
  if (into.empty()) into = from;
}

/// Lengths of the phases, by kind; the last kind takes the rest.
using Lengths = std::array<Nanos, trace::kPhaseKinds>;

Nanos& Of(Lengths& lengths, PhaseKind kind) {
  return lengths[static_cast<size_t>(kind)];
}

/// Writes lengths as phases in order. They may not exceed the end-to-end time: what is too much is taken from the
/// latest.
void Write(Lengths lengths, Request& request) {
  Nanos left = request.e2e;
  for (const PhaseKind kind : kInOrder) {
    Nanos& length = Of(lengths, kind);
    length = std::clamp<Nanos>(length, 0, left);
    left -= length;
  }
  Of(lengths, PhaseKind::kUnexplained) += left;
  request.phases.clear();
  Nanos at = request.arrival;
  for (const PhaseKind kind : kInOrder) {
    const Nanos length = Of(lengths, kind);
    if (length == 0) continue;
    request.phases.push_back({kind, at, length});
    if (at != kNoTime) at += length;
  }
}

Nanos Known(Nanos duration) {
  return std::max<Nanos>(duration, 0);
}

/// From points in time that the engine states: when it was admitted and when its first token existed. Where it states
/// how long it decoded, what is left at the end is the last token's way out.
Lengths FromPoints(const RequestRecord& stated, Request& request) {
  Lengths lengths{};
  const Nanos waited = stated.admitted - request.arrival;
  Nanos front = stated.dispatched != kNoTime ? stated.dispatched - request.arrival : 0;
  if (stated.queue_time >= 0) front = waited - stated.queue_time;
  Of(lengths, PhaseKind::kFrontEnd) = std::clamp<Nanos>(front, 0, Known(waited));
  Of(lengths, PhaseKind::kQueue) = Known(waited - Known(front));
  Of(lengths, PhaseKind::kPrefill) = Known(stated.prefilled - stated.admitted);
  const Nanos after = Known(request.arrival + request.e2e - stated.prefilled);
  // A request that was thrown back decodes several times; a stated time is that of one of them.
  const bool whole = stated.decode_time >= 0 && stated.preemptions <= 0;
  Of(lengths, PhaseKind::kDecode) = whole ? std::min(after, stated.decode_time) : after;
  Of(lengths, PhaseKind::kOutput) = after - Of(lengths, PhaseKind::kDecode);
  for (const PhaseKind kind : {PhaseKind::kQueue, PhaseKind::kPrefill, PhaseKind::kDecode}) request.Tell(kind);
  if (stated.dispatched != kNoTime || stated.queue_time >= 0) request.Tell(PhaseKind::kFrontEnd);
  if (whole) request.Tell(PhaseKind::kOutput);
  return lengths;
}

/// From durations that the engine states. Where the front end's times tell when the first token left, what is left of
/// the time before it is the front end's; the way of the first token out is in it until a step tells more.
Lengths FromDurations(const RequestRecord& stated, Request& request) {
  Lengths lengths{};
  const Nanos rest = request.e2e - Known(stated.queue_time) - Known(stated.prefill_time) - Known(stated.decode_time);
  Of(lengths, PhaseKind::kQueue) = Known(stated.queue_time);
  Of(lengths, PhaseKind::kPrefill) = Known(stated.prefill_time);
  Of(lengths, PhaseKind::kDecode) = Known(stated.decode_time);
  if (stated.queue_time >= 0) request.Tell(PhaseKind::kQueue);
  if (stated.prefill_time >= 0) request.Tell(PhaseKind::kPrefill);
  if (stated.decode_time >= 0 || request.ttft >= 0) request.Tell(PhaseKind::kDecode);
  if (request.ttft >= 0 && stated.prefill_time >= 0) {
    request.Tell(PhaseKind::kFrontEnd);
    if (stated.decode_time >= 0) request.Tell(PhaseKind::kOutput);
  }
  if (request.ttft >= 0 && stated.prefill_time >= 0) {
    const Nanos before = Known(request.ttft - Known(stated.queue_time) - stated.prefill_time);
    Of(lengths, PhaseKind::kFrontEnd) = std::clamp<Nanos>(before, 0, Known(rest));
    if (stated.decode_time >= 0) Of(lengths, PhaseKind::kOutput) = Known(rest) - Of(lengths, PhaseKind::kFrontEnd);
    if (stated.decode_time < 0) Of(lengths, PhaseKind::kDecode) = Known(request.e2e - request.ttft);
  } else if (request.ttft >= 0 && stated.decode_time < 0) {
    Of(lengths, PhaseKind::kDecode) = Known(request.e2e - request.ttft);
  }
  if (!request.tells(PhaseKind::kFrontEnd) && request.handed_on >= 0) {
    Of(lengths, PhaseKind::kFrontEnd) = std::clamp<Nanos>(request.handed_on, 0, Known(rest));
    request.Tell(PhaseKind::kFrontEnd);
  }
  return lengths;
}

}  // namespace

void Merge(const RequestRecord& from, RequestRecord& into) {
  TakeText(from.id, into.id);
  TakeText(from.trace_id, into.trace_id);
  TakeText(from.process, into.process);
  TakeText(from.engine, into.engine);
  TakeText(from.finish_reason, into.finish_reason);
  TakeText(from.error, into.error);
  into.failed |= from.failed;
  TakeTime(from.arrival, into.arrival);
  TakeTime(from.dispatched, into.dispatched);
  TakeTime(from.admitted, into.admitted);
  TakeTime(from.prefilled, into.prefilled);
  TakeTime(from.first_token, into.first_token);
  TakeTime(from.finished, into.finished);
  TakeCount(from.queue_time, into.queue_time);
  TakeCount(from.prefill_time, into.prefill_time);
  TakeCount(from.decode_time, into.decode_time);
  TakeCount(from.ttft, into.ttft);
  TakeCount(from.e2e, into.e2e);
  TakeCount(from.prompt_tokens, into.prompt_tokens);
  TakeCount(from.cached_tokens, into.cached_tokens);
  TakeCount(from.output_tokens, into.output_tokens);
  TakeCount(from.preemptions, into.preemptions);
}

void SetPhases(const RequestRecord& stated, Request& request) {
  request.trace_id = stated.trace_id;
  request.engine = stated.engine;
  request.process = stated.process;
  request.failed = stated.failed;
  request.error = stated.error;
  request.finish_reason = stated.finish_reason;
  request.prompt_tokens = stated.prompt_tokens;
  request.cached_tokens = stated.cached_tokens;
  request.output_tokens = stated.output_tokens;
  request.preemptions = stated.preemptions;
  request.arrival = stated.arrival;
  request.finished = stated.finished;
  request.e2e = stated.e2e;
  request.ttft = stated.ttft;
  if (request.e2e < 0 && request.arrival != kNoTime && request.finished != kNoTime &&
      request.finished >= request.arrival) {
    request.e2e = request.finished - request.arrival;
  }
  if (request.e2e >= 0 && request.arrival == kNoTime && request.finished != kNoTime)
    request.arrival = request.finished - request.e2e;
  if (request.e2e >= 0 && request.arrival != kNoTime) request.finished = request.arrival + request.e2e;
  if (request.ttft < 0 && stated.first_token != kNoTime && request.arrival != kNoTime &&
      stated.first_token >= request.arrival) {
    request.ttft = stated.first_token - request.arrival;
  }
  if (stated.dispatched != kNoTime && request.arrival != kNoTime && stated.dispatched >= request.arrival) {
    request.handed_on = stated.dispatched - request.arrival;
  }
  if (request.ttft >= 0 && request.arrival != kNoTime && stated.prefilled != kNoTime) {
    request.first_out = Known(request.arrival + request.ttft - stated.prefilled);
  }
  for (Nanos* derived : {&request.e2e, &request.ttft, &request.handed_on, &request.first_out}) {
    if (*derived > kLongest) *derived = -1;
  }
  if (request.e2e < 0) return;
  const bool points = request.arrival != kNoTime && stated.admitted != kNoTime && stated.prefilled != kNoTime &&
                      stated.admitted >= request.arrival && stated.prefilled >= stated.admitted;
  if (points) {
    Write(FromPoints(stated, request), request);
  } else {
    Write(FromDurations(stated, request), request);
    request.at_error = request.phase(PhaseKind::kFrontEnd);
  }
}

void PinPhases(Nanos first_token, Nanos last_token, const RequestRecord& stated, Request& request) {
  Lengths lengths{};
  for (const PhaseKind kind : kInOrder) Of(lengths, kind) = request.phase(kind);
  const Nanos model = first_token - request.arrival;
  if (stated.prefilled != kNoTime && stated.admitted != kNoTime) {
    // The engine's own points stand; only the way out becomes known, by the step of the last token better than by a
    // stated duration, which need not begin where the prefill ended.
    if (last_token == kNoTime || last_token < stated.prefilled) return;
    const Nanos both = Of(lengths, PhaseKind::kDecode) + Of(lengths, PhaseKind::kOutput);
    Of(lengths, PhaseKind::kDecode) = std::min(both, last_token - stated.prefilled);
    Of(lengths, PhaseKind::kOutput) = both - Of(lengths, PhaseKind::kDecode);
    request.Tell(PhaseKind::kOutput);
  } else {
    const Nanos both = Of(lengths, PhaseKind::kFrontEnd) + Of(lengths, PhaseKind::kOutput);
    const Nanos front = model - Of(lengths, PhaseKind::kQueue) - Of(lengths, PhaseKind::kPrefill);
    Of(lengths, PhaseKind::kFrontEnd) = std::clamp<Nanos>(front, 0, both);
    Of(lengths, PhaseKind::kOutput) = both - Of(lengths, PhaseKind::kFrontEnd);
    request.Tell(PhaseKind::kFrontEnd);
    if (last_token != kNoTime) request.Tell(PhaseKind::kOutput);
    if (request.ttft >= 0) request.first_out = Known(request.ttft - model);
    request.at_error = request.ttft < 0 ? 0 : std::clamp<Nanos>(request.ttft - model, 0, both);
  }
  Write(lengths, request);
}

}  // namespace teller::align
