#include "inject/sim/records.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace teller::inject::sim {

namespace {

using Json = nlohmann::ordered_json;

std::tm Calendar(Nanos at) {
  return fmt::gmtime(static_cast<std::time_t>(at / base::kSecond));
}

double Seconds(Nanos time) {
  return static_cast<double>(time) / 1e9;
}

Json Attribute(const char* key, const char* type, Json value) {
  return {{"key", key}, {"value", {{type, std::move(value)}}}};
}

}  // namespace

void LogFile::Delay(double late, base::Rng& rng) {
  if (late <= 0) return;
  for (Line& line : lines_) {
    if (rng.Unit() < late) line.at += static_cast<Nanos>(rng.Unit() * 300 * base::kMilli);
  }
}

std::string LogFile::Text() const {
  std::vector<const Line*> order;
  order.reserve(lines_.size());
  for (const Line& line : lines_) order.push_back(&line);
  std::stable_sort(order.begin(), order.end(), [](const Line* a, const Line* b) { return a->at < b->at; });
  std::string text;
  for (const Line* line : order) {
    text += line->text;
    text += '\n';
  }
  return text;
}

base::Status WriteFile(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  const bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file == nullptr || std::fclose(file) != 0 || !written)
    return base::Error{base::Code::kUnreadable, "cannot be written; is the disk full?", path};
  return {};
}

std::string StampVllm(Nanos at) {
  return fmt::format("{:%m-%d %H:%M:%S}", Calendar(at));
}
std::string StampSglang(Nanos at, bool fraction) {
  const std::string seconds = fmt::format("{:%Y-%m-%d %H:%M:%S}", Calendar(at));
  return fraction ? fmt::format("{}.{:03}", seconds, at / base::kMilli % 1000) : seconds;
}
std::string StampPython(Nanos at) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S},{:03}", Calendar(at), at / base::kMilli % 1000);
}
std::string StampKernel(Nanos at) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%S},{:06}+00:00", Calendar(at), at / base::kMicro % 1000000);
}
std::string StampTorch(Nanos at) {
  return fmt::format("{:%m%d %H:%M:%S}.{:09}", Calendar(at), at % base::kSecond);
}

std::string SpanLine(const Request& r, uint64_t seed, int pid) {
  base::Rng rng(seed);
  const auto hex = [&](int digits) {
    std::string text = fmt::format("{:016x}{:016x}", rng.Next(), rng.Next());
    return text.substr(0, digits);
  };
  const Nanos sent = r.tokens.back();
  Json attributes = Json::array(
      {Attribute("gen_ai.latency.time_to_first_token", "doubleValue", Seconds(r.tokens.front() - r.arrival)),
       Attribute("gen_ai.latency.e2e", "doubleValue", Seconds(sent - r.arrival)),
       Attribute("gen_ai.latency.time_in_queue", "doubleValue", Seconds(r.admitted - r.queued)),
       Attribute("gen_ai.usage.prompt_tokens", "intValue", std::to_string(r.prompt)),
       Attribute("gen_ai.usage.completion_tokens", "intValue", std::to_string(r.made)),
       Attribute("gen_ai.latency.time_in_model_prefill", "doubleValue", Seconds(r.first - r.admitted)),
       Attribute("gen_ai.latency.time_in_model_decode", "doubleValue", Seconds(r.finished - r.first)),
       Attribute("gen_ai.latency.time_in_model_inference", "doubleValue", Seconds(r.finished - r.admitted)),
       Attribute("gen_ai.request.id", "stringValue", "cmpl-" + r.id + "-0"),
       Attribute("gen_ai.request.max_tokens", "intValue", std::to_string(r.output))});
  Json span = {{"traceId", hex(32)},
               {"spanId", hex(16)},
               {"name", "llm_request"},
               {"kind", "SPAN_KIND_SERVER"},
               {"startTimeUnixNano", std::to_string(r.arrival)},
               {"endTimeUnixNano", std::to_string(sent)},
               {"attributes", std::move(attributes)},
               {"status", Json::object()},
               {"flags", 256}};
  Json resource = {{"attributes", Json::array({Attribute("telemetry.sdk.language", "stringValue", "python"),
                                               Attribute("service.name", "stringValue", "vllm"),
                                               Attribute("vllm.process_id", "stringValue", std::to_string(pid))})}};
  Json scope = {{"scope", {{"name", "vllm.tracing.otel"}}}, {"spans", Json::array({std::move(span)})}};
  Json line = {{"resourceSpans",
                Json::array({{{"resource", std::move(resource)}, {"scopeSpans", Json::array({std::move(scope)})}}})}};
  return line.dump() + "\n";
}

std::string FinishLine(const Request& r) {
  return fmt::format(
      "Finish: obj=GenerateReqInput(rid='{}', session_id=None, sampling_params={{'max_new_tokens': {}, 'ignore_eos': "
      "True, 'temperature': 0}}, "
      "return_logprob=False, stream=True, log_metrics=True), out={{'meta_info': {{'id': '{}', 'finish_reason': "
      "{{'type': 'length', 'length': {}}}, "
      "'prompt_tokens': {}, 'weight_version': 'default', 'num_retractions': {}, 'forward_entry_time': {:.7f}, "
      "'prefill_finished_time': {:.7f}, "
      "'queue_time': {:.7f}, 'completion_tokens': {}, 'cached_tokens': {}, 'dp_rank': None, 'e2e_latency': {:.7f}, "
      "'request_received_ts': {:.7f}, "
      "'first_token_latency': {:.7f}, 'api_server_dispatch_finish_ts': {:.7f}, 'response_sent_to_client_ts': {:.7f}, "
      "'request_finished_ts': {:.7f}}}}}",
      r.id, r.output, r.id, r.made, r.prompt, r.retractions, Seconds(r.admitted), Seconds(r.first),
      Seconds(r.admitted - r.queued), r.made, r.cached, Seconds(r.tokens.back() - r.arrival), Seconds(r.arrival),
      Seconds(r.tokens.front() - r.arrival), Seconds(r.queued), Seconds(r.tokens.front()), Seconds(r.tokens.back()));
}

std::string TruthLine(const Request& r) {
  const bool whole = r.finished > 0 && r.gone == 0 && !r.failed && !r.seen.empty();
  Json line = {{"request_id", r.id},
               {"t_send_ns", r.send},
               {"http_status", 200},
               {"usage", {{"prompt_tokens", r.prompt}, {"completion_tokens", r.seen.size()}}},
               {"t_first_token_ns", r.seen.empty() ? Json(nullptr) : Json(r.seen.front())},
               {"token_times_ns", r.seen},
               {"t_end_ns", whole ? Json(r.seen.back()) : Json(nullptr)}};
  if (r.failed) line["error"] = "the server ended the stream with an error";
  if (r.gone > 0) line["error"] = "the connection broke or no token came in time";
  return line.dump() + "\n";
}

std::string ScrapeText(Engine engine, const std::vector<Sample>& samples) {
  std::string text = fmt::format("# scrape {}\n", samples.front().at);
  for (const Sample& s : samples) {
    if (engine == Engine::kVllm) {
      const std::string labels = fmt::format("{{engine=\"{}\",model_name=\"model\"}}", s.replica);
      const auto add = [&](const char* name, double value) {
        text += fmt::format("vllm:{}{} {}\n", name, labels, value);
      };
      add("num_requests_running", static_cast<double>(s.running));
      add("num_requests_waiting", static_cast<double>(s.waiting));
      add("kv_cache_usage_perc", s.usage);
      add("prefix_cache_queries_total", static_cast<double>(s.asked));
      add("prefix_cache_hits_total", static_cast<double>(s.found));
      add("num_preemptions_total", static_cast<double>(s.retractions));
      add("prompt_tokens_total", static_cast<double>(s.prompt_tokens));
      add("generation_tokens_total", static_cast<double>(s.made_tokens));
      for (const auto& [reason, count] : {std::pair{"abort", s.aborted}, std::pair{"length", s.done}}) {
        text +=
            fmt::format("vllm:request_success_total{{engine=\"{}\",finished_reason=\"{}\",model_name=\"model\"}} {}\n",
                        s.replica, reason, count);
      }
      if (!s.speculates) continue;
      add("spec_decode_num_drafts_total", static_cast<double>(s.drafts.drafts));
      add("spec_decode_num_draft_tokens_total", static_cast<double>(s.drafts.proposed));
      add("spec_decode_num_accepted_tokens_total", static_cast<double>(s.drafts.accepted));
      continue;
    }
    const std::string labels = fmt::format(
        "{{engine_type=\"unified\",model_name=\"model\",pp_rank=\"0\",tp_rank=\"0\",dp_rank=\"{}\"}}", s.replica);
    const auto add = [&](const char* name, double value) {
      text += fmt::format("sglang:{}{} {}\n", name, labels, value);
    };
    add("num_running_reqs", static_cast<double>(s.running));
    add("num_queue_reqs", static_cast<double>(s.waiting));
    add("token_usage", s.usage);
    add("cache_hit_rate", s.asked == 0 ? 0.0 : static_cast<double>(s.found) / static_cast<double>(s.asked));
    add("prompt_tokens_total", static_cast<double>(s.prompt_tokens));
    add("generation_tokens_total", static_cast<double>(s.made_tokens));
    add("num_requests_total", static_cast<double>(s.done));
    add("num_aborted_requests_total", static_cast<double>(s.aborted));
    if (s.loading > 0 || s.transfers) add("num_decode_transfer_queue_reqs", static_cast<double>(s.loading));
    if (!s.speculates || s.drafts.drafts == 0) continue;
    add("spec_accept_length", 1 + static_cast<double>(s.drafts.accepted) / static_cast<double>(s.drafts.drafts));
    add("spec_accept_rate", static_cast<double>(s.drafts.accepted) / static_cast<double>(s.drafts.proposed));
  }
  return text;
}

}  // namespace teller::inject::sim
