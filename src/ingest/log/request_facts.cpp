#include "ingest/log/request_facts.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>

#include "ingest/common/decimal.hpp"
#include "ingest/log/cursor.hpp"
#include "ingest/log/diagnostics.hpp"
#include "ingest/log/duration_text.hpp"
#include "ingest/log/python_literal.hpp"

namespace teller::ingest::log {

using trace::LogRecord;
using trace::Nanos;
using trace::RequestRecord;

namespace {

constexpr std::string_view kMeta = "'meta_info': {";
constexpr size_t kMaxOpenTasks = 4096;  // tasks of llama.cpp whose timings are not complete yet
constexpr size_t kMaxText = 256;        // an id or a reason is short

struct TimeField {
  std::string_view key;
  Nanos RequestRecord::*into;
};

struct CountField {
  std::string_view key;
  int64_t RequestRecord::*into;
};

/// Names that SGLang changed stand one after the other; the first that is stated counts.
constexpr std::array kTimes = {
    TimeField{"request_received_ts", &RequestRecord::arrival},
    TimeField{"received_ts", &RequestRecord::arrival},
    TimeField{"api_server_dispatch_finish_ts", &RequestRecord::dispatched},
    TimeField{"request_sent_to_scheduler_ts", &RequestRecord::dispatched},
    TimeField{"forward_entry_time", &RequestRecord::admitted},
    TimeField{"prefill_finished_time", &RequestRecord::prefilled},
    TimeField{"prefill_finished_ts", &RequestRecord::prefilled},
    TimeField{"request_finished_ts", &RequestRecord::finished},
    TimeField{"decode_finished_ts", &RequestRecord::finished},
};
constexpr std::array kDurations = {
    TimeField{"queue_time", &RequestRecord::queue_time},
    TimeField{"first_token_latency", &RequestRecord::ttft},
    TimeField{"e2e_latency", &RequestRecord::e2e},
};
constexpr std::array kCounts = {
    CountField{"prompt_tokens", &RequestRecord::prompt_tokens},
    CountField{"completion_tokens", &RequestRecord::output_tokens},
    CountField{"cached_tokens", &RequestRecord::cached_tokens},
    CountField{"num_retractions", &RequestRecord::preemptions},
};

constexpr Nanos kOldestEpoch = 946'684'800 * base::kSecond;  // smaller times count from a start of their own

void ReadMetaItem(std::string_view key, std::string_view value, RequestRecord& out) {
  for (const auto& field : kTimes) {
    if (field.key != key || out.*field.into != trace::kNoTime) continue;
    const auto time = ParseSeconds(value);
    if (time && *time >= kOldestEpoch) out.*field.into = *time;
  }
  for (const auto& field : kDurations) {
    if (field.key != key || out.*field.into >= 0) continue;
    const auto time = ParseSeconds(value);
    if (time && *time >= 0 && *time <= kMaxDuration) out.*field.into = *time;
  }
  for (const auto& field : kCounts) {
    if (field.key != key || out.*field.into >= 0) continue;
    const auto count = ParseInteger(value);
    if (count && *count >= 0) out.*field.into = *count;
  }
  if (key == "id" && out.id.empty()) out.id = std::string(Unquoted(value).substr(0, kMaxText));
  if (key == "finish_reason" && !value.empty() && value.front() == '{') {
    std::string message;
    ForEachDictItem(value, [&](std::string_view name, std::string_view text) {
      if (name == "type") out.finish_reason = std::string(Unquoted(text).substr(0, kMaxText));
      if (name == "message") message = std::string(Unquoted(text).substr(0, kMaxText));
    });
    if (out.finish_reason == "abort") {
      out.failed = true;
      out.error = message.empty() ? "abort" : message;
    }
  } else if (key == "finish_reason" && value.size() > 2 && value.front() == '\'') {
    out.finish_reason = std::string(Unquoted(value).substr(0, kMaxText));
  }
}

double Statistic(const LogRecord& record, std::string_view key) {
  for (const auto& [name, value] : record.statistics) {
    if (name == key) return value;
  }
  return -1;
}

/// Milliseconds of a statistic to nanoseconds; -1 when it is not there or no duration.
Nanos Millis(const LogRecord& record, std::string_view key) {
  const double ms = Statistic(record, key);
  if (!(ms >= 0) || ms > 1e-6 * static_cast<double>(kMaxDuration)) return -1;
  return static_cast<Nanos>(std::llround(ms * 1e6));
}

int64_t Whole(const LogRecord& record, std::string_view key) {
  const double value = Statistic(record, key);
  return value >= 0 && value < 1e15 ? static_cast<int64_t>(value) : -1;
}

/// The number behind the first of `keys` in a message that has one of `marks`; -1 when there is none.
int64_t NumberBehind(std::string_view message, std::initializer_list<std::string_view> marks,
                     std::initializer_list<std::string_view> keys) {
  if (std::none_of(marks.begin(), marks.end(), [&](std::string_view mark) { return Contains(message, mark); }))
    return -1;
  for (const auto key : keys) {
    const size_t at = message.find(key);
    int64_t value = 0;
    if (at != std::string_view::npos && Cursor(message.substr(at + key.size())).Number(1, 12, value)) return value;
  }
  return -1;
}

/// Line number of a row's place in its file; 0 when it names none.
uint32_t LineOf(const RequestRecord& request) {
  Cursor c(request.ref);
  int64_t line = 0;
  return c.Eat("line:") && c.Number(1, 10, line) && line <= UINT32_MAX ? static_cast<uint32_t>(line) : 0;
}

}  // namespace

RequestRecord RequestFacts::Begin(const LogRecord& record, std::string_view engine) const {
  RequestRecord out;
  out.file = file_;
  out.source = trace::RequestSource::kLog;
  out.ref = "line:" + std::to_string(record.line);
  out.id = record.request;
  out.process = record.process;
  out.engine = std::string(engine);
  return out;
}

void RequestFacts::Add(const LogRecord& record, std::string_view tail) {
  if (StartsWith(record.message, "Finish: obj=")) return AddSglang(record, tail);
  if (record.source == trace::LogSource::kLlamaCpp) return AddLlama(record);
  if (record.source == trace::LogSource::kTgi) return AddTgi(record);
}

void RequestFacts::AddSglang(const LogRecord& record, std::string_view tail) {
  // The text of an answer stands before meta_info and may hold anything: the last one is the engine's. Of a line that
  // was cut only the end is asked: what looks like meta_info further ahead may be a prompt.
  const std::string_view text = tail.empty() ? std::string_view(record.message) : tail;
  const size_t at = text.rfind(kMeta);
  RequestRecord out = Begin(record, "sglang");
  if (at != std::string_view::npos) {
    ForEachDictItem(text.substr(at + kMeta.size() - 1),
                    [&](std::string_view key, std::string_view value) { ReadMetaItem(key, value, out); });
  } else if (!tail.empty()) {
    store_.diagnostics.Report(kRequestCut, file_, "line " + std::to_string(record.line));
  }
  if (at == std::string_view::npos) return;  // older releases and low levels write none
  if (out.arrival != trace::kNoTime && out.ttft >= 0) out.first_token = out.arrival + out.ttft;
  if (out.finished == trace::kNoTime && out.arrival != trace::kNoTime && out.e2e >= 0)
    out.finished = out.arrival + out.e2e;
  store_.request_records.push_back(std::move(out));
}

void RequestFacts::AddLlama(const LogRecord& record) {
  if (record.request.empty()) return;
  const bool prompt = Statistic(record, "prompt_eval_ms") >= 0;
  const bool eval = Statistic(record, "eval_ms") >= 0;
  const bool total = Statistic(record, "total_ms") >= 0;
  const int64_t whole_prompt =
      NumberBehind(record.message, {"new prompt,"}, {"task.n_tokens = ", "n_prompt_tokens = "});
  const int64_t cached = NumberBehind(record.message, {"cached n_tokens", "memory_seq_rm"}, {"cached n_tokens = "});
  if (!(prompt || eval || total) && whole_prompt < 0 && cached < 0) return;
  if (open_.size() > kMaxOpenTasks) open_.clear();
  // Several servers may write into one stream; their task numbers are their own.
  const std::string key = record.process + '#' + std::to_string(record.pid.value_or(0)) + '|' + record.request;
  const auto [it, fresh] = open_.try_emplace(key);
  RequestRecord& out = it->second;
  if (fresh || whole_prompt >= 0) out = Begin(record, "llama.cpp");
  out.ref = "line:" + std::to_string(record.line);
  if (whole_prompt >= 0) out.prompt_tokens = whole_prompt;
  if (cached >= 0) out.cached_tokens = cached;
  if (prompt) {
    // The timings count what was computed; the line about the new prompt counts what a cache held too.
    if (out.prompt_tokens < 0) out.prompt_tokens = Whole(record, "prompt_eval_tokens");
    out.prefill_time = Millis(record, "prompt_eval_ms");
  }
  if (eval) {
    out.decode_time = Millis(record, "eval_ms");
    out.output_tokens = Whole(record, "eval_tokens");
  }
  if (!total) return;
  store_.request_records.push_back(std::move(out));
  open_.erase(it);
}

void RequestFacts::AddTgi(const LogRecord& record) {
  const Nanos total = Millis(record, "total_ms");
  if (total < 0 || Statistic(record, "inference_ms") < 0) return;
  RequestRecord out = Begin(record, "tgi");
  out.e2e = total;
  out.queue_time = Millis(record, "queue_ms");
  if (!StartsWith(record.message, "Success")) {
    out.failed = record.level >= trace::LogLevel::kError;
    if (out.failed) out.error = record.message.substr(0, kMaxText);
  }
  store_.request_records.push_back(std::move(out));
}

void FinishRequestTimes(trace::Store& store) {
  const auto open = [](const RequestRecord& r) {
    return r.source == trace::RequestSource::kList ||
           (r.source == trace::RequestSource::kLog && r.finished == trace::kNoTime);
  };
  std::map<std::pair<uint32_t, uint32_t>, Nanos> written;  // by file and line
  for (const auto& request : store.request_records) {
    if (open(request)) written.emplace(std::pair(request.file.value(), LineOf(request)), trace::kNoTime);
  }
  if (written.empty()) return;
  for (const auto& record : store.logs) {
    // A record without a time of its own says only roughly when it was written.
    if (record.at == trace::kNoTime || record.basis == trace::TimeBasis::kNeighbour) continue;
    const uint32_t last = record.line + record.lines - 1;
    const auto end = written.upper_bound(std::pair(record.file.value(), last));
    for (auto it = written.lower_bound(std::pair(record.file.value(), record.line)); it != end; ++it)
      it->second = record.at;
  }
  for (auto& request : store.request_records) {
    if (!open(request)) continue;
    const auto it = written.find(std::pair(request.file.value(), LineOf(request)));
    if (it == written.end()) continue;
    // One that is only listed was alive then, or has just ended: its end is not known.
    (request.source == trace::RequestSource::kList ? request.named : request.finished) = it->second;
  }
}

}  // namespace teller::ingest::log
