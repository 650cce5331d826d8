#include <algorithm>
#include <array>

#include "ingest/log/grammar.hpp"
#include "ingest/log/json_fields.hpp"
#include "ingest/log/request_id.hpp"

namespace teller::ingest::log {

using trace::LogSource;

namespace {

LogSource SourceOf(const JsonFields& fields) {
  if (StartsWith(fields.target, "text_generation")) return LogSource::kTgi;
  if (!fields.function.empty() && fields.unix_seconds) return LogSource::kLlamaCpp;
  if (fields.ray) return LogSource::kRay;
  if (StartsWith(fields.logger, "vllm.")) return LogSource::kVllm;
  if (StartsWith(fields.logger, "sglang.") || StartsWith(fields.target, "sglang_router") ||
      StartsWith(fields.target, "smg")) {
    return LogSource::kSglang;
  }
  return LogSource::kPythonLogging;
}

/// A line of an engine's own that a logger of JSON repeats as its message.
void ReadInner(const JsonFields& fields, ParsedLine& out) {
  static constexpr std::array kOwn = {LogSource::kVllm,     LogSource::kSglang,   LogSource::kNccl,
                                      LogSource::kTorchC10, LogSource::kGlog,     LogSource::kTensorRtLlm,
                                      LogSource::kTriton,   LogSource::kLlamaCpp, LogSource::kUvicorn};
  const std::string_view text = *out.storage;
  const std::string_view first = text.substr(0, std::min(text.find('\n'), fields.message.size()));
  Origin origin;
  std::string_view line = first;
  PeelPrefixes(line, origin);
  if (line.empty() || line.front() == '{') return;  // no JSON inside JSON
  const ParsedLine inner = ParseLine(line, origin);
  if (!inner.header || std::find(kOwn.begin(), kOwn.end(), inner.source) == kOwn.end()) return;
  out.source = inner.source;
  if (inner.level != trace::LogLevel::kUnknown) out.level = inner.level;
  out.process = origin.process.empty() ? inner.process : origin.process;
  out.logger = inner.logger;
  // Views of `inner` point into the storage, so that more lines of the message stay behind the first.
  const auto begin = static_cast<size_t>(inner.message.data() - text.data());
  if (inner.message.data() >= text.data() && begin <= text.size())
    out.message = text.substr(begin, out.message.size() - begin);
  if (!out.stamp.present) out.stamp = inner.stamp;
  if (!out.pid) out.pid = origin.pid ? origin.pid : inner.pid;
  if (!out.rank) out.rank = inner.rank ? inner.rank : origin.rank;
}

}  // namespace

bool ParseJson(std::string_view line, ParsedLine& out) {
  if (line.size() < 8 || line.front() != '{') return false;
  JsonFields fields;
  const bool whole = line.back() == '}' && ReadJsonFields(line, fields);
  if (!whole && !(fields = {}, StartsWith(line, "{\"timestamp\":") && ReadCutJson(line, fields))) return false;
  while (!fields.message.empty() && (fields.message.back() == '\n' || fields.message.back() == '\r'))
    fields.message.pop_back();
  if (fields.message.empty()) return false;

  if (SourceOf(fields) == LogSource::kLlamaCpp) fields.logger = fields.function;
  std::string text = fields.message;
  if (!fields.exception.empty()) text += '\n' + fields.exception;
  const size_t message = text.size();
  text += fields.logger;
  out.storage = std::make_shared<const std::string>(std::move(text));
  const std::string_view kept = *out.storage;
  out.header = true;
  out.message = kept.substr(0, message);
  out.logger = kept.substr(message);
  out.stamp = fields.stamp;
  out.level = fields.level;
  out.source = SourceOf(fields);
  out.pid = fields.pid;
  out.rank = fields.rank;
  out.statistics = std::move(fields.statistics);
  out.request = RequestId(out.source, line);
  if (out.source == LogSource::kLlamaCpp) {
    out.process = "llama-server";
    if (!fields.task.empty()) out.request = "task " + fields.task;
  } else if (out.source == LogSource::kTgi) {
    out.process = StartsWith(fields.target, "text_generation_launcher") ? "launcher" : "router";
  } else if (out.source == LogSource::kPythonLogging) {
    ReadInner(fields, out);
  }
  return true;
}

}  // namespace teller::ingest::log
