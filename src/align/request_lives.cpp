#include "align/request_lives.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <unordered_map>

#include "align/request_ids.hpp"

namespace teller::align {

namespace {

using trace::kNoTime;
using trace::LogRecord;
using trace::Nanos;

constexpr Nanos kAfterEnd = 60 * base::kSecond;  // what still belongs to a task comes within moments
constexpr Nanos kSilence = 3600 * base::kSecond;

/// What is known of the present request of one number.
struct Life {
  uint32_t lines = 0;
  bool begun = false;
  bool ended = false;
  Nanos last = kNoTime;  ///< of its last line with a time
};

std::string Key(std::string_view scope, std::string_view id) {
  std::string key(scope);
  key += '\n';
  key += id;
  return key;
}

bool Begins(const LogRecord& record) {
  return record.message.find("processing task") != std::string::npos;
}

/// A line of the timings that a task states once, when it is done.
bool StatesTimings(const LogRecord& record) {
  return std::any_of(record.statistics.begin(), record.statistics.end(),
                     [](const auto& statistic) { return statistic.first == "prompt_eval_ms"; });
}

bool IsAnother(const Life& life, const LogRecord& record) {
  if (life.lines == 0) return false;
  if (life.ended && StatesTimings(record)) return true;
  if (Begins(record)) return life.begun || life.ended;
  if (record.at == kNoTime || life.last == kNoTime) return false;
  return base::Minus(record.at, life.last) > (life.ended ? kAfterEnd : kSilence);
}

}  // namespace

std::string RequestLives::Scope(std::string_view id, trace::FileRow file, const std::string& process) {
  if (!RequestIds::IsLocal(id)) return {};
  return std::to_string(file.value()) + "/" + process;
}

uint32_t RequestLives::LineOf(std::string_view ref) {
  constexpr std::string_view kFront = "line:";
  uint32_t line = 0;
  if (ref.starts_with(kFront)) std::from_chars(ref.data() + kFront.size(), ref.data() + ref.size(), line);
  return line;
}

RequestLives::RequestLives(const trace::Store& store) {
  std::set<std::pair<trace::FileRow, uint32_t>> ends;  // lines that complete the timings of a task
  for (const trace::RequestRecord& record : store.request_records) {
    if (record.source == trace::RequestSource::kLog && record.engine == "llama.cpp")
      ends.emplace(record.file, LineOf(record.ref));
  }
  std::unordered_map<std::string, Life> lives;
  for (const LogRecord& record : store.logs) {
    if (record.request.empty() || record.source != trace::LogSource::kLlamaCpp) continue;
    const std::string scope = Scope(record.request, record.file, record.process);
    if (scope.empty()) continue;
    const std::string key = Key(scope, record.request);
    Life& life = lives[key];
    if (IsAnother(life, record)) {
      begins_[key].push_back(record.line);
      life = {};
    }
    ++life.lines;
    life.begun = life.begun || Begins(record);
    life.ended = life.ended || ends.count({record.file, record.line}) > 0;
    if (record.at != kNoTime) life.last = record.at;
  }
}

uint32_t RequestLives::Of(std::string_view scope, std::string_view id, uint32_t line) const {
  if (scope.empty() || begins_.empty()) return 0;
  const auto found = begins_.find(Key(scope, id));
  if (found == begins_.end()) return 0;
  const auto& begins = found->second;
  return static_cast<uint32_t>(std::upper_bound(begins.begin(), begins.end(), line) - begins.begin());
}

}  // namespace teller::align
