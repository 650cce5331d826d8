#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "inject/sim/case_run.hpp"

namespace teller::inject::sim {

using base::kMicro;
using base::kMilli;
using base::kSecond;

/// Chooses whom and what; the magnitude becomes a physical size.
void CaseRun::PlanFault() {
  if (kind_.on_rank) truth_.rank = static_cast<int>(fault_rng_.Below(layout_.ranks));
  // The last stage of a pipeline sends to nobody.
  if (Is(Kind::kSlowLink) && layout_.stages > 1 && layout_.stage(truth_.rank) == layout_.stages - 1)
    truth_.rank -= layout_.parts;
  static constexpr Role kSlowRoles[] = {Role::kQkv,    Role::kAttn, Role::kProj, Role::kNorm,
                                        Role::kGateUp, Role::kDown, Role::kAct};
  const size_t roles = layout_.experts ? 4 : std::size(kSlowRoles);
  const Role role = kSlowRoles[fault_rng_.Below(roles)];
  wrong_.rank = truth_.rank;
  truth_.process = truth_.rank < 0 ? "" : ProcessName(truth_.rank);
  const bool one_op = Is(Kind::kSlowOperator) || Is(Kind::kKernelRegression);
  if (one_op) wrong_.role = role;
  wrong_.other_kernel = Is(Kind::kKernelRegression);
  Dial();
  if (!one_op) return;
  for (const Op& op : machine_->program()) {
    if (op.role != role || op.layer < 0) continue;
    truth_.op = wrong_.other_kernel ? nlohmann::json::parse(op.other.name).get<std::string>() : op.name;
    return;
  }
}

/// Typical duration in ns of a decoding step, of the slowest rank, tried on a machine of its own. `eager`: without
/// graphs.
double CaseRun::UsualStep(const Effects& effects, bool eager) const {
  constexpr int kTries = 4;
  Machine trial(layout_, 1);
  std::vector<std::unique_ptr<TraceFile>> none;
  StepPlan plan;
  const bool sharded = layout_.engine == Engine::kFsdp;
  plan.shape = sharded ? Shape{3, 3 * 100, 0, 3} : Shape{8 * (1 + parts_.drafts), 8 * 500, 0, 8};
  plan.graph = !sharded && !eager;
  plan.drafts = parts_.drafts;
  Nanos at = kSecond;
  for (int k = 0; k < kTries; ++k) {
    for (const Stay& stay :
         trial.Step(std::vector<StepPlan>(static_cast<size_t>(layout_.replicas()), plan), at, effects, none))
      at = std::max(at, stay.end);
  }
  return static_cast<double>(at - kSecond) / kTries;
}

/// Sets a factor so that a step takes longer by what the magnitude asks for, from 3 % to three times its time: what a
/// fault costs depends on what else the machine waits for. Runs of many ranks take the factor from a scale, as trying
/// is dear.
void CaseRun::Reach(double& factor, const char* key, double low, double high) {
  constexpr int kCheap = 16;
  constexpr double kMost = 2000;
  if (layout_.ranks > kCheap) {
    factor = Between(low, high);
    return Param(key, factor);
  }
  // A slow host shows in steps that are launched kernel by kernel; replayed graphs hide it.
  const bool eager = &factor == &wrong_.host;
  const double usual = UsualStep({}, eager);
  const double wanted = usual * (1 + Between(0.03, 3));
  double least = 1;
  double most = kMost;
  for (int k = 0; k < 14; ++k) {
    factor = std::sqrt(least * most);
    (UsualStep(wrong_, eager) < wanted ? least : most) = factor;
  }
  Param(key, factor);
  Param("step_factor", UsualStep(wrong_, eager) / usual);
}

void CaseRun::Dial() {
  const auto set = [&](double& member, const char* key, double low, double high) {
    member = Between(low, high);
    Param(key, member);
  };
  const auto hold = [&](Nanos& member, const char* key, double low_ms, double high_ms) {
    member = static_cast<Nanos>(Between(low_ms, high_ms) * 1e6);
    Param(key, static_cast<double>(member) / 1e6);
  };
  switch (kind_.kind) {
    case Kind::kStraggler: return Reach(wrong_.host, "host_factor", 1.2, 12);
    case Kind::kSlowOperator: return Reach(wrong_.role_scale, "factor", 1.15, 25);
    case Kind::kKernelRegression: return Reach(wrong_.role_scale, "factor", 1.1, 8);
    case Kind::kGpuClock: return Reach(wrong_.device, "factor", 1.08, 4);
    case Kind::kSlowLink:
      wrong_.link = truth_.rank;
      wrong_.between_stages = layout_.stages > 1;
      break;
    case Kind::kIntraLink:
      wrong_.link = truth_.rank;
      wrong_.both_links = true;
      break;
    case Kind::kNetPath: return Reach(wrong_.transfer, "factor", 1.5, 15);
    case Kind::kHostBound:
      truth_.process = layout_.engine == Engine::kVllm ? "EngineCore" : "";
      return hold(wrong_.before_step, "ms", 0.3, 40);
    case Kind::kIpc:
      truth_.process = layout_.engine == Engine::kVllm ? "EngineCore" : "";
      return hold(wrong_.before_step, "ms", 0.3, 20);
    case Kind::kPreForward: return hold(wrong_.in_step, "ms", 3, 400);
    case Kind::kCompile: return hold(wrong_.load_module, "ms", 15, 2500);
    case Kind::kSpecCollapse: return set(wrong_.accept, "accept_factor", 0.9, 0.02);
    case Kind::kKvTransfer: return set(wrong_.keys, "factor", 4, 400);
    case Kind::kSlowTier: return set(wrong_.keys, "factor", 2, 150);
    case Kind::kSlowCheckpoint: return set(wrong_.save, "factor", 2, 60);
    case Kind::kSlowWeights: return Param("factor", Between(4, 120));
    case Kind::kFrontNet:
      set(wrong_.loss, "loss", 0.005, 0.3);
      set(wrong_.reset, "resets", 0.0002, 0.02);
      return hold(wrong_.delay, "delay_ms", 1, 60);
    case Kind::kMoeSkew: return Reach(wrong_.experts, "factor", 1.2, 8);
    case Kind::kMemoryPressure: return set(wrong_.host, "host_factor", 1.2, 8);
    case Kind::kHiddenSync: wrong_.syncs = static_cast<int>(Between(1, 64)); return Param("copies", wrong_.syncs);
    default: return;
  }
  Reach(wrong_.link_scale, "link_factor", 1.5, 60);
  // Both ends of a link are right answers.
  const int group = truth_.rank / layout_.parts * layout_.parts;
  int next = group + (truth_.rank - group + 1) % layout_.parts;
  if (wrong_.between_stages) next = truth_.rank + layout_.parts;
  truth_.accepted_ranks = {truth_.rank, next};
}

void CaseRun::AddStops(Nanos now) {
  const int rank = truth_.rank;
  const auto add = [&](Nanos begin, Nanos length) {
    stops_.push_back({begin, begin + length});
    machine_->AddStop(rank, stops_.back());
  };
  if (Is(Kind::kCpuStarved)) {
    // Run time of a period is used up by a busy thread; then nothing runs until the next one.
    const double quota = 1 - Between(0.05, 0.85);
    Param("quota", quota);
    Nanos period = now + static_cast<Nanos>(quota * 100 * kMilli * fault_rng_.Unit());
    for (int k = 0; k < 600; ++k, period += 100 * kMilli) add(period, static_cast<Nanos>((1 - quota) * 100) * kMilli);
  } else if (Is(Kind::kMemoryPressure)) {
    Nanos at = now;
    for (int k = 0; k < 400; ++k) {
      at += static_cast<Nanos>(DrawFault(2, 20) * kMilli);
      const Nanos length = static_cast<Nanos>(Between(0.2, 8) * DrawFault(0.3, 2) * kMilli);
      add(at, length);
      at += length;
    }
  }
}

void CaseRun::BeginFault(int step, Nanos now) {
  if (begun_ || step < first_ || !HasWindow(kind_.kind)) return;
  begun_ = true;
  truth_.window.begin = now;
  AddStops(now);
  if (!Is(Kind::kIntraLink)) return;
  NoteLine(log_->Xid(now + kMilli, truth_.rank, 74,
                     "NVLink: fatal error detected on link 3(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0)"));
}

void CaseRun::EndFault(int step, Nanos now) {
  if (!begun_ || ended_ || step < last_) return;
  ended_ = true;
  truth_.window.end = now;
  if (truth_.rank >= 0) machine_->ClearStops(truth_.rank, now);
  std::erase_if(stops_, [&](const Stop& stop) { return stop.end > now; });
  for (const Stop& stop : stops_) truth_.activations.push_back({stop.begin, stop.end});
}

Effects CaseRun::EffectsFor(int step, bool admits) {
  if (!UnderFault(step) || HoldsLong(kind_.kind) || IsDeath(kind_.kind)) return {};
  if (Is(Kind::kPause)) {
    // Three times in a window, wherever the host is then.
    const int every = std::max(1, (last_ - first_) / 3);
    if ((step - first_) % every == 0) {
      const Nanos length = static_cast<Nanos>(Between(4, 900) * DrawFault(0.8, 1.2) * kMilli);
      const Nanos begin = now_ + static_cast<Nanos>(DrawFault(0, 1.5) * kMilli);
      stops_.push_back({begin, begin + length});
      machine_->AddStop(truth_.rank, stops_.back());
    }
    return {};
  }
  if (Is(Kind::kPreForward) && !admits) return {};
  if (Is(Kind::kCompile) && (step - first_) % 7 != 0) return {};
  Effects effects = wrong_;
  if (Is(Kind::kGraphFallback)) effects.no_graph = fault_rng_.Unit() < std::max(0.1, truth_.magnitude);
  return effects;
}

void CaseRun::NoteLine(const FirstLine& line) {
  if (line.text.empty() || (!truth_.log_record.empty() && line_at_ <= line.at)) return;
  truth_.log_record = line.text;
  line_at_ = line.at;
}

/// True when this step is surely slower, or follows a longer gap, because of the fault.
bool CaseRun::MarksSteps(bool admits) const {
  if (IsLookAlike() || StepsAsUsual(kind_.kind)) return false;
  if (Is(Kind::kPreForward)) return admits;
  if (Is(Kind::kKvTransfer) || Is(Kind::kSlowTier)) return starved_;
  if (Is(Kind::kSlowCheckpoint)) return starved_;
  return true;
}

void CaseRun::Note(int step, const std::string& annotation, const std::vector<Stay>& stays, Nanos gap, bool admits) {
  if (!Recorded(step) || !UnderFault(step) || !HasWindow(kind_.kind) || !MarksSteps(admits)) return;
  AbnormalStep abnormal{static_cast<uint32_t>(step - lead_), annotation, stays};
  const auto hit = [&](const Stop& stop) {
    const Stay& stay = stays[truth_.rank];
    return stop.begin < stay.end && stop.end > stay.begin - gap;
  };
  if (!stops_.empty() && std::none_of(stops_.begin(), stops_.end(), hit)) return;
  if (Is(Kind::kCompile) && (step - first_) % 7 != 0) return;
  truth_.steps.push_back(std::move(abnormal));
}

}  // namespace teller::inject::sim
