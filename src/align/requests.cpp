#include "align/requests.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "align/request_ids.hpp"
#include "align/request_lives.hpp"
#include "align/request_phases.hpp"
#include "align/request_steps.hpp"

namespace teller::align {

namespace {

using trace::kNoTime;
using trace::LogRecord;
using trace::Nanos;
using trace::Request;
using trace::RequestRecord;

constexpr Nanos kLatest = 4'000'000'000'000'000'000;  // of an epoch time: the year 2096
constexpr Nanos kLongest = 400'000'000'000'000'000;   // of a duration: twelve years
constexpr int64_t kMostTokens = 1'000'000'000'000;

/// Hostile numbers become "not stated", so that sums stay in range.
RequestRecord Sane(RequestRecord record) {
  for (Nanos* time : {&record.arrival, &record.dispatched, &record.admitted, &record.prefilled, &record.first_token,
                      &record.finished}) {
    if (*time < 0 || *time > kLatest) *time = kNoTime;
  }
  for (Nanos* duration : {&record.queue_time, &record.prefill_time, &record.decode_time, &record.ttft, &record.e2e}) {
    if (*duration < 0 || *duration > kLongest) *duration = -1;
  }
  for (int64_t* count : {&record.prompt_tokens, &record.cached_tokens, &record.output_tokens, &record.preemptions,
                         &record.computed_tokens}) {
    if (*count < 0 || *count > kMostTokens) *count = -1;
  }
  return record;
}

class Builder {
 public:
  Builder(trace::Store& store, trace::Trees& trees) : store_(store), trees_(trees), lives_(store) {}

  void Run() {
    for (uint32_t i = 0; i < store_.logs.size(); ++i) {
      if (!store_.logs[i].request.empty()) with_id_.push_back(i);
    }
    for (uint32_t i = 0; i < store_.request_records.size(); ++i) AddRecord(i);
    AddLines();
    const std::vector<Lane> lanes = EngineLanes(trees_.steps);
    for (size_t r = 0; r < requests_.size(); ++r) {
      FinishFromLines(requests_[r], stated_[r]);
      SetPhases(stated_[r], requests_[r]);
      requests_[r].at_error = std::max(requests_[r].at_error, line_error_[r]);
      FindSteps(trees_.steps, lanes, stated_[r], requests_[r]);
    }
    Order();
    ShareSteps(trees_.steps, lanes, requests_);
    trees_.requests = std::move(requests_);
  }

 private:
  /// A number that is given again after a restart names another request.
  std::string Scope(std::string_view id, trace::FileRow file, const std::string& process, uint32_t line) const {
    std::string scope = RequestLives::Scope(id, file, process);
    if (const uint32_t life = lives_.Of(scope, id, line); life > 0) scope += "#" + std::to_string(life);
    return scope;
  }

  uint32_t NewRequest(const std::string& scope, const std::string& id) {
    const auto row = static_cast<uint32_t>(requests_.size());
    requests_.emplace_back().id = id;
    stated_.emplace_back();
    line_error_.push_back(0);
    if (!id.empty()) ids_.Add(scope, id, row);
    return row;
  }

  void AddRecord(uint32_t index) {
    const RequestRecord record = Sane(store_.request_records[index]);
    const std::string scope = Scope(record.id, record.file, record.process, RequestLives::LineOf(record.ref));
    uint32_t row = record.id.empty() ? RequestIds::kNone : ids_.Find(scope, record.id);
    // One source that speaks twice under one id speaks of two requests (a client may use an id again).
    if (row != RequestIds::kNone && SpokeBefore(requests_[row], record)) row = RequestIds::kNone;
    if (row == RequestIds::kNone) row = NewRequest(scope, record.id);
    Request& request = requests_[row];
    if (record.source == trace::RequestSource::kList && IsLater(record, request.listed)) request.listed = index;
    request.records.push_back(index);
    if (record.id.size() < request.id.size() && !record.id.empty()) request.id = record.id;
    Merge(record, stated_[row]);
  }

  bool IsLater(const RequestRecord& record, uint32_t than) const {
    return than == Request::kNotListed || record.named > store_.request_records[than].named;
  }

  bool SpokeBefore(const Request& request, const RequestRecord& record) const {
    return std::any_of(request.records.begin(), request.records.end(), [&](uint32_t i) {
      const RequestRecord& other = store_.request_records[i];
      if (other.source != record.source) return false;
      if (!other.trace_id.empty() && !record.trace_id.empty() && other.trace_id != record.trace_id) return true;
      return other.finished != kNoTime && record.arrival != kNoTime && record.arrival >= other.finished;
    });
  }

  /// Ties log records to requests; those that nobody else knows become requests of their own.
  void AddLines() {
    trees_.logs_with_id = with_id_.size();
    for (const uint32_t i : with_id_) {
      const LogRecord& record = store_.logs[i];
      const std::string scope = Scope(record.request, record.file, record.process, record.line);
      uint32_t row = ids_.Find(scope, record.request);
      if (row == RequestIds::kNone) row = NewRequest(scope, record.request);
      Request& request = requests_[row];
      if (record.request.size() < request.id.size()) request.id = record.request;
      request.logs.push_back(trace::LogRow(i));
      ++trees_.logs_on_request;
    }
    // Several files may speak of one request: in order of time, those without one last.
    for (Request& request : requests_) {
      std::stable_sort(request.logs.begin(), request.logs.end(), [this](trace::LogRow a, trace::LogRow b) {
        const Nanos at_a = store_.logs[a.value()].at;
        const Nanos at_b = store_.logs[b.value()].at;
        return std::pair(at_a == kNoTime, at_a) < std::pair(at_b == kNoTime, at_b);
      });
    }
  }

  /// A request's own lines say when it came and went, where no source states it: as exactly as their stamps are.
  void FinishFromLines(Request& request, RequestRecord& stated) {
    const auto row = static_cast<size_t>(&request - requests_.data());
    std::map<std::pair<uint32_t, std::string>, uint32_t> by_place;
    for (const trace::LogRow line : request.logs) {
      const LogRecord& log = store_.logs[line.value()];
      by_place.emplace(std::pair(log.file.value(), "line:" + std::to_string(log.line)), line.value());
    }
    for (const uint32_t i : request.records) {
      const RequestRecord& record = store_.request_records[i];
      if (record.source != trace::RequestSource::kLog || stated.finished != kNoTime) continue;
      // The line that states durations is written when the request is done.
      const auto line = by_place.find({record.file.value(), record.ref});
      if (line != by_place.end()) TakeLine(store_.logs[line->second], stated.finished, row);
    }
    if (stated.e2e >= 0 && (stated.arrival != kNoTime || stated.finished != kNoTime)) return;
    for (const trace::LogRow line : request.logs) {
      const LogRecord& log = store_.logs[line.value()];
      if (log.at == kNoTime) continue;
      if (stated.arrival == kNoTime) TakeLine(log, stated.arrival, row);
      if (request.logs.size() > 1 && stated.finished == kNoTime && line == request.logs.back())
        TakeLine(log, stated.finished, row);
    }
    stated = Sane(std::move(stated));
    if (stated.finished != kNoTime && stated.arrival != kNoTime && stated.finished < stated.arrival)
      stated.finished = kNoTime;
  }

  void TakeLine(const LogRecord& log, Nanos& into, size_t row) {
    if (log.at == kNoTime || log.at < 0 || log.at > kLatest) return;
    into = log.at;
    line_error_[row] = std::max(line_error_[row], std::min(log.at_error, kLongest));
  }

  void Order() {
    std::stable_sort(requests_.begin(), requests_.end(), [](const Request& a, const Request& b) {
      return std::tie(a.arrival, a.id) < std::tie(b.arrival, b.id);
    });
  }

  trace::Store& store_;
  trace::Trees& trees_;
  RequestLives lives_;
  RequestIds ids_;
  std::vector<uint32_t> with_id_;
  std::vector<Request> requests_;
  std::vector<RequestRecord> stated_;  ///< parallel to requests_ until they are ordered
  std::vector<Nanos> line_error_;      ///< parallel: how far times taken from lines may be off
};

}  // namespace

void BuildRequests(trace::Store& store, trace::Trees& trees) {
  Builder(store, trees).Run();
}

}  // namespace teller::align
