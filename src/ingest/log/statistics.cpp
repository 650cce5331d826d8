#include "ingest/log/statistics.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>

#include "ingest/log/cursor.hpp"

namespace teller::ingest::log {

namespace {

constexpr size_t kMaxPairs = 48;  // more than any engine writes

struct Alias {
  std::string_view written;
  std::string_view key;
};

constexpr std::array kAliases = {
    Alias{"avg_prompt_throughput", "prompt_throughput"},
    Alias{"input_throughput_token_s", "prompt_throughput"},
    Alias{"avg_generation_throughput", "generation_throughput"},
    Alias{"gen_throughput_token_s", "generation_throughput"},
    Alias{"running_req", "running"},
    Alias{"num_running_reqs", "running"},
    Alias{"queue_req", "waiting"},
    Alias{"pending", "waiting"},
    Alias{"num_waiting_reqs", "waiting"},
    Alias{"gpu_kv_cache_usage", "kv_usage"},
    Alias{"kv_cache_usage", "kv_usage"},
    Alias{"token_usage", "kv_usage"},
    Alias{"full_token_usage", "kv_usage"},
    Alias{"kv_cache_util", "kv_usage"},
    Alias{"prefix_cache_hit_rate", "prefix_hit_rate"},
    Alias{"new_seq", "new_sequences"},
    Alias{"new_token", "new_tokens"},
    Alias{"cached_token", "cached_tokens"},
    Alias{"token", "running_tokens"},
    Alias{"full_token", "running_tokens"},
    Alias{"pending_token", "pending_tokens"},
    Alias{"iteration_elapsed_time", "iteration_ms"},
    Alias{"cuda_graph", "graph"},
    Alias{"cpu_graph", "graph"},
    Alias{"npu_graph", "graph"},
    Alias{"accept_len", "accept_length"},
    Alias{"mean_acceptance_length", "accept_length"},
    Alias{"avg_draft_acceptance_rate", "accept_rate"},
    Alias{"retracted_reqs", "retracted"},
    Alias{"retracted_req", "retracted"},
    Alias{"host_step_time", "iteration_ms"},
    Alias{"elapsed_time", "iteration_ms"},
    Alias{"prev_device_step_time", "device_ms"},
    Alias{"num_scheduled_requests", "running"},
    Alias{"num_ctx_requests", "context_requests"},
    Alias{"num_ctx_tokens", "context_tokens"},
    Alias{"num_generation_tokens", "generation_tokens"},
    Alias{"pending_reqs", "waiting"},
    Alias{"iter", "iteration"},
};

std::string SnakeCase(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (IsAlnum(c)) {
      out.push_back(IsUpper(c) ? static_cast<char>(c + 32) : c);
    } else if (!out.empty() && out.back() != '_') {
      out.push_back('_');
    }
  }
  while (!out.empty() && out.back() == '_') out.pop_back();
  return out;
}

/// A number at the front of `text`, with thousands separators; the rest stays in `text`.
std::optional<double> TakeNumber(std::string_view& text) {
  std::array<char, 40> digits = {};
  size_t n = 0;
  size_t i = 0;
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) digits[n++] = text[i++];
  if (i >= text.size() || !IsDigit(text[i])) return std::nullopt;
  while (i < text.size() && n + 1 < digits.size()) {
    const char c = text[i];
    const bool separator =
        c == ',' && i + 3 < text.size() && IsDigit(text[i + 1]) && IsDigit(text[i + 2]) && IsDigit(text[i + 3]);
    if (!IsDigit(c) && c != '.' && !separator) break;
    if (!separator) digits[n++] = c;
    ++i;
  }
  if (i + 1 < text.size() && (text[i] == 'e' || text[i] == 'E') &&
      (IsDigit(text[i + 1]) || text[i + 1] == '-' || text[i + 1] == '+')) {
    digits[n++] = 'e';
    ++i;
    while (i < text.size() && n + 1 < digits.size() && (IsDigit(text[i]) || text[i] == '-' || text[i] == '+'))
      digits[n++] = text[i++];
  }
  text.remove_prefix(i);
  return std::strtod(digits.data(), nullptr);
}

void Put(Statistics& out, std::string key, double value) {
  for (const auto& alias : kAliases) {
    if (alias.written == key) {
      key = alias.key;
      break;
    }
  }
  const bool known = std::any_of(out.begin(), out.end(), [&](const auto& pair) { return pair.first == key; });
  if (!known && !key.empty() && out.size() < kMaxPairs) out.emplace_back(std::move(key), value);
}

void PutWithUnit(Statistics& out, std::string_view key, double value, std::string_view unit) {
  unit = TrimLeft(unit);
  std::string name = SnakeCase(key);
  if (StartsWith(unit, "%")) value /= 100;
  if ((name == "iteration_elapsed_time" || name == "elapsed_time") && StartsWith(unit, "s")) value *= 1000;
  if (name == "timestamp" || (!unit.empty() && unit.front() == '-' && unit.size() > 1 && IsDigit(unit[1])))
    return;  // a date
  if (StartsWith(unit, "us") && EndsWith(name, "time")) value /= 1000;
  Put(out, std::move(name), value);
}

/// "Key: 12.5 unit", "key = 12", "#key: True", "12 context tokens".
void ReadField(std::string_view field, Statistics& out) {
  field = Trim(field);
  if (field.empty()) return;
  std::string_view probe = field;
  if (const auto leading = TakeNumber(probe)) {
    const std::string_view key = Trim(probe);
    if (!key.empty() && key.front() != '%' && !Contains(key, ":") && !Contains(key, "="))
      Put(out, SnakeCase(key), *leading);
    return;
  }
  size_t mark = field.rfind(": ");
  size_t width = 2;
  if (mark == std::string_view::npos) {
    mark = field.find(" = ");
    width = 3;
  }
  if (mark == std::string_view::npos) {
    mark = field.find('=');
    width = 1;
  }
  if (mark == std::string_view::npos) return;
  std::string_view key = field.substr(0, mark);
  std::string_view value = TrimLeft(field.substr(mark + width));
  if (const size_t inner = key.rfind("{"); inner != std::string_view::npos) key = key.substr(inner + 1);
  // "SpecDecoding metrics: Mean acceptance length: 2.31", "Decode out of memory happened. #retracted_reqs: 1"
  if (const size_t head = key.rfind(": "); head != std::string_view::npos) key = key.substr(head + 2);
  if (const size_t hash = key.rfind('#'); hash != std::string_view::npos) key = key.substr(hash);
  if (StartsWith(value, "True")) return Put(out, SnakeCase(key), 1);
  if (StartsWith(value, "False")) return Put(out, SnakeCase(key), 0);
  if (const auto number = TakeNumber(value)) PutWithUnit(out, key, *number, value);
}

void ReadList(std::string_view list, Statistics& out) {
  while (!list.empty() && out.size() < kMaxPairs) {
    size_t end = 0;
    while (end < list.size() && !(list[end] == ',' && (end + 1 == list.size() || list[end + 1] == ' ')) &&
           list[end] != ';')
      ++end;
    ReadField(list.substr(0, end), out);
    if (end >= list.size()) return;
    list.remove_prefix(end + 1);
  }
}

/// "prompt eval time = 467.98 ms / 36 tokens (13.00 ms per token, 76.93 tokens per second)", once or three times; older
/// releases align the "=" and say "generation eval time" and "runs".
void ReadLlamaTimings(std::string_view text, Statistics& out) {
  const auto read = [&](std::string_view rest, const std::string& key) {
    rest = TrimLeft(rest);
    if (rest.empty() || rest.front() != '=') return;
    rest = TrimLeft(rest.substr(1));
    const auto ms = TakeNumber(rest);
    if (!ms || !StartsWith(rest, " ms")) return;
    Put(out, key + "_ms", *ms);
    const size_t slash = rest.substr(0, 8).find("/ ");
    if (slash == std::string_view::npos) return;
    rest = TrimLeft(rest.substr(slash + 2));
    if (const auto tokens = TakeNumber(rest)) Put(out, key + "_tokens", *tokens);
    const size_t comma = rest.substr(0, 60).find(',');
    if (comma == std::string_view::npos) return;
    rest = TrimLeft(rest.substr(comma + 1));
    if (const auto rate = TakeNumber(rest)) Put(out, key + "_tokens_per_s", *rate);
  };
  constexpr std::string_view kEval = "eval time";
  constexpr std::string_view kTotal = "total time";
  for (size_t at = text.find(kEval); at != std::string_view::npos; at = text.find(kEval, at + 1)) {
    const bool prompt = at >= 7 && text.substr(at - 7, 7) == "prompt ";
    read(text.substr(at + kEval.size()), prompt ? "prompt_eval" : "eval");
  }
  const size_t total = text.find(kTotal);
  if (total != std::string_view::npos) read(text.substr(total + kTotal.size()), "total");
}

bool IsStatistics(std::string_view m) {
  static constexpr std::array<std::string_view, 12> kMarks = {
      " throughput:",        "Iteration(",       " metrics: ", "throughput (token/s)",
      "KV cache size:",      "KV cache memory:", "#retracted", "host_step_time",
      "Maximum concurrency", "KV cache usage",   "hit rate:",  "cumulative_preemption"};
  for (const auto mark : kMarks) {
    if (Contains(m, mark)) return true;
  }
  return StartsWith(m, "iter = ") || StartsWith(m, "Prefill batch") || StartsWith(m, "Decode batch") ||
         StartsWith(m, "Dumping scheduler stats");
}

}  // namespace

Statistics ParseStatistics(std::string_view message) {
  Statistics out;
  if (Contains(message, "eval time") || Contains(message, "total time")) {
    ReadLlamaTimings(message, out);
    if (!out.empty()) return out;
  }
  if (!IsStatistics(message)) return out;
  std::string_view list = message;
  Cursor c(list);
  int64_t number = 0;
  if (c.Eat("Engine ") && c.Number(1, 6, number) && c.Eat(": ")) {
    Put(out, "engine", static_cast<double>(number));
    list = c.rest();
  }
  c = Cursor(list);
  if (c.Eat("Iteration(") && c.Number(1, 15, number) && c.Eat("): ")) {
    Put(out, "iteration", static_cast<double>(number));
    list = c.rest();
  }
  c = Cursor(list);
  if (c.Eat("Prefill batch") || c.Eat("Decode batch")) {
    if (c.Eat(" [") && c.Number(1, 15, number) && c.Eat(']')) Put(out, "iteration", static_cast<double>(number));
    if (!c.Eat(',')) c.Eat('.');
    list = c.rest();
  }
  const size_t stats = list.find("Stats(");
  if (stats != std::string_view::npos && StartsWith(list, "Dumping")) list = list.substr(stats + 6);
  const size_t pool = list.find(" is full. ");
  if (pool != std::string_view::npos) {
    const size_t hash = list.find('#', pool);
    if (hash != std::string_view::npos) list = list.substr(hash);
  }
  ReadList(list, out);
  // vLLM on CPU calls its only cache "CPU KV cache"; V0 used that name for the swap space beside the GPU's.
  const bool usage = std::any_of(out.begin(), out.end(), [](const auto& pair) { return pair.first == "kv_usage"; });
  for (auto& pair : out) {
    if (!usage && pair.first == "cpu_kv_cache_usage") pair.first = "kv_usage";
  }
  return out;
}

int HttpStatus(std::string_view message) {
  const size_t mark = message.rfind("HTTP/");
  if (mark == std::string_view::npos) return 0;
  Cursor c(message.substr(mark + 5));
  c.Word(".");
  int64_t status = 0;
  if (!c.Eat("\" ") || !c.Number(3, 3, status)) return 0;
  return static_cast<int>(status);
}

}  // namespace teller::ingest::log
