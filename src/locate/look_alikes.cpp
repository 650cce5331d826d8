#include "locate/look_alikes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "locate/naming.hpp"
#include "ml/robust.hpp"

namespace teller::locate {

namespace {

/// Interpreters with large heaps stand still for this long to collect garbage, now and then, in a service that is well.
constexpr Nanos kOnePause = 200 * base::kMilli;
constexpr double kLongPrompt = 4;      // times the usual prompt
constexpr uint32_t kSoonAfter = 12;    // steps
constexpr double kContextShare = 0.5;  // of a step, at most, is what reading a longer context adds

/// Peers that went on as usual would show that it was this rank and how long it takes all of them; then it counts.
bool IsOneShortPause(const Scene& scene, const Hypothesis& h) {
  const bool alone = std::all_of(scene.trees.steps.begin(), scene.trees.steps.end(),
                                 [&](const trace::Step& step) { return step.process == h.process; });
  return alone && h.trouble == Trouble::kPause && h.steps.size() == 1 && h.collectives.empty() && h.worst < kOnePause;
}

/// True when the pause lies inside a call of an operator whose sizes the process had not met before: libraries choose
/// and build what they run by the sizes, once.
bool IsFirstOfItsSizes(const trace::Store& store, const Hypothesis& h) {
  if (h.trouble != Trouble::kPause || h.steps.size() != 1 || h.in_gap || h.span == kNoSpan ||
      h.slot.kind != SlotKey::Kind::kOp)
    return false;
  const trace::OpArgs* args = store.op_args.Find(h.span);
  if (args == nullptr || !args->input_dims.valid()) return false;
  for (const trace::Track& track : store.tracks) {
    if (track.process != h.process) continue;
    for (uint32_t span = track.first_span; span < track.first_span + track.span_count; ++span) {
      if (store.spans.name[span] != store.spans.name[h.span] || store.spans.begin[span] >= store.spans.begin[h.span])
        continue;
      const trace::OpArgs* other = store.op_args.Find(span);
      if (other != nullptr && other->input_dims == args->input_dims) return false;
    }
  }
  return true;
}

/// True when an operator of decoding steps takes a little longer right after a prompt much longer than usual was
/// computed: its sequence's context is read in each of them.
bool ReadsALongContext(const Scene& scene, const Hypothesis& h) {
  if (h.trouble != Trouble::kSlowOperator || h.steps.empty()) return false;
  const auto& steps = scene.trees.steps;
  std::vector<double> prompts;
  for (const trace::Step& step : steps) {
    if (step.process == h.process && step.prefill_requests > 0 && step.new_tokens > 0)
      prompts.push_back(static_cast<double>(step.new_tokens) / static_cast<double>(step.prefill_requests));
  }
  if (prompts.empty()) return false;
  const double usual = ml::Quantile(prompts, 0.5);
  for (const uint32_t s : h.steps) {
    if (steps[s].kind != trace::StepKind::kDecode) return false;
  }
  double lost = 0;
  double whole = 0;
  for (size_t i = 0; i < h.steps.size(); ++i) {
    lost += static_cast<double>(h.lost_in[i]);
    whole += static_cast<double>(steps[h.steps[i]].duration()) - static_cast<double>(h.lost_in[i]);
  }
  if (lost > kContextShare * whole) return false;
  const uint32_t first = h.steps.front();
  for (uint32_t back = 1; back <= kSoonAfter && back <= first; ++back) {
    const trace::Step& step = steps[first - back];
    if (step.process != h.process) break;
    if (step.prefill_requests > 0 &&
        static_cast<double>(step.new_tokens) >= kLongPrompt * usual * static_cast<double>(step.prefill_requests))
      return true;
  }
  return false;
}

}  // namespace

void DropLookAlikes(const Scene& scene, std::vector<Hypothesis>& claims, std::vector<trace::Note>& notes) {
  std::erase_if(claims, [&](const Hypothesis& h) {
    const std::string who = ProcessName(scene.store, h.process);
    if (IsOneShortPause(scene, h)) {
      notes.push_back({fmt::format("{} stood still once, for {}: a collection of its interpreter or the machine's "
                                   "other work does that to a healthy service now and then",
                                   who, Ms(h.worst)),
                       h.onset, h.end});
      return true;
    }
    if (IsFirstOfItsSizes(scene.store, h)) {
      notes.push_back({fmt::format("one call of {} in {} took {}, the first with its sizes: libraries prepare "
                                   "what they run for new sizes once",
                                   scene.store.name(h.span), who, Ms(h.worst)),
                       h.onset, h.end});
      return true;
    }
    if (ReadsALongContext(scene, h)) {
      notes.push_back({"operators that read the context take longer while the sequence of a long prompt runs", h.onset,
                       h.end});
      return true;
    }
    return false;
  });
}

}  // namespace teller::locate
