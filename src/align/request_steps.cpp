#include "align/request_steps.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>

#include "align/request_phases.hpp"

namespace teller::align {

namespace {

using trace::kNoTime;
using trace::Nanos;
using trace::PhaseKind;
using trace::Request;
using trace::RequestRecord;
using trace::RequestStep;
using trace::Step;
using trace::StepCover;

constexpr Nanos kMs = 1'000'000;
constexpr Nanos kTouch = 4 * kMs;      // by which an engine's stamp and a step's edge may miss each other
constexpr Nanos kOverhead = 30 * kMs;  // scheduling before a step and sampling after it, on a slow CPU
constexpr Nanos kClear = 3 * kMs;      // by which a choice must beat the next one
constexpr size_t kMostChunks = 256;    // steps that one prompt may take
constexpr size_t kMostTries = 1024;    // prefill steps that one request may have had: more leave no choice
constexpr size_t kMostParts = 20'000;  // steps kept of one request that lies partly outside
constexpr size_t kMostBlockers = 8;    // kept for one request

int64_t PrefillTokens(const Step& step) {
  if (step.new_tokens < 0) return -1;
  return std::max<int64_t>(0, step.new_tokens - std::max<int64_t>(0, step.decode_requests));
}

/// True when most steps of `other` begin inside a step of `lane`: ranks of one engine.
bool InLockstep(const std::vector<Step>& steps, const std::vector<uint32_t>& lane, const std::vector<uint32_t>& other) {
  size_t inside = 0;
  for (const uint32_t s : other) {
    const Nanos middle = steps[s].begin + steps[s].duration() / 2;
    auto it =
        std::upper_bound(lane.begin(), lane.end(), middle, [&](Nanos t, uint32_t l) { return t < steps[l].begin; });
    if (it == lane.begin()) continue;
    const Step& at = steps[*--it];
    inside += middle < at.end && at.prefill_requests == steps[s].prefill_requests &&
              at.decode_requests == steps[s].decode_requests && at.new_tokens == steps[s].new_tokens;
  }
  return inside * 2 > other.size();
}

/// What the sources leave open about when a request was in the engine.
struct Bounds {
  Nanos admit_from = 0;
  Nanos admit_to = 0;
  Nanos prefill = -1;  ///< from admission to the first token
  Nanos decode = -1;   ///< from the first to the last token in the engine
  Nanos finish_by = 0;
};

std::optional<Bounds> BoundsOf(const RequestRecord& stated, const Request& request) {
  if (request.e2e < 0 || request.arrival == kNoTime) return std::nullopt;
  Bounds bounds;
  bounds.finish_by = request.arrival + request.e2e;
  bounds.decode = stated.decode_time;
  if (stated.admitted != kNoTime) {
    bounds.admit_from = bounds.admit_to = stated.admitted;
    if (stated.prefilled != kNoTime) bounds.prefill = std::max<Nanos>(0, stated.prefilled - stated.admitted);
    return bounds;
  }
  if (stated.prefill_time < 0) return std::nullopt;
  bounds.prefill = stated.prefill_time;
  bounds.admit_from = request.arrival + std::max<Nanos>(0, stated.queue_time);
  const Nanos until = request.ttft >= 0 ? request.ttft : request.e2e - std::max<Nanos>(0, stated.decode_time);
  bounds.admit_to = std::max(bounds.admit_from, request.arrival + until - stated.prefill_time);
  return bounds;
}

/// One way in which a lane may have served a request: positions in Lane::steps.
struct Choice {
  const Lane* lane = nullptr;
  uint32_t first = 0;
  uint32_t last = 0;  ///< of the prefill
  std::vector<uint32_t> decodes;
  bool counted = false;   ///< its prefill step serves it alone and computes just its prompt
  bool complete = false;  ///< all decoding steps are recorded
  Nanos misfit = std::numeric_limits<Nanos>::max();
};

class Finder {
 public:
  Finder(const std::vector<Step>& steps, const RequestRecord& stated, const Request& request, const Bounds& bounds)
      : steps_(steps), stated_(stated), request_(request), bounds_(bounds) {}

  void Search(const Lane& lane) {
    const Nanos from = bounds_.admit_from - kTouch;
    const Nanos to = bounds_.admit_to + Overhead();
    const auto begin_of = [&](uint32_t position) { return At(lane, position).begin; };
    auto it = std::lower_bound(lane.prefills.begin(), lane.prefills.end(), from,
                               [&](uint32_t position, Nanos t) { return begin_of(position) < t; });
    for (; it != lane.prefills.end() && begin_of(*it) <= to; ++it) {
      if (++tried_ > kMostTries) return;
      Try(lane, it);
    }
  }

  /// The best choice, when it is clear.
  std::optional<Choice> Best() const {
    if (tried_ > kMostTries || best_.lane == nullptr || next_ - best_.misfit < kClear) return std::nullopt;
    return best_;
  }

 private:
  const Step& At(const Lane& lane, uint32_t position) const { return steps_[lane.steps[position]]; }

  Nanos Overhead() const { return std::max(kOverhead, bounds_.prefill / 2); }

  /// Prompt tokens that had to be computed; -1 when it is not known how many a cache had.
  int64_t Needed() const {
    if (request_.prompt_tokens < 0 || request_.cached_tokens < 0) return -1;
    return request_.prompt_tokens - request_.cached_tokens;
  }

  /// The last step of a prefill that begins at `first`; none when times or tokens forbid it.
  std::optional<uint32_t> LastOfPrefill(const Lane& lane, std::vector<uint32_t>::const_iterator first,
                                        Nanos& delta) const {
    const Nanos begin = At(lane, *first).begin;
    int64_t tokens = 0;
    size_t chunks = 0;
    for (auto it = first; it != lane.prefills.end() && chunks < kMostChunks; ++it, ++chunks) {
      const Step& step = At(lane, *it);
      const int64_t computed = PrefillTokens(step);
      const bool alone = step.prefill_requests == 1 && computed >= 0;
      tokens += std::max<int64_t>(0, computed);
      if (alone && request_.prompt_tokens >= 0 && computed > request_.prompt_tokens) return std::nullopt;
      delta = bounds_.prefill < 0 ? 0 : bounds_.prefill - (step.end - begin);
      if (delta < -kTouch) return std::nullopt;
      const bool all = Needed() < 0 ? delta <= Overhead() : tokens >= Needed();
      if (all) return delta <= Overhead() ? std::optional(*it) : std::nullopt;
    }
    return std::nullopt;
  }

  void Try(const Lane& lane, std::vector<uint32_t>::const_iterator first) {
    Nanos delta = 0;
    const auto last = LastOfPrefill(lane, first, delta);
    if (!last.has_value()) return;
    Choice choice;
    choice.lane = &lane;
    choice.first = *first;
    choice.last = *last;
    const Nanos first_token = At(lane, *last).end;
    if (first_token > bounds_.finish_by + kTouch) return;
    choice.misfit = std::abs(delta);
    if (stated_.admitted != kNoTime) choice.misfit += std::abs(At(lane, *first).begin - stated_.admitted);
    if (!AddDecodes(lane, first_token, choice)) return;
    const Step& prefill = At(lane, *first);
    choice.counted = *first == *last && prefill.prefill_requests == 1 && request_.prompt_tokens > 0 &&
                     PrefillTokens(prefill) == request_.prompt_tokens;
    if (choice.counted != best_.counted) {
      // Tokens that agree to the last one say more than times.
      if (!choice.counted) return;
      next_ = std::numeric_limits<Nanos>::max();
      best_ = std::move(choice);
    } else if (choice.misfit < best_.misfit) {
      next_ = best_.misfit;
      best_ = std::move(choice);
    } else {
      next_ = std::min(next_, choice.misfit);
    }
  }

  bool AddDecodes(const Lane& lane, Nanos first_token, Choice& choice) const {
    const int64_t wanted = request_.output_tokens - 1;
    auto it = std::upper_bound(lane.decodes.begin(), lane.decodes.end(), choice.last);
    const auto there = lane.decodes.end() - it;
    const auto count = std::clamp<int64_t>(wanted, 0, there);
    choice.complete = request_.output_tokens > 0 && count == wanted;
    choice.decodes.assign(it, it + static_cast<std::ptrdiff_t>(count));
    if (!choice.complete) return true;
    const Nanos last_token = count == 0 ? first_token : At(lane, choice.decodes.back()).end;
    if (bounds_.decode >= 0) {
      const Nanos off = std::abs(last_token - first_token - bounds_.decode);
      choice.misfit += off;
      return off <= std::max(kTouch + kMs, bounds_.decode / 25);
    }
    return last_token <= bounds_.finish_by + kTouch;
  }

  const std::vector<Step>& steps_;
  const RequestRecord& stated_;
  const Request& request_;
  const Bounds& bounds_;
  Choice best_;
  size_t tried_ = 0;
  Nanos next_ = std::numeric_limits<Nanos>::max();
};

/// First and last nanosecond of the model phases; empty when they have no place.
std::optional<std::pair<Nanos, Nanos>> ModelTime(const Request& request) {
  Nanos begin = kNoTime;
  Nanos end = kNoTime;
  for (const auto& phase : request.phases) {
    if ((phase.kind != PhaseKind::kPrefill && phase.kind != PhaseKind::kDecode) || phase.begin == kNoTime) continue;
    if (begin == kNoTime) begin = phase.begin;
    end = phase.begin + phase.duration;
  }
  if (begin == kNoTime) return std::nullopt;
  return std::pair(begin, end);
}

/// Position of the first step of the lane that ends after `t`.
size_t FirstEndingAfter(const std::vector<Step>& steps, const Lane& lane, Nanos t) {
  const auto it = std::lower_bound(lane.steps.begin(), lane.steps.end(), t,
                                   [&](uint32_t s, Nanos at) { return steps[s].end <= at; });
  return static_cast<size_t>(it - lane.steps.begin());
}

/// True when a step of the lane overlaps the request's model phases, or its whole life where these have no place.
bool HasStepIn(const std::vector<Step>& steps, const Lane& lane, const Request& request) {
  const auto [begin, end] = ModelTime(request).value_or(std::pair(request.arrival, request.finished));
  if (begin == kNoTime || end == kNoTime) return false;
  const size_t p = FirstEndingAfter(steps, lane, begin);
  return p < lane.steps.size() && steps[lane.steps[p]].begin < end;
}

/// Decoding steps whose middle lies in the decode phase: what can be said of a request that is not recorded whole.
void TakeOverlapping(const std::vector<Step>& steps, const Lane& lane, Request& request) {
  for (const auto& phase : request.phases) {
    if (phase.kind != PhaseKind::kDecode || phase.begin == kNoTime) continue;
    const Nanos end = phase.begin + phase.duration;
    for (size_t p = FirstEndingAfter(steps, lane, phase.begin); p < lane.steps.size(); ++p) {
      const Step& step = steps[lane.steps[p]];
      if (step.begin >= end) break;
      const Nanos middle = step.begin + step.duration() / 2;
      if (step.decode_requests <= 0 || middle < phase.begin || middle >= end) continue;
      if (request.output_tokens > 0 && static_cast<int64_t>(request.steps.size()) >= request.output_tokens - 1) break;
      if (request.steps.size() >= kMostParts) break;
      request.steps.push_back({trace::StepRow(lane.steps[p]), false, 1, 0, 0});
    }
  }
  if (request.steps.empty()) return;
  request.cover = StepCover::kPart;
  request.served_by = lane.process;
}

void TakeChoice(const std::vector<Step>& steps, const Choice& choice, Request& request) {
  const Lane& lane = *choice.lane;
  int64_t mine = request.prompt_tokens - std::max<int64_t>(0, request.cached_tokens);  // not yet computed
  request.served_by = lane.process;
  request.cover = choice.complete && request.preemptions <= 0 ? StepCover::kExact : StepCover::kPart;
  for (auto it = std::lower_bound(lane.prefills.begin(), lane.prefills.end(), choice.first);
       it != lane.prefills.end() && *it <= choice.last; ++it) {
    const Step& step = steps[lane.steps[*it]];
    int64_t tokens = PrefillTokens(step);
    if (step.prefill_requests != 1 && request.prompt_tokens >= 0) {
      tokens = tokens < 0 ? mine : std::min(tokens, mine);
    }
    mine = std::max<int64_t>(0, mine - std::max<int64_t>(0, tokens));
    request.steps.push_back({trace::StepRow(lane.steps[*it]), true, std::max<int64_t>(0, tokens), 0, 0});
  }
  for (const uint32_t position : choice.decodes) {
    request.steps.push_back({trace::StepRow(lane.steps[position]), false, 1, 0, 0});
  }
}

Nanos Share(Nanos inside, int64_t tokens, int64_t all) {
  if (all <= 0 || tokens <= 0) return 0;
  return static_cast<Nanos>(static_cast<__int128>(inside) * std::min(tokens, all) / all);
}

/// Tokens that a step computed; one a request when its mark does not tell.
int64_t TokensOf(const Step& step) {
  if (step.new_tokens > 0) return step.new_tokens;
  return std::max<int64_t>(0, step.prefill_requests) + std::max<int64_t>(0, step.decode_requests);
}

/// Who prefills in which step, as far as known.
using Prefills = std::map<uint32_t, std::vector<std::pair<uint32_t, int64_t>>>;  // step -> (request, tokens)

class Sharer {
 public:
  Sharer(const std::vector<Step>& steps, const std::vector<Lane>& lanes, std::vector<Request>& requests)
      : steps_(steps), requests_(requests) {
    for (const Lane& lane : lanes) lane_of_.emplace(lane.process.value(), &lane);
  }

  void Run() {
    DoubtOverfull();
    for (uint32_t r = 0; r < requests_.size(); ++r) {
      for (const RequestStep& step : requests_[r].steps) {
        if (step.prefill) prefills_[step.step.value()].emplace_back(r, step.tokens);
      }
    }
    for (uint32_t r = 0; r < requests_.size(); ++r) {
      if (!requests_[r].steps.empty()) Divide(r);
    }
  }

 private:
  /// A step that serves fewer requests than claim it proves that some claim is wrong.
  void DoubtOverfull() {
    std::map<uint32_t, std::pair<int64_t, int64_t>> claims;  // step -> prefills, decodes
    for (const Request& request : requests_) {
      if (request.cover != StepCover::kExact) continue;
      for (const RequestStep& step : request.steps)
        ++(step.prefill ? claims[step.step.value()].first : claims[step.step.value()].second);
    }
    for (Request& request : requests_) {
      if (request.cover != StepCover::kExact) continue;
      const bool overfull = std::any_of(request.steps.begin(), request.steps.end(), [&](const RequestStep& step) {
        const auto& [prefill, decode] = claims[step.step.value()];
        const Step& real = steps_[step.step.value()];
        return step.prefill ? prefill > real.prefill_requests : decode > real.decode_requests;
      });
      if (overfull) request.cover = StepCover::kPart;
    }
  }

  /// Walks all steps of the engine in the request's model time.
  void Divide(uint32_t row) {
    Request& request = requests_[row];
    const auto time = ModelTime(request);
    const auto found = lane_of_.find(request.served_by.value());
    if (!time.has_value() || found == lane_of_.end()) return;
    const Lane& lane = *found->second;
    std::map<uint32_t, Nanos> blockers;  // request row -> time; kNobody: not known
    auto mine = request.steps.begin();
    Nanos at = time->first;
    for (size_t p = FirstEndingAfter(steps_, lane, at); p < lane.steps.size(); ++p) {
      const uint32_t s = lane.steps[p];
      const Step& step = steps_[s];
      if (step.begin >= time->second) break;
      const Nanos begin = std::max(at, step.begin);
      const Nanos end = std::min(time->second, step.end);
      const Nanos inside = std::max<Nanos>(0, end - begin);
      at = std::max(at, end);
      while (mine != request.steps.end() && steps_[mine->step.value()].begin < step.begin) ++mine;
      if (mine != request.steps.end() && mine->step.value() == s) {
        mine->inside = inside;
        mine->share = Share(inside, mine->tokens, TokensOf(step));
        request.own += mine->share;
        request.others += inside - mine->share;
      } else {
        request.blocked += inside;
      }
      if (step.prefill_requests > 0) Blame(row, s, inside, blockers);
    }
    const Nanos from = std::clamp(steps_[lane.steps.front()].begin, time->first, time->second);
    const Nanos to = std::clamp(steps_[lane.steps.back()].end, from, time->second);
    request.unrecorded = (from - time->first) + (time->second - to);
    // Steps that lie inside others can reach beyond the last one that began.
    request.between = std::max<Nanos>(0, to - from - request.own - request.others - request.blocked);
    request.unrecorded = time->second - time->first - request.own - request.others - request.blocked - request.between;
    Keep(blockers, request);
  }

  void Blame(uint32_t row, uint32_t s, Nanos inside, std::map<uint32_t, Nanos>& blockers) const {
    const Step& step = steps_[s];
    const int64_t all = TokensOf(step);
    int64_t left = std::max<int64_t>(0, PrefillTokens(step));
    const auto known = prefills_.find(s);
    if (known != prefills_.end()) {
      for (const auto& [other, tokens] : known->second) {
        left -= tokens;
        if (other != row) blockers[other] += Share(inside, tokens, all);
      }
    }
    if (left > 0) blockers[kNobody] += Share(inside, left, all);
  }

  void Keep(const std::map<uint32_t, Nanos>& blockers, Request& request) const {
    for (const auto& [other, duration] : blockers) {
      if (duration <= 0) continue;
      trace::RequestBlock block;
      block.duration = duration;
      if (other != kNobody) {
        block.by = trace::RequestRow(other);
        block.prompt_tokens = requests_[other].prompt_tokens;
      }
      request.blocked_by.push_back(block);
    }
    std::stable_sort(request.blocked_by.begin(), request.blocked_by.end(),
                     [](const auto& a, const auto& b) { return a.duration > b.duration; });
    if (request.blocked_by.size() > kMostBlockers) request.blocked_by.resize(kMostBlockers);
  }

  static constexpr uint32_t kNobody = 0xFFFFFFFFu;

  const std::vector<Step>& steps_;
  std::vector<Request>& requests_;
  std::map<uint32_t, const Lane*> lane_of_;
  Prefills prefills_;
};

}  // namespace

std::vector<Lane> EngineLanes(const std::vector<Step>& steps) {
  std::map<std::pair<int, uint32_t>, std::vector<uint32_t>> processes;  // (rank, process) -> steps
  for (uint32_t s = 0; s < steps.size(); ++s) {
    const Step& step = steps[s];
    if (step.prefill_requests < 0 || step.decode_requests < 0) continue;
    processes[{step.rank.value_or(0), step.process.value()}].push_back(s);
  }
  std::vector<Lane> lanes;
  for (auto& entry : processes) {
    std::vector<uint32_t>& own = entry.second;
    std::stable_sort(own.begin(), own.end(), [&](uint32_t a, uint32_t b) { return steps[a].begin < steps[b].begin; });
    const bool follows =
        std::any_of(lanes.begin(), lanes.end(), [&](const Lane& lane) { return InLockstep(steps, lane.steps, own); });
    if (follows) continue;
    Lane lane;
    lane.process = trace::ProcessRow(entry.first.second);
    lane.steps = std::move(own);
    for (uint32_t p = 0; p < lane.steps.size(); ++p) {
      if (steps[lane.steps[p]].prefill_requests > 0) lane.prefills.push_back(p);
      if (steps[lane.steps[p]].decode_requests > 0) lane.decodes.push_back(p);
    }
    lanes.push_back(std::move(lane));
  }
  return lanes;
}

void FindSteps(const std::vector<Step>& steps, const std::vector<Lane>& lanes, const RequestRecord& stated,
               Request& request) {
  const auto bounds = BoundsOf(stated, request);
  if (steps.empty()) return;
  request.no_steps = lanes.empty() ? trace::NoSteps::kUnmarked : trace::NoSteps::kUntimed;
  if (!bounds.has_value() || lanes.empty()) return;
  Finder finder(steps, stated, request, *bounds);
  for (const Lane& lane : lanes) finder.Search(lane);
  if (const auto choice = finder.Best(); choice.has_value()) {
    const Nanos first_token = steps[choice->lane->steps[choice->last]].end;
    Nanos last_token = kNoTime;
    if (choice->complete)
      last_token = choice->decodes.empty() ? first_token : steps[choice->lane->steps[choice->decodes.back()]].end;
    PinPhases(first_token, last_token, stated, request);
    TakeChoice(steps, *choice, request);
  } else if (lanes.size() == 1) {
    TakeOverlapping(steps, lanes.front(), request);
  }
  if (request.cover != StepCover::kNone) return;
  const bool meanwhile =
      std::any_of(lanes.begin(), lanes.end(), [&](const Lane& lane) { return HasStepIn(steps, lane, request); });
  request.no_steps = meanwhile ? trace::NoSteps::kUncertain : trace::NoSteps::kOutside;
}

void ShareSteps(const std::vector<Step>& steps, const std::vector<Lane>& lanes, std::vector<Request>& requests) {
  Sharer(steps, lanes, requests).Run();
}

}  // namespace teller::align
