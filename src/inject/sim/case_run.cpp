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

}  // namespace

CaseRun::CaseRun(const SimulateOptions& options, const KindInfo& kind, uint64_t seed)
    : options_(options),
      kind_(kind),
      rng_(seed),
      load_rng_(seed ^ 0x10ad),
      record_rng_(seed ^ 0x4ec),
      fault_rng_(seed ^ 0xfa017),
      net_(seed ^ 0x2e7) {
  layout_.engine = options.engine;
  layout_.ranks = options.ranks;
  layout_.stages = options.stages;
  layout_.parts = options.engine == Engine::kFsdp ? options.ranks : std::min(options.ranks / options.stages, 8);
  const int layers = 6 + static_cast<int>(rng_.Below(5));
  layout_.layers = options.ranks > kMany ? 6 : layers;
  const bool could = options.engine != Engine::kFsdp && options.ranks > 1;
  const bool experts = rng_.Unit() < 0.25;
  layout_.experts = could && (Is(Kind::kMoeSkew) || experts);
  parts_ = DrawParts(kind.kind, options.engine, rng_);
  if (layout_.stages > 1) parts_ = {};
  layout_.drafts = parts_.drafts;
  // Machines differ: real recordings of eager code have 10 to 120 us of host time between launches.
  layout_.host = 0.7 * std::pow(6.0, rng_.Unit());
  layout_.device = 0.7 * std::pow(2.5, rng_.Unit());
  truth_.kind = &kind_;
  truth_.seed = seed;
  truth_.magnitude = options.magnitude ? *options.magnitude : 0.05 + 0.95 * fault_rng_.Unit();
  lead_ = options.ranks > kMany ? 6 : 200;
  const int tail = options.ranks > kMany ? 6 : 120;
  total_ = lead_ + options.steps + tail;
  first_ = lead_ + static_cast<int>(options.steps * DrawFault(0.25, 0.4));
  last_ = first_ + std::max(1, static_cast<int>(options.steps * DrawFault(0.25, 0.45)));
  if (HoldsLong(kind.kind)) {
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
  log_ = std::make_unique<ServiceLog>(layout_, parts_, processes_, rng_.Next());
  usual_load_ = Draw(4, 9);
  PlanFault();
}

double CaseRun::Between(double low, double high) const {
  return low * std::pow(high / low, truth_.magnitude);
}

/// As the process calls itself in logs and counters.
std::string CaseRun::ProcessName(int rank) const {
  switch (layout_.engine) {
    case Engine::kVllm: return "Worker" + PlaceOf(layout_, rank, '_');
    case Engine::kSglang: return "scheduler" + PlaceOf(layout_, rank, '_');
    default: return fmt::format("rank{}", rank);
  }
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

base::Status CaseRun::Make(const std::string& folder, const std::string& name) {
  folder_ = folder;
  std::error_code error;
  fs::create_directories(folder + "/traces", error);
  if (layout_.engine == Engine::kFsdp) fs::create_directories(folder + "/logs", error);
  if (error) return base::Error{base::Code::kUnreadable, "cannot be written", folder};
  const double load = usual_load_ * (Is(Kind::kSlowWeights) ? Between(4, 120) : 1);
  const Interval loaded = log_->StartUp(now_, load);
  if (Is(Kind::kSlowWeights)) truth_.window = loaded;
  const FirstLine path = log_->Path(now_, Is(Kind::kNetPath));
  if (Is(Kind::kNetPath)) NoteLine(path);
  TELLER_TRY(layout_.engine == Engine::kFsdp ? ServeSharded() : Serve());
  EndFault(last_, now_);
  if (IsDeath(kind_.kind)) {
    truth_.window.end = now_ + 500 * kMilli;
    const bool hang = Is(Kind::kCollHang) || Is(Kind::kCollDivergence);
    if (hang)
      NoteLine(log_->Hang(now_, truth_.rank));
    else
      NoteLine(log_->Death(kind_.kind, now_ + 100 * kMilli, truth_.rank));
    if (hang) truth_.window.end = now_ + 600 * kSecond;
  } else if (Is(Kind::kShutdown)) {
    log_->ShutDown(now_ + 200 * kMilli);
  }
  // Who collects the counters outlives the service.
  HostSample(std::max(now_, truth_.window.end) + kMilli);
  TELLER_TRY(WriteRest());
  return WriteFile(folder + "/label.json", LabelText(truth_, layout_, name));
}

}  // namespace teller::inject::sim
