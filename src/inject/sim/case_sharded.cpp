#include <fmt/format.h>

#include <algorithm>

#include "inject/sim/case_run.hpp"

namespace teller::inject::sim {

using base::kMilli;
using base::kSecond;

/// All ranks write their shares of a checkpoint.
void CaseRun::Save(int step) {
  constexpr double kDisk = 1.2;  // bytes a nanosecond of one rank's writes
  std::vector<std::unique_ptr<TraceFile>> none;
  const int64_t bytes = Bytes(Role::kGather, layout_, {}) * layout_.layers;
  const bool slow = begun_ && !ended_ && Is(Kind::kSlowCheckpoint);
  std::vector<Nanos> writes;
  for (int r = 0; r < layout_.ranks; ++r) {
    const double time = static_cast<double>(bytes) / kDisk * Draw(0.85, 1.3);
    writes.push_back(static_cast<Nanos>(time * (slow ? wrong_.save : 1)));
  }
  const std::vector<Stay>& stays = machine_->Save(bytes, writes, Recorded(step) ? files_ : none);
  const Nanos longest = *std::max_element(writes.begin(), writes.end());
  now_ = stays.front().end;
  saves_.push_back({now_ - longest, now_});
  starved_ = slow;
  log_->Saved(now_, step, bytes, writes);
}

/// FSDP: every rank runs the same loop over one batch of requests after the other; weights are gathered layer by layer.
base::Status CaseRun::ServeSharded() {
  std::vector<std::unique_ptr<TraceFile>> none;
  int request = 0;
  int64_t batch = 0;
  int64_t prompt = 0;
  int64_t decodes = 0;
  int64_t done = 0;
  Nanos began = now_;
  const int64_t usual = 2 + static_cast<int64_t>(load_rng_.Below(3));
  for (int step = 0; step < total_; ++step) {
    if (step == lead_) {
      const Nanos begin = now_;
      now_ += static_cast<Nanos>(Draw(30, 120) * kMilli);
      truth_.observer.push_back({begin, now_});
      OpenTraces();
    }
    BeginFault(step, now_);
    EndFault(step, now_);
    const bool active = begun_ && !ended_;
    const bool prefill = done == decodes;
    if (prefill) {
      batch = Is(Kind::kBigBatch) && active ? 4 * usual : usual;
      prompt = 32 + static_cast<int64_t>(load_rng_.Below(5)) * 16;
      if (Is(Kind::kLongPrefill) && step >= first_ && step < first_ + 20) prompt = 3000;
      decodes = 10 + static_cast<int64_t>(load_rng_.Below(10));
      done = 0;
      began = now_;
      log_->Fsdp(now_, fmt::format("request {} admitted: batch={} prompt_len={} max_new_tokens={}", request, batch,
                                   prompt, decodes));
    } else {
      ++done;
    }
    StepPlan plan;
    plan.name = fmt::format("ProfilerStep#{}", step);
    plan.warm_up = Is(Kind::kWarmUp) && step >= lead_ && step < lead_ + 3;
    plan.shape = prefill ? Shape{batch * prompt, 0, batch * prompt * prompt / 2, batch}
                         : Shape{batch, batch * (prompt + done), 0, batch};
    const Effects effects = EffectsFor(step, prefill);
    const std::vector<Stay>& stays = machine_->Step({plan}, now_, effects, Recorded(step) ? files_ : none);
    Nanos over = 0;
    for (const Stay& stay : stays) over = std::max(over, stay.end);
    if (effects.load_module > 0) NoteLine(log_->Compiled(over, 0));
    const double ms = static_cast<double>(stays.front().end - stays.front().begin) / 1e6;
    log_->Fsdp(over, prefill
                         ? fmt::format("request {} prefill done: {} tokens in {:.1f} ms", request, batch * prompt, ms)
                         : fmt::format("request {} decode step {}: {:.1f} ms", request, done, ms));
    if (done == decodes) {
      log_->Fsdp(over, fmt::format("request {} finished: {} tokens in {:.3f} s", request, batch * decodes,
                                   static_cast<double>(over - began) / 1e9));
      ++request;
    }
    Note(step, plan.name, stays, kMilli, prefill);
    starved_ = false;
    // No rank waits for another one outside of collectives.
    now_ = over;
    for (const Stay& stay : stays) now_ = std::min(now_, stay.end);
    machine_->Forget(now_ - kSecond);
    if (parts_.save_every > 0 && step % parts_.save_every == parts_.save_every - 1) Save(step);
    HostCounters(now_);
    if (step == lead_ + options_.steps - 1) {
      TELLER_TRY(CloseTraces());
      const Nanos begin = now_;
      now_ += static_cast<Nanos>(Draw(200, 900) * kMilli);
      log_->Profiler(begin, now_, false);
      truth_.observer.push_back({begin, now_});
    }
  }
  return {};
}

}  // namespace teller::inject::sim
