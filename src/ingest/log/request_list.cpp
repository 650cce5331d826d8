#include "ingest/log/request_list.hpp"

#include <algorithm>
#include <functional>
#include <string_view>
#include <vector>

#include "ingest/log/cursor.hpp"
#include "ingest/log/request_id.hpp"

namespace teller::ingest::log {

using trace::LogRecord;
using trace::RequestRecord;

namespace {

constexpr std::string_view kNew = "NewRequestData(req_id=";            // vLLM: prefilled for the first time
constexpr std::string_view kRunning = "CachedRequestData(req_ids=[";   // vLLM: running already
constexpr std::string_view kRunningOne = "CachedRequestData(req_id=";  // the same, older: one object a request
constexpr std::string_view kBatch = "Req(rid=";                        // SGLang

/// True when `id`, a part of `message`, is the first field of an object that is printed as `head`.
bool Heads(std::string_view message, std::string_view id, std::string_view head) {
  std::string_view before = message.substr(0, static_cast<size_t>(id.data() - message.data()));
  if (!before.empty() && (before.back() == '\'' || before.back() == '"')) before.remove_suffix(1);
  return EndsWith(before, head);
}

/// The number behind `key`; -1 when there is none.
int64_t NumberOf(std::string_view text, std::string_view key) {
  const size_t at = text.find(key);
  int64_t value = -1;
  if (at == std::string_view::npos || !Cursor(text.substr(at + key.size())).Number(1, 12, value)) return -1;
  return value;
}

/// The numbers of "[1, 2, 3]" behind `key`; empty when the list is not there, not closed, or holds something else.
std::vector<int64_t> NumbersOf(std::string_view text, std::string_view key) {
  const size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  Cursor c(text.substr(at + key.size()));
  std::vector<int64_t> numbers;
  if (!c.Eat('[')) return {};
  while (!c.Eat(']')) {
    int64_t value = 0;
    if (!c.Number(1, 12, value)) return {};
    numbers.push_back(value);
    if (!c.Eat(',') && c.peek() != ']') return {};
    c.SkipSpaces();
  }
  return numbers;
}

/// What is written of one request, from its id on up to the next one's.
void ReadObject(std::string_view message, std::string_view id, std::string_view object, RequestRecord& out) {
  const bool fresh = Heads(message, id, kNew);
  if (!fresh && !Heads(message, id, kRunningOne) && !Heads(message, id, kBatch)) return;
  out.in_flight = true;
  for (const std::string_view key : {"prompt_token_ids_len=", "prefill_token_ids_len="}) {
    if (out.prompt_tokens < 0) out.prompt_tokens = NumberOf(object, key);
  }
  for (const std::string_view key : {"prompt_token_ids=", "input_ids="}) {
    if (out.prompt_tokens > 0) break;
    if (const auto tokens = NumbersOf(object, key); !tokens.empty())
      out.prompt_tokens = static_cast<int64_t>(tokens.size());
  }
  out.computed_tokens = NumberOf(object, "num_computed_tokens=");
}

/// vLLM's running requests: a list of ids, and lists of numbers in the same order.
struct Running {
  explicit Running(std::string_view message) {
    const size_t at = message.find(kRunning);
    if (at == std::string_view::npos) return;
    begin = message.data() + at;
    end = message.data() + std::min(message.find(']', at), message.size());
    computed = NumbersOf(message.substr(at), "num_computed_tokens=");
  }
  bool Has(std::string_view id) const {
    const std::less<const char*> before;
    return begin != nullptr && before(begin, id.data()) && before(id.data(), end);
  }

  const char* begin = nullptr;
  const char* end = nullptr;
  std::vector<int64_t> computed;
};

}  // namespace

void RequestLists::Add(const LogRecord& record) {
  if (!record.request.empty() || record.source == trace::LogSource::kLlamaCpp) return;
  const std::string_view message = record.message;
  const std::vector<NamedId> ids = NamedIds(record.source, message);
  const Running running(message);
  size_t place = 0;  // among the running ones
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::string_view id = ids[i].id;
    RequestRecord out;
    out.file = file_;
    out.source = trace::RequestSource::kList;
    out.ref = "line:" + std::to_string(record.line);
    out.id = std::string(id);
    out.process = record.process;
    if (record.source == trace::LogSource::kVllm) out.engine = "vllm";
    if (record.source == trace::LogSource::kSglang) out.engine = "sglang";
    const auto from = static_cast<size_t>(id.data() - message.data());
    const size_t to = i + 1 < ids.size() ? static_cast<size_t>(ids[i + 1].id.data() - message.data()) : message.size();
    if (running.Has(id)) {
      out.in_flight = true;
      if (place < running.computed.size()) out.computed_tokens = running.computed[place];
      ++place;
    } else {
      ReadObject(message, id, message.substr(from, to - from), out);
    }
    const auto [row, is_new] = rows_.try_emplace(record.process + '\n' + out.id, store_.request_records.size());
    if (is_new) {
      store_.request_records.push_back(std::move(out));
    } else {
      RequestRecord& known = store_.request_records[row->second];
      if (out.prompt_tokens < 0) out.prompt_tokens = known.prompt_tokens;
      known = std::move(out);
    }
  }
}

}  // namespace teller::ingest::log
