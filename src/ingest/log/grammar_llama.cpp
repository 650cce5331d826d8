// Lines of llama.cpp's server in the layouts that it has had.
#include <array>

#include "base/nanos.hpp"
#include "ingest/log/grammar.hpp"

namespace teller::ingest::log {

using trace::LogLevel;
using trace::LogSource;

namespace {

/// Number behind " key=" in the fields at the end of a line; empty when it is not there.
std::string_view FieldNumber(std::string_view fields, std::string_view key) {
  const size_t at = fields.find(key);
  if (at == std::string_view::npos) return {};
  Cursor c(fields.substr(at + key.size()));
  int64_t value = 0;
  if (!c.Number(1, 12, value)) return {};
  return fields.substr(at + key.size(), c.at());
}

/// "INFO [           print_timings] text | tid="1399" timestamp=1723569622 id_slot=0 id_task=0" (2024).
bool ParseBoxed(std::string_view line, ParsedLine& out) {
  Cursor c(line);
  c.SkipSpaces();
  const LogLevel level = LevelFromWord(c.Word(""));
  if (level == LogLevel::kUnknown || !c.Eat(" [")) return false;
  c.SkipSpaces();
  const std::string_view function = c.Word("_~():<>.");
  if (function.empty() || !c.Eat("] ")) return false;
  const std::string_view rest = c.rest();
  const size_t mark = rest.rfind(" | tid=\"");
  if (mark == std::string_view::npos) return false;
  const std::string_view fields = rest.substr(mark + 3);
  int64_t seconds = 0;
  Cursor time(FieldNumber(fields, " timestamp="));
  if (time.Number(9, 10, seconds))
    out.stamp = {.present = true, .at = seconds * base::kSecond, .error = base::kSecond / 2};
  for (const std::string_view key : {" id_task=", " task_id="}) {
    const std::string_view task = FieldNumber(fields, key);
    if (out.request.empty() && !task.empty()) out.request = "task " + std::string(task);
  }
  out.level = level;
  out.logger = function;
  out.message = TrimRight(TrimLeft(rest.substr(0, mark)));
  return true;
}

}  // namespace

bool LooksLikeLlama(std::string_view line) {
  static constexpr std::array<std::string_view, 30> kHeads = {
      "slot ",           "srv  ",        "que  ",           "cmn  ",          "res  ",
      "llama_",          "ggml_",        "llm_load_",       "load_tensors",   "load_backend",
      "print_info: ",    "common_",      "clip_",           "main: ",         "prompt eval time ",
      "system_info: ",   "build: ",      "sched_reserve: ", "set_adapters_",  "~llama_context",
      "print_timings: ", "build_info: ", "load_model: ",    "update_slots: ", "launch_slot_",
      "gguf_",           "llm_graph",    "graph_reserve: ", "set_sampler",    "create_tensor: "};
  for (const auto head : kHeads) {
    if (StartsWith(line, head)) return true;
  }
  return false;
}

bool LooksLikeFunctionLine(std::string_view line) {
  Cursor c(line);
  c.Eat('~');
  const std::string_view name = c.Word("_");
  if (name.size() < 3 || name.size() > 40 || !c.Eat(": ")) return false;
  for (const char ch : name) {
    if (IsUpper(ch)) return false;
  }
  return IsLower(name.front());
}

bool ParseLlama(std::string_view line, ParsedLine& out) {
  if (ParseBoxed(line, out)) {
    out.header = true;
    out.source = LogSource::kLlamaCpp;
    out.process = "llama-server";
    return true;
  }
  out = {};
  Cursor c(line);
  if (ReadMinuteDots(c, out.stamp) && c.Eat(' ')) {
    out.level = LevelFromLetter(c.peek());
    if (out.level == LogLevel::kUnknown || c.peek(1) != ' ') return false;
    c.Eat(c.peek());
    c.Eat(' ');
    out.message = c.rest();
  } else if (LooksLikeLlama(line)) {
    out.message = line;
  } else if ((c.Move(0), LevelFromLetter(c.peek()) != LogLevel::kUnknown) && c.peek(1) == ' ' &&
             LooksLikeLlama(line.substr(2))) {
    // A prefix without the time: "I slot release: ...".
    out.level = LevelFromLetter(c.peek());
    out.message = line.substr(2);
  } else {
    return false;
  }
  // "slot print_timing: id ..." -> logger "slot print_timing"
  const size_t colon = out.message.substr(0, 48).find(": ");
  if (colon != std::string_view::npos) out.logger = out.message.substr(0, colon);
  out.header = true;
  out.source = LogSource::kLlamaCpp;
  out.process = "llama-server";
  return true;
}

}  // namespace teller::ingest::log
