#include <fmt/format.h>

#include <algorithm>

#include "inject/sim/case_run.hpp"

namespace teller::inject::sim {

using base::kMilli;

namespace {

constexpr int kShown = 16;                   // ranks that host counters tell of
constexpr Nanos kStatistics = 500 * kMilli;  // servers let it be set; runs are short

}  // namespace

/// Who samples the counters goes on while the service stands.
void CaseRun::HostCounters(Nanos at) {
  if (next_host_ == 0) next_host_ = at;
  for (; next_host_ <= at; next_host_ += 100 * kMilli) HostSample(next_host_);
}

void CaseRun::HostSample(Nanos at) {
  const auto before = [&](const std::vector<Stop>& list, int& times) {
    Nanos sum = 0;
    for (const Stop& stop : list) {
      if (stop.begin >= at) break;
      sum += std::min(at, stop.end) - stop.begin;
      ++times;
    }
    return sum;
  };
  int saves = 0;
  const Nanos written = before(saves_, saves);
  const bool writes = !saves_.empty() && saves_.back().begin <= at && at < saves_.back().end;
  const int shown = std::min(layout_.ranks, kShown);
  for (int r = 0; r < shown; ++r) {
    int times = 0;
    const Nanos stopped = r == truth_.rank ? before(stops_, times) : 0;
    const bool quota = Is(Kind::kCpuStarved);
    const bool reclaim = Is(Kind::kMemoryPressure) && r == truth_.rank;
    const Nanos ran = static_cast<Nanos>(0.9 * static_cast<double>(at - start_ - stopped - written));
    const bool inside = r == truth_.rank && !stops_.empty() && !ended_ && begun_;
    host_ += fmt::format(
        "{{\"t_ns\": {}, \"process\": \"{}\", \"state\": \"{}\", \"run_ns\": {}, \"wait_ns\": {}, \"majflt\": {}, "
        "\"nr_periods\": {}, \"nr_throttled\": {}, \"throttled_time\": {}, \"blkio_ns\": {}}}\n",
        at, ProcessName(r), writes || (inside && reclaim) ? "D" : "R", ran,
        (at - start_) / 400 + static_cast<Nanos>(record_rng_.Below(kMilli)), reclaim ? 40 * times : 3,
        (at - start_) / (100 * kMilli), quota ? times : 0, quota ? stopped : 0, written);
  }
}

Sample CaseRun::SampleOf(int index, Nanos now) const {
  Sample s;
  s.at = now;
  s.replica = index;
  for (int turn = 0; turn < layout_.stages; ++turn) {
    const Replica& r = replicas_[static_cast<size_t>(index * layout_.stages + turn)];
    s.running += r.scheduler.running();
    s.waiting += r.scheduler.waiting();
    s.loading += r.scheduler.loading();
    s.usage += r.scheduler.usage() / layout_.stages;
    s.retractions += r.scheduler.retractions();
    s.asked += r.scheduler.asked();
    s.found += r.scheduler.found();
    s.prompt_tokens += r.prompt_tokens;
    s.made_tokens += r.made_tokens;
    s.done += r.done;
    s.aborted += r.aborted;
    s.drafts = r.scheduler.drafts();  // a pipeline has no draft model
  }
  s.speculates = parts_.drafts > 0;
  s.transfers = parts_.kv == KvSource::kPrefill;
  return s;
}

void CaseRun::Scrape(Nanos now) {
  std::vector<Sample> samples;
  for (int k = 0; k < layout_.replicas(); ++k) samples.push_back(SampleOf(k, now));
  metrics_ += ScrapeText(layout_.engine, samples);
  for (int r = 0; r < layout_.ranks; ++r) {
    const bool slow = Is(Kind::kGpuClock) && begun_ && !ended_ && r == truth_.rank;
    metrics_ += fmt::format("DCGM_FI_DEV_SM_CLOCK{{gpu=\"{}\"}} {}\n", r,
                            slow ? static_cast<int>(1980 / wrong_.device / 15) * 15 : 1980);
  }
}

void CaseRun::Observe(Nanos now) {
  HostCounters(now);
  if (Is(Kind::kClientError) && begun_ && !ended_ && now >= next_refusal_) {
    NoteLine(log_->Refused(now, 8300 + static_cast<int64_t>(fault_rng_.Below(4000))));
    next_refusal_ = now + static_cast<Nanos>(DrawFault(0.5, 1.5) * static_cast<double>(refusal_gap_));
  }
  if (now >= next_scrape_) {
    next_scrape_ = now + 250 * kMilli;
    Scrape(now);
  }
  if (now < statistics_at_) return;
  statistics_at_ = now + kStatistics;
  for (int k = 0; k < layout_.replicas(); ++k) {
    Sample& told = told_[static_cast<size_t>(k)];
    const Sample sample = SampleOf(k, now);
    log_->Statistics(sample, told, At(k, 0).link.get());
    told = sample;
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
    if (request.finished > 0 && !request.failed && layout_.engine == Engine::kVllm)
      spans += SpanLine(request, ids.Next(), processes_.front);
  }
  TELLER_TRY(WriteFile(folder_ + "/requests.jsonl", truth));
  if (!spans.empty()) TELLER_TRY(WriteFile(folder_ + "/spans.jsonl", spans));
  return WriteFile(folder_ + "/metrics.txt", metrics_);
}

}  // namespace teller::inject::sim
