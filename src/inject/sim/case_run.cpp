#include "inject/sim/case_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace teller::inject::sim {

namespace fs = std::filesystem;

using base::kMicro;
using base::kMilli;
using base::kSecond;

namespace {

constexpr int kMany = 16;  // from so many ranks on the unrecorded part is short

bool IsLong(Kind kind) {
  switch (kind) {
    case Kind::kKvPressure:
    case Kind::kPrefillBlocking:
    case Kind::kSchedStall:
    case Kind::kSlowTokenizer:
    case Kind::kDpSkew:
    case Kind::kPrefixMiss:
    case Kind::kBigBatch:
    case Kind::kClientError: return true;
    default: return false;
  }
}

bool IsDeath(Kind kind) {
  return kind == Kind::kRankDeath || kind == Kind::kOom || kind == Kind::kGpuHardware || kind == Kind::kGpuFault ||
         kind == Kind::kCollHang || kind == Kind::kCollDivergence;
}

}  // namespace

CaseRun::CaseRun(const SimulateOptions& options, const KindInfo& kind, uint64_t seed)
    : options_(options), kind_(kind), rng_(seed) {
  layout_.engine = options.engine;
  layout_.ranks = options.ranks;
  layout_.parts = options.engine == Engine::kFsdp ? options.ranks : std::min(options.ranks, 8);
  layout_.layers = options.ranks > kMany ? 6 : 6 + static_cast<int>(rng_.Below(5));
  const bool could = options.engine != Engine::kFsdp && options.ranks > 1;
  layout_.experts = could && (Is(Kind::kMoeSkew) || rng_.Unit() < 0.25);
  truth_.kind = &kind_;
  truth_.seed = seed;
  truth_.magnitude = options.magnitude ? *options.magnitude : 0.05 + 0.95 * rng_.Unit();
  lead_ = options.ranks > kMany ? 6 : 200;
  const int tail = options.ranks > kMany ? 6 : 120;
  total_ = lead_ + options.steps + tail;
  first_ = lead_ + static_cast<int>(options.steps * Draw(0.25, 0.4));
  last_ = first_ + std::max(1, static_cast<int>(options.steps * Draw(0.25, 0.45)));
  if (IsLong(kind.kind)) {
    first_ = lead_ * 6 / 10;
    last_ = total_ - tail * 3 / 10;
  }
  if (Is(Kind::kCpuStarved) || Is(Kind::kMemoryPressure)) last_ = lead_ + options.steps;
  if (Is(Kind::kNetPath)) {
    first_ = 0;
    last_ = total_;
  }
  if (IsDeath(kind.kind)) {
    first_ = lead_ + options.steps + tail / 2;
    last_ = total_ = first_ + 1;
  }
  start_ =
      (1'780'000'000 + static_cast<Nanos>(rng_.Below(15'000'000))) * kSecond + static_cast<Nanos>(rng_.Below(kSecond));
  now_ = start_;
  const int pid = 1000 + static_cast<int>(rng_.Below(30000));
  processes_.front = pid;
  processes_.engine = pid + 14;
  for (int r = 0; r < layout_.ranks; ++r) processes_.workers.push_back(pid + 28 + 7 * r);
  machine_ = std::make_unique<Machine>(layout_, rng_.Next());
  log_ = std::make_unique<ServiceLog>(layout_, processes_, rng_.Next());
  PlanFault();
}

double CaseRun::Between(double low, double high) const {
  return low * std::pow(high / low, truth_.magnitude);
}

/// As the process calls itself in logs and counters.
std::string CaseRun::ProcessName(int rank) const {
  const int part = rank % layout_.parts;
  switch (layout_.engine) {
    case Engine::kVllm:
      if (layout_.replicas() > 1) return fmt::format("Worker_DP{}_TP{}", rank / layout_.parts, part);
      return layout_.parts > 1 ? fmt::format("Worker_TP{}", part) : "Worker";
    case Engine::kSglang:
      if (layout_.replicas() > 1) return fmt::format("scheduler_DP{}_TP{}", rank / layout_.parts, part);
      return layout_.parts > 1 ? fmt::format("scheduler_TP{}", part) : "scheduler";
    default: return fmt::format("rank{}", rank);
  }
}

/// Chooses whom and what; the magnitude becomes a physical size.
void CaseRun::PlanFault() {
  if (kind_.on_rank) truth_.rank = static_cast<int>(rng_.Below(layout_.ranks));
  static constexpr Role kSlowRoles[] = {Role::kQkv,    Role::kAttn, Role::kProj, Role::kNorm,
                                        Role::kGateUp, Role::kDown, Role::kAct};
  const size_t roles = layout_.experts ? 4 : std::size(kSlowRoles);
  const Role role = kSlowRoles[rng_.Below(roles)];
  wrong_.rank = truth_.rank;
  truth_.process = truth_.rank < 0 ? "" : ProcessName(truth_.rank);
  Dial();
  const bool one_op = Is(Kind::kSlowOperator) || Is(Kind::kKernelRegression);
  if (!one_op) return;
  wrong_.role = role;
  wrong_.other_kernel = Is(Kind::kKernelRegression);
  for (const Op& op : machine_->program()) {
    if (op.role != role || op.layer < 0) continue;
    truth_.op = wrong_.other_kernel ? nlohmann::json::parse(op.other.name).get<std::string>() : op.name;
    return;
  }
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
    case Kind::kStraggler: return set(wrong_.host, "host_factor", 1.2, 12);
    case Kind::kSlowOperator: return set(wrong_.role_scale, "factor", 1.15, 25);
    case Kind::kKernelRegression: return set(wrong_.role_scale, "factor", 1.1, 8);
    case Kind::kGpuClock: return set(wrong_.device, "factor", 1.08, 4);
    case Kind::kSlowLink: wrong_.link = truth_.rank; break;
    case Kind::kIntraLink:
      wrong_.link = truth_.rank;
      wrong_.both_links = true;
      break;
    case Kind::kNetPath: return set(wrong_.transfer, "factor", 1.5, 15);
    case Kind::kHostBound:
      truth_.process = layout_.engine == Engine::kVllm ? "EngineCore" : "";
      return hold(wrong_.before_step, "ms", 0.3, 40);
    case Kind::kIpc:
      truth_.process = layout_.engine == Engine::kVllm ? "EngineCore" : "";
      return hold(wrong_.before_step, "ms", 0.3, 20);
    case Kind::kPreForward: return hold(wrong_.in_step, "ms", 3, 400);
    case Kind::kCompile: return hold(wrong_.load_module, "ms", 15, 2500);
    case Kind::kMoeSkew: return set(wrong_.experts, "factor", 1.2, 8);
    case Kind::kMemoryPressure: return set(wrong_.host, "host_factor", 1.2, 8);
    case Kind::kHiddenSync: wrong_.syncs = static_cast<int>(Between(1, 64)); return Param("copies", wrong_.syncs);
    default: return;
  }
  set(wrong_.link_scale, "link_factor", 1.5, 60);
  // Both ends of a link are right answers.
  const int group = truth_.rank / layout_.parts * layout_.parts;
  const int next = group + (truth_.rank - group + 1) % layout_.parts;
  truth_.accepted_ranks = {truth_.rank, next};
}

void CaseRun::OpenTraces() {
  const Nanos at = now_;
  base::Rng rng(truth_.seed ^ 0x5a5a);
  std::vector<HostClock> clocks;
  for (int node = 0; node <= layout_.node(layout_.ranks - 1); ++node) {
    HostClock clock;
    clock.origin = at;
    if (node > 0) {
      clock.offset = static_cast<Nanos>((rng.Unit() - 0.5) * 4 * kMilli);
      clock.drift = (rng.Unit() - 0.5) * 40e-6;
    }
    clocks.push_back(clock);
  }
  for (int r = 0; r < layout_.ranks; ++r) {
    TraceOwner owner;
    owner.rank = r;
    owner.world = layout_.ranks;
    owner.device = r % layout_.ranks_in_node;
    owner.pid = processes_.workers[r];
    owner.device_name = "NVIDIA H100 80GB HBM3";
    owner.process = layout_.engine == Engine::kVllm     ? "VLLM::Worker"
                    : layout_.engine == Engine::kSglang ? "sglang::scheduler"
                                                        : "python3";
    owner.groups = fmt::format(
        "[{{\"pg_name\": \"0\", \"pg_desc\": \"default_pg\", \"backend_config\": \"cuda:nccl\", \"pg_size\": {}}}]",
        layout_.ranks);
    owner.clock = clocks[layout_.node(r)];
    owner.lost = options_.lost;
    owner.seed = rng.Next();
    files_.push_back(
        std::make_unique<TraceFile>(fmt::format("{}/traces/rank{}.pt.trace.json", folder_, r), std::move(owner), at));
  }
}

base::Status CaseRun::CloseTraces() {
  for (auto& file : files_) {
    TELLER_TRY(file->Finish());
    trace_bytes_ += file->bytes();
  }
  files_.clear();
  return {};
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
    Nanos period = now + static_cast<Nanos>(quota * 100 * kMilli * rng_.Unit());
    for (int k = 0; k < 600; ++k, period += 100 * kMilli) add(period, static_cast<Nanos>((1 - quota) * 100) * kMilli);
  } else if (Is(Kind::kMemoryPressure)) {
    Nanos at = now;
    for (int k = 0; k < 400; ++k) {
      at += static_cast<Nanos>(Draw(2, 20) * kMilli);
      const Nanos length = static_cast<Nanos>(Between(0.2, 8) * Draw(0.3, 2) * kMilli);
      add(at, length);
      at += length;
    }
  }
}

void CaseRun::BeginFault(int step, Nanos now) {
  if (begun_ || step < first_ || Is(Kind::kNone) || Is(Kind::kWarmUp) || Is(Kind::kProfiler) || Is(Kind::kShutdown))
    return;
  begun_ = true;
  truth_.window.begin = now;
  AddStops(now);
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
  if (!UnderFault(step) || IsLong(kind_.kind) || IsDeath(kind_.kind)) return {};
  if (Is(Kind::kPause)) {
    // Three times in a window, wherever the host is then.
    const int every = std::max(1, (last_ - first_) / 3);
    if ((step - first_) % every == 0) {
      const Nanos length = static_cast<Nanos>(Between(4, 900) * Draw(0.8, 1.2) * kMilli);
      const Nanos begin = now_ + static_cast<Nanos>(Draw(0, 1.5) * kMilli);
      stops_.push_back({begin, begin + length});
      machine_->AddStop(truth_.rank, stops_.back());
    }
    return {};
  }
  if (Is(Kind::kPreForward) && !admits) return {};
  if (Is(Kind::kCompile) && (step - first_) % 7 != 0) return {};
  Effects effects = wrong_;
  if (Is(Kind::kGraphFallback)) effects.no_graph = rng_.Unit() < std::max(0.1, truth_.magnitude);
  return effects;
}

void CaseRun::Note(int step, const std::string& annotation, const std::vector<Stay>& stays, Nanos gap) {
  if (!Recorded(step) || !UnderFault(step)) return;
  AbnormalStep abnormal{static_cast<uint32_t>(step - lead_), annotation, stays};
  const auto hit = [&](const Stop& stop) {
    const Stay& stay = stays[truth_.rank];
    return stop.begin < stay.end && stop.end > stay.begin - gap;
  };
  if (!stops_.empty() && std::none_of(stops_.begin(), stops_.end(), hit)) return;
  if (Is(Kind::kCompile) && (step - first_) % 7 != 0) return;
  truth_.steps.push_back(std::move(abnormal));
}

void CaseRun::HostCounters(Nanos at) {
  if (at < next_host_) return;
  next_host_ = at + 100 * kMilli;
  const int shown = std::min(layout_.ranks, kMany);
  for (int r = 0; r < shown; ++r) {
    Nanos stopped = 0;
    int times = 0;
    if (r == truth_.rank) {
      for (const Stop& stop : stops_) {
        if (stop.begin >= at) break;
        stopped += std::min(at, stop.end) - stop.begin;
        ++times;
      }
    }
    const bool quota = Is(Kind::kCpuStarved);
    const bool reclaim = Is(Kind::kMemoryPressure) && r == truth_.rank;
    const Nanos ran = static_cast<Nanos>(0.9 * static_cast<double>(at - start_ - stopped));
    const bool inside = r == truth_.rank && !stops_.empty() && !ended_ && begun_;
    host_ += fmt::format(
        "{{\"t_ns\": {}, \"process\": \"{}\", \"state\": \"{}\", \"run_ns\": {}, \"wait_ns\": {}, \"majflt\": {}, "
        "\"nr_periods\": {}, \"nr_throttled\": {}, "
        "\"throttled_time\": {}}}\n",
        at, ProcessName(r), inside && reclaim ? "D" : "R", ran,
        (at - start_) / 400 + static_cast<Nanos>(rng_.Below(kMilli)), reclaim ? 40 * times : 3,
        (at - start_) / (100 * kMilli), quota ? times : 0, quota ? stopped : 0);
  }
}

base::Status CaseRun::WriteRest() {
  TELLER_TRY(log_->Write(folder_, options_.late));
  TELLER_TRY(WriteFile(folder_ + "/host.jsonl", host_));
  if (layout_.engine == Engine::kFsdp) return {};
  std::string truth;
  std::string spans;
  base::Rng ids(truth_.seed ^ 0x77);
  for (const Request& request : requests_) {
    truth += TruthLine(request);
    if (request.finished > 0 && layout_.engine == Engine::kVllm)
      spans += SpanLine(request, ids.Next(), processes_.front);
  }
  TELLER_TRY(WriteFile(folder_ + "/requests.jsonl", truth));
  if (!spans.empty()) TELLER_TRY(WriteFile(folder_ + "/spans.jsonl", spans));
  return WriteFile(folder_ + "/metrics.txt", metrics_);
}

base::Status CaseRun::Make(const std::string& folder, const std::string& name) {
  folder_ = folder;
  std::error_code error;
  fs::create_directories(folder + "/traces", error);
  if (layout_.engine == Engine::kFsdp) fs::create_directories(folder + "/logs", error);
  if (error) return base::Error{base::Code::kUnreadable, "cannot be written", folder};
  log_->StartUp(now_);
  log_->Path(now_, Is(Kind::kNetPath));
  TELLER_TRY(layout_.engine == Engine::kFsdp ? ServeSharded() : Serve());
  EndFault(last_, now_);
  if (IsDeath(kind_.kind)) {
    truth_.window.end = now_ + 500 * kMilli;
    const bool hang = Is(Kind::kCollHang) || Is(Kind::kCollDivergence);
    if (hang)
      log_->Hang(now_, truth_.rank);
    else
      log_->Death(kind_.kind, now_ + 100 * kMilli, truth_.rank);
    if (hang) truth_.window.end = now_ + 600 * kSecond;
  } else if (Is(Kind::kShutdown)) {
    log_->ShutDown(now_ + 200 * kMilli);
  }
  // Who collects the counters outlives the service.
  next_host_ = 0;
  HostCounters(std::max(now_, truth_.window.end) + kMilli);
  TELLER_TRY(WriteRest());
  return WriteFile(folder + "/label.json", LabelText(truth_, layout_, name));
}

}  // namespace teller::inject::sim
