#include <algorithm>
#include <optional>

#include "base/nanos.hpp"
#include "locate/counter_cause.hpp"
#include "locate/log_incident.hpp"
#include "locate/log_text.hpp"

namespace teller::locate {

using base::kSecond;
using trace::FaultClass;
using trace::Finding;
using trace::Nanos;

namespace {

constexpr double kFull = 0.95;           // share of the KV cache above which nothing more fits
constexpr double kNearlyFull = 0.9;      // the same, where the cache has so few blocks that it is never exactly full
constexpr double kVisibleStepMs = 1000;  // a compile that costs this much is felt
constexpr Nanos kNear = 3 * kSecond;
constexpr size_t kLookedAt = 64;  // compilations whose surroundings are searched
constexpr size_t kShown = 5;      // lines of one kind given as evidence

std::optional<double> Statistic(const trace::LogRecord& record, std::string_view key) {
  for (const auto& [name, value] : record.statistics) {
    if (name == key) return value;
  }
  return std::nullopt;
}

/// A finding over events of one role; false_alarm is still open.
Finding Collect(const trace::Store& store, const LogFacts& facts, const std::vector<const Signal*>& events) {
  Finding finding;
  const Signal& first = *events.front();
  finding.fault = first.fault;
  finding.view = "vertical";
  finding.culprit = CulpritOf(store, facts, first);
  finding.onset = store.logs[first.row].at;
  finding.end = finding.onset;
  for (const Signal* s : events) {
    if (store.logs[s->row].at != trace::kNoTime) finding.end = std::max(finding.end, store.logs[s->row].at);
  }
  // First, last and some between.
  for (size_t i = 0; i < events.size() && i + 1 < kShown; ++i) AddEvidence(finding, store, events[i]->row);
  AddEvidence(finding, store, events.back()->row);
  return finding;
}

std::string Span(const Finding& finding) {
  if (finding.onset == trace::kNoTime || finding.end <= finding.onset) return "";
  return " within " + std::to_string((finding.end - finding.onset + kSecond - 1) / kSecond) + " s";
}

/// The access line of a request that was served with a prefill.
bool IsAnswer(const trace::LogRecord& r) {
  return Statistic(r, "http_status").value_or(0) == 200 && Has(r.message, "\"POST /") &&
         HasAny(r.message, {"/completions ", "/completions?", "/generate ", "/generate?", "/responses ", "/messages ",
                            "/invocations ", "/embeddings ", "/pooling ", "/classify ", "/score ", "/rerank "});
}

class Floods {
 public:
  Floods(const trace::Store& store, const LogFacts& facts, LogCauses& out) : store_(store), facts_(facts), out_(out) {}

  void KvPressure(const std::vector<const Signal*>& events) {
    if (events.empty()) return KvFullWithoutEvents();
    Finding finding = Collect(store_, facts_, events);
    finding.culprit.layer = "scheduler";
    size_t full = 0;
    size_t waiting = 0;
    for (const size_t row : facts_.order) {
      const auto& r = store_.logs[row];
      if (r.at == trace::kNoTime || r.at < finding.onset - kNear || r.at > finding.end + kNear) continue;
      const auto usage = Statistic(r, "kv_usage");
      if (!usage || *usage < kFull) continue;
      ++full;
      if (Statistic(r, "waiting").value_or(0) > 0) ++waiting;
      if (full <= 2) AddEvidence(finding, store_, row);
    }
    const size_t n = events.size();
    // One retraction can come from a bad estimate and costs one request's prefill; a row of them is pressure.
    double p = n == 1 ? 0.05 : n == 2 ? 0.015 : n < 5 ? 4e-3 : 1e-3;
    if (full > 0 && waiting > 0 && n > 1) p /= 2;
    finding.false_alarm_probability = p;
    finding.explanation = "The KV cache had no room: " + std::to_string(n) +
                          " times running requests were taken out and must be prefilled again" + Span(finding) +
                          " [E1]" + (full > 0 ? "; statistics lines show it full meanwhile." : ".");
    finding.victims.push_back({std::nullopt, "the retracted requests, which start over"});
    Publish(std::move(finding));
  }

  void Refusals(const std::vector<const Signal*>& events) {
    if (events.empty()) return;
    // A refusal with its reason, or an access line with its status: count reasons when there are some, to count none
    // twice.
    std::vector<const Signal*> reasons;
    for (const Signal* s : events) {
      if (store_.logs[s->row].source != trace::LogSource::kUvicorn) reasons.push_back(s);
    }
    const bool named = !reasons.empty();
    const auto& counted = named ? reasons : events;
    Finding finding = Collect(store_, facts_, counted);
    finding.alternatives = {{FaultClass::kFrontendNet, 0.1}};
    const size_t n = counted.size();
    size_t served = 0;
    for (const auto& r : store_.logs) {
      const bool meanwhile = r.at == trace::kNoTime || (r.at >= finding.onset - kNear && r.at <= finding.end + kNear);
      served += meanwhile && Statistic(r, "http_status").value_or(0) == 200 && Has(r.message, "\"POST ") ? 1 : 0;
    }
    double p = n == 1 ? 0.2 : n == 2 ? 0.05 : n == 3 ? 8e-3 : 2e-3;
    // Bare status codes: a few wrong requests are everyday life; what counts is their share.
    if (!named) p = n >= 4 && n * 4 >= served ? (n >= 10 ? 5e-3 : 9e-3) : 0.2;
    finding.false_alarm_probability = p;
    finding.explanation = "The server refused " + std::to_string(n) + (n == 1 ? " request" : " requests") +
                          Span(finding) + (named ? " and says why [E1]" : " [E1]") +
                          "; nothing is wrong with the engine itself.";
    Publish(std::move(finding));
  }

  void Compilation(const std::vector<const Signal*>& events) {
    if (events.empty()) return;
    Finding finding = Collect(store_, facts_, events);
    size_t slow = 0;
    for (size_t i = 0; i < events.size() && i < kLookedAt; ++i) {
      const Nanos at = store_.logs[events[i]->row].at;
      for (const size_t row : facts_.order) {
        const auto& r = store_.logs[row];
        if (at == trace::kNoTime || r.at == trace::kNoTime || r.at < at - kNear || r.at > at + kNear) continue;
        if (Statistic(r, "iteration_ms").value_or(0) < kVisibleStepMs) continue;
        ++slow;
        AddEvidence(finding, store_, row);
        break;
      }
    }
    finding.false_alarm_probability = slow > 0 ? 5e-3 : 0.1;
    finding.explanation =
        "Code was compiled while requests ran, " + std::to_string(events.size()) + " times [E1]" +
        (slow > 0 ? "; steps of more than a second stand beside it." : "; the logs do not show what it cost.");
    Publish(std::move(finding));
  }

  void Transfers(const std::vector<const Signal*>& events) {
    std::vector<const Signal*> specific;
    for (const Signal* s : events) {
      if (!Has(s->line, "another rank")) specific.push_back(s);
    }
    if (specific.empty()) return;
    Finding finding = Collect(store_, facts_, specific);
    finding.view = "horizontal";
    finding.false_alarm_probability = specific.size() == 1 ? 0.02 : 3e-3;
    finding.explanation = "Transfers of KV cache failed " + std::to_string(specific.size()) + " times" + Span(finding) +
                          "; this is the first line that gives a reason of its own [E1].";
    Publish(std::move(finding));
  }

  /// Names that cannot be resolved, again and again: what lies behind them is out of reach. Once is a hub that somebody
  /// has no way to, as on many machines without one.
  void Lookups(const std::vector<const Signal*>& events) {
    if (events.empty()) return;
    Finding finding = Collect(store_, facts_, events);
    finding.false_alarm_probability = events.size() < 3 ? 0.05 : events.size() < 5 ? 8e-3 : 5e-3;
    finding.explanation = "Names on the network could not be resolved " + std::to_string(events.size()) + " times" +
                          Span(finding) + " [E1]: whatever is behind them is out of reach of this process.";
    Publish(std::move(finding));
  }

 private:
  /// Engines that log no preemption: the cache stays full while requests wait, in statistics lines one after another.
  void KvFullWithoutEvents() {
    std::vector<size_t> lines;  // with a full cache; each run of them follows the one before
    size_t begin = 0;           // of the run that still goes on
    size_t best_begin = 0;
    size_t best_size = 0;
    for (const size_t row : facts_.order) {
      const auto usage = Statistic(store_.logs[row], "kv_usage");
      const auto waiting = Statistic(store_.logs[row], "waiting");
      if (!usage || !waiting) continue;
      if (*usage < kFull || *waiting <= 0) {
        begin = lines.size();
        continue;
      }
      lines.push_back(row);
      if (lines.size() - begin > best_size) {
        best_begin = begin;
        best_size = lines.size() - begin;
      }
    }
    const auto from = lines.begin() + static_cast<std::ptrdiff_t>(best_begin);
    const std::vector<size_t> best(from, from + static_cast<std::ptrdiff_t>(best_size));
    // Two lines can be the crest of one burst.
    if (best.size() < 3) return KvFullByIterations();
    PublishFull(
        best, best.size() >= 6 ? 5e-3 : 0.02,
        "The KV cache is full while requests wait in " + std::to_string(best.size()) + " statistics lines in a row");
  }

  /// Lines per iteration tell of preemption: more prefills than requests came, while the cache is full. How many came
  /// is known only from access lines, so these must cover the iterations; a line is written when its answer begins or
  /// ends, so after the request's prefill, and never more requests are without their line than run.
  void KvFullByIterations() {
    std::vector<size_t> full;
    double prefills = 0;
    double requests = 0;
    double budget = 0;
    double since = 0;    // prefills since the last access line
    double running = 0;  // most requests of one iteration since then
    double open = 0;     // at most so many requests are not answered yet
    for (const size_t row : facts_.order) {
      const auto& r = store_.logs[row];
      if (const auto value = NumberAfter(r.message, "max_num_batched_tokens=")) budget = static_cast<double>(*value);
      if (IsAnswer(r)) {
        if (requests == 0 && since > running) return;  // logged from the middle of the run on
        ++requests;
        since = 0;
        running = 0;
        open = std::max(0.0, open - 1);
      }
      const auto context = Statistic(r, "context_requests");
      const auto usage = Statistic(r, "kv_usage");
      if (!context || !usage) continue;
      // A long prompt is prefilled in chunks that fill the whole token budget: those are no new prefills.
      const double tokens = Statistic(r, "context_tokens").value_or(0) + Statistic(r, "generation_tokens").value_or(0);
      const double begun = budget <= 0 || tokens < budget ? *context : 0;
      prefills += begun;
      since += begun;
      open = *context + Statistic(r, "generation_requests").value_or(0);
      running = std::max(running, open);
      if (*usage >= kNearlyFull) full.push_back(row);
    }
    if (requests == 0 || since > running) return;  // access lines are off, or end before the iterations do
    // Those that run at the end may be answered later. More surplus than requests is no preemption either: then
    // requests come by another way, or several prompts in one.
    const double again = prefills - requests - std::max(since, open);
    if (full.size() < 10 || again < 2 || again > requests) return;
    const Nanos begin = store_.logs[full.front()].at;
    if (begin != trace::kNoTime && CountsNobodyThrownBack(store_, begin, store_.logs[full.back()].at)) return;
    PublishFull(full, again >= 3 ? 3e-3 : 8e-3,
                "The KV cache is full in " + std::to_string(full.size()) + " iterations, and " +
                    std::to_string(static_cast<int>(again)) +
                    " prefills were done for no new request: running requests lost their cache and started over");
  }

  void PublishFull(const std::vector<size_t>& rows, double false_alarm, const std::string& text) {
    std::vector<Signal> made;
    for (const size_t row : rows) {
      Signal s;
      s.row = row;
      s.role = SignalRole::kKvEvent;
      s.fault = FaultClass::kKvPressure;
      s.layer = "scheduler";
      s.line = Shorten(FirstLine(store_.logs[row].message), 300);
      made.push_back(s);
    }
    std::vector<const Signal*> events;
    for (const Signal& s : made) events.push_back(&s);
    Finding finding = Collect(store_, facts_, events);
    // Whoever writes the statistics is not the scheduler: vLLM's API server writes them for its engine.
    if (Has(finding.culprit.process, "APIServer") || finding.culprit.process.empty())
      finding.culprit.process = "EngineCore";
    finding.culprit.rank = facts_.single_worker() ? std::optional(0) : std::nullopt;
    finding.false_alarm_probability = false_alarm;
    finding.alternatives = {{FaultClass::kNotAFault, 0.2}};
    finding.explanation = text + Span(finding) + " [E1].";
    Publish(std::move(finding));
  }

  void Publish(Finding finding) {
    finding.score = ScoreOf(finding.false_alarm_probability);
    out_.findings.push_back(std::move(finding));
  }

  const trace::Store& store_;
  const LogFacts& facts_;
  LogCauses& out_;
};

}  // namespace

void FindFloods(const trace::Store& store, const LogFacts& facts, const std::vector<Signal>& signals, LogCauses& out) {
  std::vector<const Signal*> kv;
  std::vector<const Signal*> client;
  std::vector<const Signal*> compile;
  std::vector<const Signal*> transfer;
  std::vector<const Signal*> lookup;
  for (const Signal& s : signals) {
    if (s.role == SignalRole::kKvEvent) kv.push_back(&s);
    if (s.role == SignalRole::kClient) client.push_back(&s);
    if (s.role == SignalRole::kCompile) compile.push_back(&s);
    if (s.role == SignalRole::kTransfer) transfer.push_back(&s);
    if (s.role == SignalRole::kLookup) lookup.push_back(&s);
  }
  Floods floods(store, facts, out);
  floods.KvPressure(kv);
  floods.Refusals(client);
  floods.Compilation(compile);
  floods.Transfers(transfer);
  floods.Lookups(lookup);
}

}  // namespace teller::locate
