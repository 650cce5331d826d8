#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "inject/sim/case_run.hpp"

namespace teller::inject::sim {

using base::kMicro;
using base::kMilli;
using base::kSecond;

namespace {

constexpr double kMeanOutput = 48;
constexpr int64_t kLongAnswers =
    5;  // of a service whose cache is too small: sequences outgrow what was free when they began
constexpr int64_t kLeastBlocks = 96;  // the longest request alone fits
// The gaps of the tables are of servers that share two busy processors with their model; beside a GPU the same code has
// processors of its own.
constexpr double kQuietHost = 0.25;

}  // namespace

/// Typical duration of a decoding step with its gap, in ns, tried on a machine of its own.
double CaseRun::EstimateStep() {
  Machine trial(layout_, 1);
  std::vector<std::unique_ptr<TraceFile>> none;
  StepPlan plan;
  plan.shape = {8, 8 * 500, 0, 8};
  plan.graph = true;
  Nanos at = kSecond;
  for (int k = 0; k < 4; ++k) at = trial.Step({plan}, at, {}, none).front().end;
  const Tables& tables = StandardTables();
  const Quantiles& gap = layout_.engine == Engine::kVllm ? tables.between_steps_vllm : tables.between_steps_sglang;
  return static_cast<double>(at - kSecond) / 4 + 1000 * kQuietHost * gap.Median();
}

Request CaseRun::MakeRequest(Nanos at) {
  Request request;
  request.id = fmt::format("{:08x}-{:04x}", rng_.Next() & 0xffffffffu, requests_.size());
  request.send = at;
  request.arrival = at + static_cast<Nanos>(Draw(150, 500) * kMicro);
  const int64_t prefix = Is(Kind::kPrefixMiss) ? static_cast<int64_t>(Between(256, 4096)) / 16 * 16 : 256;
  request.shared = rng_.Unit() < 0.6 ? prefix : 0;
  request.prompt = request.shared + static_cast<int64_t>(40 * std::pow(2.0, 4 * rng_.Unit()));
  request.output = 16 + static_cast<int64_t>(rng_.Below(static_cast<uint64_t>(2 * (kMeanOutput - 16))));
  if (Is(Kind::kKvPressure)) request.output *= kLongAnswers;
  if (longest_ > 0) {
    request.prompt = longest_;
    request.shared = 0;
    longest_ = 0;
  }
  const double work = (1.0 + 0.004 * static_cast<double>(request.prompt)) * Draw(0.9, 1.3) * front_factor_;
  front_free_ = request.queued = std::max(front_free_, request.arrival) + static_cast<Nanos>(work * kMilli);
  return request;
}

Nanos CaseRun::NextArrival() {
  const double gap = -std::log(1 - rng_.Unit()) / rate_;
  return next_arrival_ + static_cast<Nanos>(gap * 1e9);
}

/// Gives the schedulers what has passed the front end by now.
void CaseRun::Deliver(Nanos now) {
  while (next_arrival_ <= now || extra_ > 0) {
    const Nanos at = extra_ > 0 ? now : next_arrival_;
    requests_.push_back(MakeRequest(at));
    log_->Accepted(requests_.back());
    if (extra_ > 0) {
      --extra_;
    } else {
      next_arrival_ = NextArrival();
    }
  }
  while (delivered_ < requests_.size() && requests_[delivered_].queued <= now) {
    const bool skewed = Is(Kind::kDpSkew) && begun_ && !ended_ && rng_.Unit() < Between(0.2, 0.98);
    Replica& replica = skewed ? replicas_[0] : replicas_[delivered_ % replicas_.size()];
    replica.scheduler.Add(&requests_[delivered_++]);
  }
}

StepPlan CaseRun::PlanOf(const Batch& batch, int step) {
  StepPlan plan;
  plan.warm_up = Is(Kind::kWarmUp) && step >= lead_ && step < lead_ + 3;
  plan.shape = batch.shape;
  plan.graph = batch.prompts == 0;
  if (batch.parts.empty()) plan.shape = {1, 16, 0, 1};  // an empty replica computes one padding token with the others
  if (layout_.engine == Engine::kVllm) {
    plan.name = fmt::format("execute_context_{}({})_generation_{}({})", batch.prompts, batch.prompt_tokens,
                            batch.decodes, batch.decodes);
  } else if (batch.prompts > 0) {
    plan.name = fmt::format("step[EXTEND bs={} toks={}]", batch.prompts, batch.prompt_tokens);
  } else {
    plan.name = batch.parts.empty() ? "step[IDLE bs=0]" : fmt::format("step[DECODE bs={}]", batch.decodes);
  }
  return plan;
}

void CaseRun::Observe(Nanos now) {
  HostCounters(now);
  if (Is(Kind::kClientError) && begun_ && !ended_ && now >= next_refusal_) {
    log_->Refused(now, 8300 + static_cast<int64_t>(rng_.Below(4000)));
    next_refusal_ = now + static_cast<Nanos>(Draw(0.5, 1.5) * static_cast<double>(refusal_gap_));
  }
  if (now >= next_scrape_) {
    next_scrape_ = now + 250 * kMilli;
    std::vector<Sample> samples;
    for (size_t k = 0; k < replicas_.size(); ++k) {
      const Replica& r = replicas_[k];
      samples.push_back({now, static_cast<int>(k), r.scheduler.running(), r.scheduler.waiting(), r.scheduler.usage(),
                         r.scheduler.retractions(), r.scheduler.asked(), r.scheduler.found(), r.prompt_tokens,
                         r.made_tokens, r.done});
    }
    metrics_ += Scrape(layout_.engine, samples);
    for (int r = 0; r < layout_.ranks; ++r) {
      const bool slow = Is(Kind::kGpuClock) && begun_ && !ended_ && r == truth_.rank;
      metrics_ += fmt::format("DCGM_FI_DEV_SM_CLOCK{{gpu=\"{}\"}} {}\n", r,
                              slow ? static_cast<int>(1980 / wrong_.device / 15) * 15 : 1980);
    }
  }
  if (now < statistics_at_) return;
  statistics_at_ = now + 10 * kSecond;
  const Replica& first = replicas_.front();
  log_->Statistics(now, 0, first.scheduler, static_cast<double>(first.prompt_tokens - told_prompt_) / 10,
                   static_cast<double>(first.made_tokens - told_made_) / 10);
  told_prompt_ = first.prompt_tokens;
  told_made_ = first.made_tokens;
}

void CaseRun::OpenService() {
  const double step_ns = EstimateStep();
  running_ = Draw(5, 10);
  usual_.prompts_first = layout_.engine == Engine::kSglang;
  usual_.blocks = 4000 + static_cast<int64_t>(rng_.Below(3000));
  for (int k = 0; k < layout_.replicas(); ++k) replicas_.emplace_back(usual_);
  const double output = kMeanOutput * (Is(Kind::kKvPressure) ? kLongAnswers : 1);
  usual_rate_ = rate_ = running_ * static_cast<double>(replicas_.size()) / (output * step_ns / 1e9);
  next_arrival_ = now_;
  extra_ = static_cast<int>(running_ * 0.6) * static_cast<int>(replicas_.size());
  statistics_at_ = now_ + static_cast<Nanos>(rng_.Below(10)) * kSecond;
  refusal_gap_ = static_cast<Nanos>(static_cast<double>(total_) * step_ns / Between(4, 150));
}

/// Load, front end and scheduler as they are at this step.
void CaseRun::Turn(int step) {
  const bool active = begun_ && !ended_;
  if (step == first_ && Is(Kind::kLongPrefill)) longest_ = 5000 + static_cast<int64_t>(rng_.Below(2500));
  if (step == first_ && Is(Kind::kBurst)) extra_ += 24 * static_cast<int>(replicas_.size());
  if (Is(Kind::kPrefillBlocking) && active && (step - first_) % 25 == 0)
    longest_ = static_cast<int64_t>(Between(900, 7000));
  if (longest_ > 0) ++extra_;
  rate_ = Is(Kind::kBigBatch) && active ? 3 * usual_rate_ : usual_rate_;
  front_factor_ = Is(Kind::kSlowTokenizer) && active ? Between(3, 120) : 1;
  for (Replica& replica : replicas_) {
    SchedulerOptions& o = replica.scheduler.options();
    o = usual_;
    if (!active) continue;
    if (Is(Kind::kPrefillBlocking)) {
      o.chunks = false;
      o.prompts_first = true;
    }
    if (Is(Kind::kPrefixMiss)) o.cache = false;
    const double left = 1 - truth_.magnitude;
    if (Is(Kind::kSchedStall)) o.most_running = std::max<size_t>(1, static_cast<size_t>(running_ * left));
    if (!Is(Kind::kKvPressure)) continue;
    // Of the room that was in use when it began.
    if (replica.room_left == 0) {
      const double room = static_cast<double>(replica.scheduler.used()) * (0.3 + left);
      replica.room_left = std::max<int64_t>(kLeastBlocks, static_cast<int64_t>(room));
    }
    o.blocks = replica.room_left;
  }
}

/// Lets the schedulers choose; waits while nobody has work. False when a service can admit nobody any more.
bool CaseRun::Choose() {
  constexpr Nanos kPoll = 50 * kMilli;
  const Nanos give_up = now_ + 60 * kSecond;
  while (now_ < give_up) {
    Deliver(now_);
    bool any = false;
    for (Replica& replica : replicas_) {
      replica.batch = replica.scheduler.Next(now_);
      any |= !replica.batch.parts.empty();
    }
    if (any) return true;
    const Nanos next = delivered_ < requests_.size() ? requests_[delivered_].queued : next_arrival_;
    now_ = std::max(now_ + 200 * kMicro, std::min(next, now_ + kPoll));
    Observe(now_);
  }
  return false;
}

/// What the step made, for requests, logs and counters of one replica.
void CaseRun::Account(size_t index, const Stay& stay, bool graph) {
  Replica& replica = replicas_[index];
  if (replica.batch.parts.empty()) return;
  const Nanos end = stay.end + 60 * kMicro;
  replica.scheduler.Done(replica.batch, end);
  replica.prompt_tokens += replica.batch.prompt_tokens;
  replica.made_tokens += replica.batch.decodes;
  if (replica.batch.retracted > 0) log_->Retracted(now_, replica.batch);
  log_->Step(end, static_cast<int>(index), replica.batch, replica.scheduler, stay.end - stay.begin, graph);
  for (const Batch::Part& part : replica.batch.parts) {
    if (part.request->finished == 0) continue;
    ++replica.done;
    log_->Finished(*part.request);
  }
}

void CaseRun::RunStep(int step) {
  const Tables& tables = StandardTables();
  const bool vllm = layout_.engine == Engine::kVllm;
  const Quantiles& gaps = vllm ? tables.between_steps_vllm : tables.between_steps_sglang;
  std::vector<std::unique_ptr<TraceFile>> none;
  int admitted = 0;
  std::vector<StepPlan> plans;
  for (const Replica& replica : replicas_) {
    admitted += replica.batch.admitted;
    plans.push_back(PlanOf(replica.batch, step));
  }
  const Effects effects = EffectsFor(step, admitted > 0);
  const std::vector<Stay>& stays = machine_->Step(plans, now_, effects, Recorded(step) ? files_ : none);
  if (effects.load_module > 0) log_->Compiled(stays.front().end, 0);
  Nanos over = 0;
  for (size_t k = 0; k < replicas_.size(); ++k) {
    const Stay& stay = stays[k * layout_.parts];
    over = std::max(over, stay.end);
    Account(k, stay, plans[k].graph && !effects.no_graph);
  }
  if (!IsLookAlike() && (!Is(Kind::kPreForward) || admitted > 0)) Note(step, plans.front().name, stays, gap_);
  gap_ = static_cast<Nanos>(1000 * kQuietHost * gaps.Draw(rng_)) + effects.before_step;
  now_ = over + gap_;
  machine_->Forget(now_ - kSecond);
  Observe(now_);
}

base::Status CaseRun::Serve() {
  OpenService();
  const double observer = Is(Kind::kProfiler) ? 8 : 1;
  const auto hold = [&](double low_ms, double high_ms, bool start) {
    const Nanos begin = now_;
    now_ += static_cast<Nanos>(Draw(low_ms, high_ms) * observer * kMilli);
    log_->Profiler(begin, now_, start);
    truth_.observer.push_back({begin, now_});
  };
  for (int step = 0; step < total_; ++step) {
    if (step == lead_) {
      hold(30, 120, true);
      OpenTraces();
    }
    BeginFault(step, now_);
    EndFault(step, now_);
    Turn(step);
    if (!Choose()) break;
    RunStep(step);
    if (step != lead_ + options_.steps - 1) continue;
    TELLER_TRY(CloseTraces());
    hold(200, 900, false);
  }
  return CloseTraces();
}

}  // namespace teller::inject::sim
