#include "locate/look_alikes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "locate/naming.hpp"
#include "ml/robust.hpp"
#include "tree/kernel_name.hpp"

namespace teller::locate {

namespace {

/// Interpreters with large heaps stand still for this long to collect garbage, now and then, in a service that is well.
constexpr Nanos kOnePause = 200 * base::kMilli;
constexpr Nanos kOneCrowdedPause = 1000 * base::kMilli;
constexpr double kLongPrompt = 4;      // times the usual prompt
constexpr uint32_t kSoonAfter = 12;    // steps
constexpr double kContextShare = 0.5;  // of a step, at most, is what reading a longer context adds
constexpr double kRoomShare = 0.1;     // of a step, at most, is what it takes to get memory from the system

/// Peers that went on as usual would show that it was this rank and how long it takes all of them; then it counts.
bool IsOneShortPause(const Scene& scene, const Hypothesis& h) {
  const bool alone = std::all_of(scene.trees.steps.begin(), scene.trees.steps.end(),
                                 [&](const trace::Step& step) { return step.process == h.process; });
  return alone && h.trouble == Trouble::kPause && h.steps.size() == 1 && h.collectives.empty() && h.worst < kOnePause;
}

/// On a full machine a process waits for a processor now and then, and the longer the more the others want. It is told
/// from a stop only where it happens again, or for longer than a scheduler makes anybody wait.
bool IsOnceWithoutProcessor(const Scene& scene, const Hypothesis& h) {
  if (h.trouble != Trouble::kPause || h.steps.size() != 1 || h.worst >= kOneCrowdedPause || scene.witness == nullptr)
    return false;
  const Nanos end = h.worst_begin + h.worst;
  return scene.witness->WasCrowded(h.worst_begin, end) &&
         scene.witness->During(ProcessName(scene.store, h.process), h.worst_begin, end) != CpuWitness::Use::kWorking;
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

struct Prompt {
  uint32_t last = 0;  ///< its last step
  double tokens = 0;  ///< of one request, or what it computes
};

/// Prompts that a process computed. Successive steps with equally many tokens are parts of one that was cut to a
/// budget, and the step behind them is its rest.
std::vector<Prompt> PromptsOf(const Scene& scene, trace::ProcessRow process) {
  std::vector<Prompt> prompts;
  const auto& steps = scene.trees.steps;
  bool cut = false;
  std::vector<double> decoding;
  for (const trace::Step& step : steps) {
    if (step.process == process && step.kind == trace::StepKind::kDecode && step.work >= 0)
      decoding.push_back(step.work);
  }
  const double weights = decoding.empty() ? 0 : ml::Quantile(decoding, 0.5);  // what each step reads anyway
  // Tokens and work cannot be compared with each other.
  const bool told = std::any_of(steps.begin(), steps.end(), [&](const trace::Step& step) {
    return step.process == process && step.prefill_requests > 0 && step.new_tokens > 0;
  });
  for (uint32_t s = 0; s < steps.size(); ++s) {
    const trace::Step& step = steps[s];
    // Where nothing tells how many tokens there are, what the step computes does.
    if (!told && step.process == process && step.kind == trace::StepKind::kPrefill && step.new_tokens < 0 &&
        step.work > 0) {
      prompts.push_back({s, std::max(0.0, step.work - weights)});
      cut = false;
      continue;
    }
    if (step.process != process || step.prefill_requests <= 0 || step.new_tokens <= 0) {
      cut = false;
      continue;
    }
    const bool follows = !prompts.empty() && prompts.back().last + 1 == s && steps[s - 1].process == process;
    const bool as_before = follows && step.new_tokens == steps[s - 1].new_tokens;
    const double tokens = static_cast<double>(step.new_tokens) / static_cast<double>(step.prefill_requests);
    if (as_before || (follows && cut && step.new_tokens < steps[s - 1].new_tokens)) {
      prompts.back().last = s;
      prompts.back().tokens += tokens;
    } else {
      prompts.push_back({s, tokens});
    }
    cut = as_before;
  }
  return prompts;
}

/// True when an operator of decoding steps takes a little longer right after a prompt much longer than usual was
/// computed: its sequence's context is read in each of them.
bool ReadsALongContext(const Scene& scene, const Hypothesis& h) {
  if (h.trouble != Trouble::kSlowOperator || h.steps.empty()) return false;
  const auto& steps = scene.trees.steps;
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
  const std::vector<Prompt> prompts = PromptsOf(scene, h.process);
  return std::any_of(prompts.begin(), prompts.end(), [&](const Prompt& prompt) {
    if (prompt.last >= h.steps.front() || prompt.last + kSoonAfter < h.steps.front()) return false;
    std::vector<double> others;
    for (const Prompt& other : prompts) {
      if (other.last != prompt.last) others.push_back(other.tokens);
    }
    return !others.empty() && prompt.tokens >= kLongPrompt * ml::Quantile(others, 0.5);
  });
}

/// The same where no step tells its kind: attention becomes longer right after a step that computed far more than
/// these and than other such steps, which then was a long prompt. Where prompts are all alike, none of them is long.
bool ReadsWhatALargeStepComputed(const Scene& scene, const Hypothesis& h) {
  if (h.trouble != Trouble::kSlowOperator || h.steps.empty() || h.span == kNoSpan ||
      tree::ClassOfName(scene.store.name(h.span)) != tree::KernelClass::kAttention)
    return false;
  const auto& steps = scene.trees.steps;
  std::vector<double> works;
  double lost = 0;
  double whole = 0;
  for (size_t i = 0; i < h.steps.size(); ++i) {
    const trace::Step& step = steps[h.steps[i]];
    if (step.kind != trace::StepKind::kUnknown || step.work <= 0) return false;
    works.push_back(step.work);
    lost += static_cast<double>(h.lost_in[i]);
    whole += static_cast<double>(step.duration()) - static_cast<double>(h.lost_in[i]);
  }
  if (lost > kContextShare * whole) return false;
  const double large = kLongPrompt * ml::Quantile(works, 0.5);
  const uint32_t first = h.steps.front();
  double before = 0;  // the largest of those right before
  std::vector<double> others;
  for (uint32_t s = 0; s < steps.size(); ++s) {
    if (steps[s].process != h.process || steps[s].work < large) continue;
    const bool near = s < first && s + kSoonAfter >= first;
    if (near) before = std::max(before, steps[s].work);
    if (!near) others.push_back(steps[s].work);
  }
  return before > 0 && (others.empty() || before >= kLongPrompt * ml::Quantile(others, 0.5));
}

/// Bytes that a step's copies of one name move.
double CopiedIn(const Scene& scene, uint32_t step, uint32_t name) {
  double bytes = 0;
  for (const Slot& slot : scene.profiles[step].slots) {
    if (slot.key.kind != SlotKey::Kind::kGpu || slot.key.name != name || slot.span == kNoSpan) continue;
    const trace::GpuArgs* args = scene.store.gpu_args.Find(slot.span);
    if (args != nullptr && args->bytes > 0) bytes += static_cast<double>(args->bytes);
  }
  return bytes;
}

/// True when copies take longer because they move more than in other steps that have such copies: keys that come from
/// elsewhere, inputs of another size.
bool CopiesMore(const Scene& scene, const Hypothesis& h) {
  constexpr double kMore = 2;  // times the bytes
  if (h.trouble != Trouble::kSlowOperator || h.slot.kind != SlotKey::Kind::kGpu || h.span == kNoSpan ||
      scene.store.kind(h.span) != trace::SpanKind::kCopy)
    return false;
  std::vector<double> here;
  std::vector<double> elsewhere;
  for (uint32_t s = 0; s < scene.profiles.size(); ++s) {
    if (scene.trees.steps[s].process != h.process) continue;
    const double bytes = CopiedIn(scene, s, h.slot.name);
    if (bytes <= 0) continue;  // a step without such a copy says nothing about what one moves
    const bool hit = std::binary_search(h.steps.begin(), h.steps.end(), s);
    (hit ? here : elsewhere).push_back(bytes);
  }
  return !here.empty() && !elsewhere.empty() && ml::Quantile(here, 0.5) >= kMore * ml::Quantile(elsewhere, 0.5);
}

/// True when attention of decoding steps becomes longer and longer by a small part of the step: it reads the keys of
/// all tokens so far, and nothing in the trace says how many these are. A slow one is as slow from its first step on.
bool GrowsWithItsContext(const Scene& scene, const Hypothesis& h) {
  constexpr double kGrows = 1.3;  // from the first third of the steps to the last
  constexpr size_t kLeastSteps = 12;
  if (h.trouble != Trouble::kSlowOperator || h.steps.size() < kLeastSteps || h.span == kNoSpan ||
      tree::ClassOfName(scene.store.name(h.span)) != tree::KernelClass::kAttention)
    return false;
  double lost = 0;
  double whole = 0;
  for (size_t i = 0; i < h.steps.size(); ++i) {
    const trace::Step& step = scene.trees.steps[h.steps[i]];
    if (step.kind != trace::StepKind::kDecode || step.context_tokens >= 0) return false;
    lost += static_cast<double>(h.lost_in[i]);
    whole += static_cast<double>(step.duration()) - static_cast<double>(h.lost_in[i]);
  }
  const size_t third = h.lost_in.size() / 3;
  const std::vector<double> first(h.lost_in.begin(), h.lost_in.begin() + static_cast<std::ptrdiff_t>(third));
  const std::vector<double> last(h.lost_in.end() - static_cast<std::ptrdiff_t>(third), h.lost_in.end());
  return lost <= kContextShare * whole && ml::Quantile(last, 0.5) >= kGrows * ml::Quantile(first, 0.5);
}

/// Operators that compute nothing but make room for what others compute: they take long where the system has to hand
/// out memory, which depends on what was freed before.
bool MakesRoom(const Scene& scene, const Hypothesis& h) {
  if (h.trouble != Trouble::kSlowOperator || h.slot.kind != SlotKey::Kind::kOp || h.span == kNoSpan) return false;
  const std::string_view name = scene.store.name(h.span);
  if (!name.starts_with("aten::empty") && !name.starts_with("aten::new_empty") && name != "aten::resize_") return false;
  Nanos whole = 0;
  for (const uint32_t s : h.steps) whole += scene.trees.steps[s].duration();
  return static_cast<double>(h.lost) <= kRoomShare * static_cast<double>(whole);
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
    if (IsOnceWithoutProcessor(scene, h)) {
      notes.push_back({fmt::format("{} stood still once, for {}, while no processor was idle and other programs had a "
                                   "good part of them",
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
    if (CopiesMore(scene, h)) {
      notes.push_back({fmt::format("{} takes up to {} in {} steps of {} because more is copied there",
                                   scene.store.name(h.span), Ms(h.worst), h.steps.size(), who),
                       h.onset, h.end});
      return true;
    }
    if (GrowsWithItsContext(scene, h)) {
      notes.push_back({fmt::format("{} takes longer with each decoding step, up to {}: it reads a context that grows",
                                   scene.store.name(h.span), Ms(h.worst)),
                       h.onset, h.end});
      return true;
    }
    if (MakesRoom(scene, h)) {
      notes.push_back({fmt::format("{} takes up to {} in {} steps of {}: the system hands out memory there",
                                   scene.store.name(h.span), Ms(h.worst), h.steps.size(), who),
                       h.onset, h.end});
      return true;
    }
    if (ReadsALongContext(scene, h) || ReadsWhatALargeStepComputed(scene, h)) {
      notes.push_back(
          {"operators that read the context take longer while the sequence of a long prompt runs", h.onset, h.end});
      return true;
    }
    return false;
  });
}

}  // namespace teller::locate
