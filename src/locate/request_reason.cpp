#include "locate/request_reason.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "locate/naming.hpp"

namespace teller::locate {

namespace {

using trace::Nanos;
using trace::PhaseKind;
using trace::Request;

constexpr double kMost = 4e18;       // ns
constexpr double kStandsOut = 0.25;  // of the request's time: what a cause must cost to be named

template <class T>
T Median(std::vector<T>& values) {
  if (values.empty()) return {};
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// By how much one phase exceeds what is usual.
struct Excess {
  PhaseKind kind = PhaseKind::kUnexplained;
  Nanos by = 0;
};

Excess Largest(const Request& request, const UsualRequest& usual) {
  // Without a count of tokens no decoding is too long.
  const double paced =
      static_cast<double>(usual.tpot) * static_cast<double>(std::max<int64_t>(0, request.output_tokens - 1));
  const bool counted = request.output_tokens > 1 && usual.tpot > 0;
  const Nanos decode = counted ? static_cast<Nanos>(std::min(paced, kMost)) : request.phase(PhaseKind::kDecode);
  const double tokens = static_cast<double>(std::max<int64_t>(0, request.prompt_tokens));
  const Nanos prefill = std::max(usual.prefill, static_cast<Nanos>(std::min(usual.prefill_per_token * tokens, kMost)));
  const std::vector<Excess> all = {
      {PhaseKind::kFrontEnd, request.phase(PhaseKind::kFrontEnd) - usual.front},
      {PhaseKind::kQueue, request.phase(PhaseKind::kQueue) - usual.queue},
      {PhaseKind::kPrefill, request.phase(PhaseKind::kPrefill) - prefill},
      {PhaseKind::kDecode, request.phase(PhaseKind::kDecode) - decode},
      {PhaseKind::kOutput, request.phase(PhaseKind::kOutput) - usual.output},
      {PhaseKind::kUnexplained, request.phase(PhaseKind::kUnexplained)},
  };
  return *std::max_element(all.begin(), all.end(), [](const Excess& a, const Excess& b) { return a.by < b.by; });
}

std::string Blocker(const trace::Trees& trees, const Request& request) {
  if (request.blocked_by.empty()) return {};
  const trace::RequestBlock& worst = request.blocked_by.front();
  std::string who = worst.by.valid() ? "request " + trees.requests[worst.by.value()].id : "a request that is not known";
  if (worst.prompt_tokens >= 0) who += fmt::format(" ({} prompt tokens)", worst.prompt_tokens);
  return fmt::format("{} of it while the prompt of {} was computed", Ms(worst.duration), who);
}

/// What filled the model phases, the larger parts first.
std::string Filling(const trace::Trees& trees, const Request& request) {
  if (request.cover == trace::StepCover::kNone)
    return std::string(Text(request.no_steps)) + ", so what filled it is not known";
  std::vector<std::pair<Nanos, std::string>> parts = {
      {request.own, fmt::format("its own share of the steps is {}", Ms(request.own))},
      {request.others, fmt::format("other requests in the same steps took {}", Ms(request.others))},
      {request.blocked, fmt::format("{} passed in steps that did not serve it", Ms(request.blocked))},
      {request.between, fmt::format("{} passed between steps", Ms(request.between))},
      {request.unrecorded, fmt::format("{} passed while no steps were recorded", Ms(request.unrecorded))},
  };
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text = parts[0].second;
  if (parts[1].first > 0) text += ", " + parts[1].second;
  const Nanos model = request.phase(PhaseKind::kPrefill) + request.phase(PhaseKind::kDecode);
  const std::string blocker = Blocker(trees, request);
  if (!blocker.empty() && static_cast<double>(request.blocked_by.front().duration) > 0.1 * static_cast<double>(model))
    text += "; " + blocker;
  return text;
}

std::string PhaseText(const trace::Trees& trees, const Request& request, const Excess& excess,
                      const UsualRequest& usual) {
  const std::string took = Ms(request.phase(excess.kind));
  switch (excess.kind) {
    case PhaseKind::kFrontEnd:
      return fmt::format(
          "{} passed between its arrival and the scheduler ({} is usual): HTTP, tokenizer, event loop or an engine "
          "that did not take requests.",
          took, Ms(usual.front));
    case PhaseKind::kQueue:
      return fmt::format("It waited {} in the scheduler's queue ({} is usual).", took, Ms(usual.queue));
    case PhaseKind::kPrefill: return fmt::format("Its prefill took {}; {}.", took, Filling(trees, request));
    case PhaseKind::kDecode:
      return fmt::format("Its decoding took {}, {} a token ({} is usual); {}.", took,
                         Ms(request.phase(PhaseKind::kDecode) / std::max<int64_t>(1, request.output_tokens - 1)),
                         Ms(usual.tpot), Filling(trees, request));
    case PhaseKind::kOutput:
      return fmt::format(
          "{} passed between its tokens' making and their way out ({} is usual): detokenizer, event loop or client.",
          took, Ms(usual.output));
    case PhaseKind::kUnexplained: return fmt::format("No source tells what {} of it were.", took);
  }
  return {};
}

}  // namespace

UsualRequest LearnUsual(const trace::Trees& trees) {
  UsualRequest usual;
  std::vector<Nanos> front, queue, output, prefill, tpot;
  std::vector<double> per_token;
  for (const Request& request : trees.requests) {
    if (request.failed || request.phases.empty()) continue;
    ++usual.requests;
    const auto take = [&](PhaseKind kind, std::vector<Nanos>& into) {
      if (request.tells(kind)) into.push_back(request.phase(kind));
    };
    take(PhaseKind::kFrontEnd, front);
    take(PhaseKind::kQueue, queue);
    take(PhaseKind::kOutput, output);
    take(PhaseKind::kPrefill, prefill);
    if (request.tells(PhaseKind::kPrefill) && request.prompt_tokens > 0) {
      per_token.push_back(static_cast<double>(request.phase(PhaseKind::kPrefill)) /
                          static_cast<double>(request.prompt_tokens));
    }
    if (request.tells(PhaseKind::kDecode) && request.output_tokens > 1)
      tpot.push_back(request.phase(PhaseKind::kDecode) / (request.output_tokens - 1));
  }
  usual.front = Median(front);
  usual.queue = Median(queue);
  usual.output = Median(output);
  usual.prefill = Median(prefill);
  usual.prefill_per_token = Median(per_token);
  usual.tpot = Median(tpot);
  return usual;
}

std::string RequestReason(const trace::Trees& trees, const UsualRequest& usual, trace::RequestRow row) {
  const Request& request = trees.requests[row.value()];
  if (request.failed) return "It failed" + (request.error.empty() ? std::string(".") : ": " + request.error);
  if (request.phases.empty()) return "No source states how long it took.";
  const Excess excess = Largest(request, usual);
  if (static_cast<double>(excess.by) < kStandsOut * static_cast<double>(request.e2e)) {
    return fmt::format("Nothing stands out{}{}.",
                       request.prompt_tokens < 0 || request.output_tokens < 0
                           ? std::string()
                           : fmt::format(": {} prompt and {} output tokens at the usual pace", request.prompt_tokens,
                                         request.output_tokens),
                       request.cover == trace::StepCover::kNone ? "" : "; " + Filling(trees, request));
  }
  return PhaseText(trees, request, excess, usual);
}

}  // namespace teller::locate
