#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "inject/sim/case_run.hpp"

namespace teller::inject::sim {

using base::kMicro;
using base::kMilli;
using base::kSecond;

namespace {

constexpr double kLeastOutput = 16;
constexpr double kOutputRange = 12;  // of the longest answer to the shortest
const double kMeanOutput = kLeastOutput * (kOutputRange - 1) / std::log(kOutputRange);
constexpr int64_t kLongAnswers =
    3;  // of a service whose cache is too small: sequences outgrow what was free when they began
constexpr int64_t kLeastBlocks = 96;  // the longest request alone fits
// The gaps of the tables are of servers that share two busy processors with their model; beside a GPU the same code has
// processors of its own.
constexpr double kQuietHost = 0.25;
constexpr int64_t kLayerKeys = 4096;  // bytes of keys and values of one token in one layer
constexpr double kFabric = 10;        // bytes a nanosecond between instances
constexpr double kTierSpeed = 6;      // bytes a nanosecond from host memory or a fast disk

}  // namespace

/// Typical duration of a decoding step with its gap, in ns.
double CaseRun::EstimateStep() {
  const Tables& tables = StandardTables();
  const Quantiles& gap = layout_.engine == Engine::kVllm ? tables.between_steps_vllm : tables.between_steps_sglang;
  return UsualStep({}, false) + 1000 * kQuietHost * gap.Median();
}

Request CaseRun::MakeRequest(Nanos at) {
  base::Rng& rng = load_rng_;
  Request request;
  request.id = fmt::format("{:08x}-{:04x}", rng.Next() & 0xffffffffu, requests_.size());
  request.send = at;
  int64_t prefix = Is(Kind::kPrefixMiss) ? static_cast<int64_t>(Between(256, 4096)) / 16 * 16 : 256;
  const double further = rng.Unit();
  if (parts_.kv == KvSource::kTier) prefix = 512 + static_cast<int64_t>(160 * further) * 16;
  request.shared = rng.Unit() < 0.6 ? prefix : 0;
  request.prompt = request.shared + static_cast<int64_t>(40 * std::pow(2.0, 4 * rng.Unit()));
  request.output = static_cast<int64_t>(kLeastOutput * std::pow(kOutputRange, rng.Unit()));
  const double pace = 0.9 + 0.4 * rng.Unit();
  if (Is(Kind::kKvPressure)) request.output *= kLongAnswers;
  if (longest_ > 0) {
    request.prompt = longest_;
    request.shared = 0;
    longest_ = 0;
  }
  request.work =
      static_cast<Nanos>((1.0 + 0.004 * static_cast<double>(request.prompt)) * pace * front_factor_ * kMilli);
  if (parts_.kv == KvSource::kPrefill) request.remote = request.prompt;
  if (parts_.kv == KvSource::kTier) request.remote = request.shared;
  return request;
}

Nanos CaseRun::NextArrival() {
  const double gap = -std::log(1 - load_rng_.Unit()) / rate_;
  return next_arrival_ + static_cast<Nanos>(gap * 1e9);
}

/// The front end takes the next request that has arrived.
void CaseRun::Enter(Request& request) {
  front_free_ = request.queued = std::max(front_free_, request.arrival) + request.work;
  // Another instance computes the prompt meanwhile.
  if (parts_.kv == KvSource::kPrefill)
    request.queued += static_cast<Nanos>((8 + 0.03 * static_cast<double>(request.prompt)) * kMilli);
  log_->Accepted(request);
  entered_.push_back(&request);
}

/// Gives the schedulers what has passed the network and the front end by now.
void CaseRun::Deliver(Nanos now) {
  while (next_arrival_ <= now || extra_ > 0) {
    const Nanos at = extra_ > 0 ? now : next_arrival_;
    requests_.push_back(MakeRequest(at));
    requests_.back().arrival = net_.Way(at);
    arriving_.push_back(&requests_.back());
    if (extra_ > 0) {
      --extra_;
    } else {
      next_arrival_ = NextArrival();
    }
  }
  std::stable_sort(arriving_.begin(), arriving_.end(),
                   [](const Request* a, const Request* b) { return a->arrival < b->arrival; });
  size_t come = 0;
  while (come < arriving_.size() && arriving_[come]->arrival <= now) Enter(*arriving_[come++]);
  arriving_.erase(arriving_.begin(), arriving_.begin() + static_cast<std::ptrdiff_t>(come));
  for (; !entered_.empty() && entered_.front()->queued <= now; entered_.pop_front()) {
    const bool skewed = Is(Kind::kDpSkew) && begun_ && !ended_ && fault_rng_.Unit() < Between(0.2, 0.98);
    const size_t among = skewed ? static_cast<size_t>(layout_.stages) : replicas_.size();
    Replica& replica = replicas_[delivered_ % among];
    ++delivered_;
    replica.scheduler.Add(entered_.front());
  }
}

/// The server learns which clients are gone.
void CaseRun::GiveUp(Nanos now) {
  std::erase_if(leaving_, [&](Request* request) {
    if (request->gone > now) return false;
    for (Replica& replica : replicas_) {
      if (!replica.scheduler.Drop(request)) continue;
      ++replica.aborted;
      const FirstLine line = log_->Aborted(*request);
      if (Is(Kind::kFrontNet) && begun_ && request->gone >= truth_.window.begin) NoteLine(line);
    }
    return true;
  });
}

/// What becomes of requests whose keys never came.
void CaseRun::Broken(Replica& replica) {
  for (Request* request : replica.scheduler.TakeBroken()) {
    const FirstLine line = log_->KeysLost(*request);
    if (Is(Kind::kKvTransfer) && begun_) NoteLine(line);
    if (replica.scheduler.options().computes_lost) continue;
    request->failed = true;
    request->finished = request->ready;
    ++replica.aborted;
  }
}

StepPlan CaseRun::PlanOf(const Replica& replica, int step) {
  const Batch& batch = replica.batch;
  StepPlan plan;
  plan.warm_up = Is(Kind::kWarmUp) && step >= lead_ && step < lead_ + 3;
  plan.shape = batch.shape;
  plan.graph = batch.prompts == 0;
  if (batch.decodes > 0) plan.drafts = parts_.drafts;
  if (parts_.kv == KvSource::kTier) plan.loads = replica.link->Moved(moved_until_, now_);
  if (batch.parts.empty()) plan.shape = {1, 16, 0, 1};  // an empty replica computes one padding token with the others
  if (layout_.engine == Engine::kVllm) {
    plan.name = fmt::format("execute_context_{}({})_generation_{}({})", batch.prompts, batch.prompt_tokens,
                            batch.decodes, batch.decode_tokens);
  } else if (batch.prompts > 0) {
    plan.name = fmt::format("step[EXTEND bs={} toks={}]", batch.prompts, batch.prompt_tokens);
  } else {
    const char* mode = plan.drafts > 0 ? "TARGET_VERIFY" : "DECODE";
    plan.name = batch.parts.empty() ? "step[IDLE bs=0]" : fmt::format("step[{} bs={}]", mode, batch.decodes);
  }
  return plan;
}

void CaseRun::OpenService() {
  const double step_ns = EstimateStep() / MeanAccepted(parts_);
  running_ = 3 * std::pow(4.0, rng_.Unit());
  usual_.prompts_first = layout_.engine == Engine::kSglang;
  // Of a pipeline each turn has as many: a stage keeps the keys of its own layers only.
  usual_.blocks = 4000 + static_cast<int64_t>(rng_.Below(3000));
  usual_.drafts = parts_.drafts;
  usual_.accept = parts_.accept;
  usual_.made_elsewhere = parts_.kv == KvSource::kPrefill && layout_.engine == Engine::kSglang;
  usual_.computes_lost = layout_.engine == Engine::kVllm;
  const double speed = parts_.kv == KvSource::kPrefill ? kFabric : kTierSpeed;
  for (int k = 0; k < layout_.replicas() * layout_.stages; ++k) {
    auto link = std::make_unique<KvLink>(speed, kLayerKeys * layout_.layers, 300 * kMicro, rng_.Next());
    replicas_.emplace_back(usual_, std::move(link), rng_.Next());
  }
  told_.resize(static_cast<size_t>(layout_.replicas()));
  for (Sample& sample : told_) sample.at = now_;
  ready_.assign(static_cast<size_t>(layout_.stages), now_);
  const double output = kMeanOutput * (Is(Kind::kKvPressure) ? kLongAnswers : 1);
  usual_rate_ = rate_ = running_ * static_cast<double>(replicas_.size()) / (output * step_ns / 1e9);
  next_arrival_ = moved_until_ = now_;
  extra_ = static_cast<int>(running_ * 0.6) * static_cast<int>(replicas_.size());
  statistics_at_ = now_ + static_cast<Nanos>(1 + rng_.Below(5)) * 100 * kMilli;
  refusal_gap_ = static_cast<Nanos>(static_cast<double>(total_) * step_ns / Between(4, 150));
}

/// What is outside of the schedulers: load, front end, network.
void CaseRun::Disturb(bool active) {
  rate_ = Is(Kind::kBigBatch) && active ? 3 * usual_rate_ : usual_rate_;
  front_factor_ = Is(Kind::kSlowTokenizer) && active ? Between(3, 120) : 1;
  net_.Disturb(active ? wrong_.loss : 0, active ? wrong_.reset : 0, active ? wrong_.delay : 0);
  // A link that is nearly dead loses transfers as well.
  const double broken = Is(Kind::kKvTransfer) && truth_.magnitude > 0.5 ? truth_.magnitude - 0.5 : 0;
  for (Replica& replica : replicas_) replica.link->Disturb(active ? wrong_.keys : 1, active ? broken : 0);
}

/// Settings of a scheduler as they are now.
void CaseRun::Adapt(Replica& replica, bool active) {
  SchedulerOptions& o = replica.scheduler.options();
  o = usual_;
  if (!active) return;
  if (Is(Kind::kPrefillBlocking)) {
    o.chunks = false;
    o.prompts_first = true;
  }
  if (Is(Kind::kPrefixMiss)) o.cache = false;
  o.accept *= wrong_.accept;
  const double left = 1 - truth_.magnitude;
  if (Is(Kind::kSchedStall)) o.most_running = std::max<size_t>(1, static_cast<size_t>(running_ * left));
  if (!Is(Kind::kKvPressure)) return;
  // Of the room that was in use when it began.
  if (replica.room_left == 0) {
    const double room = static_cast<double>(replica.scheduler.used()) * (0.3 + left);
    replica.room_left = std::max<int64_t>(kLeastBlocks, static_cast<int64_t>(room));
  }
  o.blocks = replica.room_left;
}

/// Load, front end, network and schedulers as they are at this step.
void CaseRun::Turn(int step) {
  const bool active = begun_ && !ended_;
  if (step == first_ && Is(Kind::kLongPrefill)) longest_ = 5000 + static_cast<int64_t>(load_rng_.Below(2500));
  if (step == first_ && Is(Kind::kBurst)) extra_ += 24 * static_cast<int>(replicas_.size());
  if (Is(Kind::kPrefillBlocking) && active && (step - first_) % 25 == 0)
    longest_ = static_cast<int64_t>(Between(900, 7000));
  if (longest_ > 0) ++extra_;
  Disturb(active);
  for (Replica& replica : replicas_) Adapt(replica, active);
}

/// When something can happen although nobody has work.
Nanos CaseRun::NextEvent() const {
  Nanos next = next_arrival_;
  if (!entered_.empty()) next = std::min(next, entered_.front()->queued);
  if (!arriving_.empty()) next = std::min(next, arriving_.front()->arrival);
  for (const Replica& replica : replicas_) {
    const Nanos ready = replica.scheduler.NextReady();
    if (ready > 0) next = std::min(next, ready);
  }
  return next;
}

/// Lets the schedulers of one turn choose. False when there is nothing to do for them.
bool CaseRun::HasWork(int turn) {
  bool any = false;
  for (int k = 0; k < layout_.replicas(); ++k) {
    Replica& replica = At(k, turn);
    replica.batch = replica.scheduler.Next(now_);
    Broken(replica);
    any |= !replica.batch.parts.empty();
  }
  return any;
}

/// Finds the next batch; waits while nobody has work, or all who have it are under way. False when a service can admit
/// nobody any more.
bool CaseRun::Choose() {
  constexpr Nanos kPoll = 50 * kMilli;
  const Nanos give_up = now_ + 60 * kSecond;
  starved_ = false;
  while (now_ < give_up) {
    Deliver(now_);
    GiveUp(now_);
    Nanos next = now_ + kPoll;
    for (int k = 1; k <= layout_.stages; ++k) {
      const int turn = (turn_ + k) % layout_.stages;
      const Nanos ready = ready_[static_cast<size_t>(turn)];
      if (ready > now_) {
        next = std::min(next, ready);
      } else if (HasWork(turn)) {
        turn_ = turn;
        return true;
      }
    }
    for (const Replica& replica : replicas_) starved_ |= replica.scheduler.loading() > 0;
    now_ = std::max(now_ + 200 * kMicro, std::min(next, NextEvent()));
    Observe(now_);
  }
  return false;
}

/// What the step made, for requests, logs and counters of one replica.
void CaseRun::Account(int index, const Stay& stay, bool graph) {
  Replica& replica = At(index, turn_);
  if (replica.batch.parts.empty()) return;
  const Nanos end = stay.end + 60 * kMicro;
  replica.scheduler.Done(replica.batch, end);
  replica.prompt_tokens += static_cast<uint64_t>(replica.batch.prompt_tokens);
  replica.made_tokens += static_cast<uint64_t>(replica.batch.made);
  if (replica.batch.retracted > 0) {
    const FirstLine line = log_->Retracted(now_, replica.batch);
    if (Is(Kind::kKvPressure) && begun_ && !ended_) NoteLine(line);
  }
  log_->Step(end, index, replica.batch, replica.scheduler, stay.end - stay.begin, graph);
  for (const Batch::Part& part : replica.batch.parts) {
    net_.Deliver(*part.request);
    if (part.request->finished == 0) {
      const bool known = std::find(leaving_.begin(), leaving_.end(), part.request) != leaving_.end();
      if (part.request->gone > 0 && !known) leaving_.push_back(part.request);
      continue;
    }
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
  for (int k = 0; k < layout_.replicas(); ++k) {
    admitted += At(k, turn_).batch.admitted;
    plans.push_back(PlanOf(At(k, turn_), step));
  }
  moved_until_ = now_;
  const Effects effects = EffectsFor(step, admitted > 0);
  const std::vector<Stay>& stays = machine_->Step(plans, now_, effects, Recorded(step) ? files_ : none);
  if (effects.load_module > 0) NoteLine(log_->Compiled(stays.front().end, 0));
  Nanos free = 0;
  Nanos over = 0;
  for (int k = 0; k < layout_.replicas(); ++k) {
    const auto first = static_cast<size_t>(k * layout_.ranks_in_replica());
    const Stay& last = stays[first + static_cast<size_t>(layout_.parts * (layout_.stages - 1))];
    free = std::max(free, stays[first].end);
    over = std::max(over, last.end);
    Account(k, {stays[first].begin, last.end}, plans[static_cast<size_t>(k)].graph && !effects.no_graph);
  }
  Note(step, plans.front().name, stays, gap_, admitted > 0);
  gap_ = static_cast<Nanos>(1000 * kQuietHost * gaps.Draw(rng_)) + effects.before_step;
  // The first stage is free for another batch while this one is on its way.
  ready_[static_cast<size_t>(turn_)] = over + gap_;
  now_ = free + gap_;
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
