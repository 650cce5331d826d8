#include "inject/rewrite.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <unordered_map>

#include "base/byte_source.hpp"
#include "ingest/common/decimal.hpp"

namespace teller::inject {

namespace {

using base::Nanos;
using trace::SpanRow;
namespace ondemand = simdjson::ondemand;

constexpr size_t kMostText = 4'000'000'000;  // of simdjson
constexpr size_t kPiece = 1u << 20;

base::Result<simdjson::padded_string> ReadAll(const std::string& path) {
  auto source = base::OpenFile(path);
  if (!source) return source.error();
  std::string text;
  while (true) {
    const size_t before = text.size();
    if (before > kMostText) return base::Error{base::Code::kUnsupported, "is too large to be written again", path};
    text.resize(before + kPiece * 4);
    const auto n = (*source)->Read(text.data() + before, kPiece * 4);
    if (!n) return n.error();
    text.resize(before + *n);
    if (*n == 0) break;
  }
  return simdjson::padded_string(text);
}

/// Microseconds with three decimals, as Kineto writes them.
std::string Micros(Nanos ns) {
  const uint64_t size = ns < 0 ? 0 - static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  return fmt::format("{}{}.{:03}", ns < 0 ? "-" : "", size / 1000, size % 1000);
}

/// The parts of an event that matter here, as they stand in the text.
struct Event {
  std::string_view ts;
  std::string_view dur;
  std::string name;
  bool has_name = false;
};

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n' || text.back() == '\r' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

class Rewriter {
 public:
  Rewriter(const engine::Run& run, const retime::TimeMap& map, const retime::Times& times, trace::FileRow file,
           const std::function<base::Status(std::string_view)>& write)
      : run_(run), map_(map), times_(times), write_(write) {
    const trace::Store& store = run.store;
    for (uint32_t p = 0; p < store.processes.size(); ++p) {
      if (store.processes[p].file != file) continue;
      if (!thread_) thread_ = map.BusiestThread(trace::ProcessRow(p), INT64_MIN / 2, INT64_MAX / 2);
      if (p < run.trees.clocks.size() && run.trees.clocks[p].corrected) clock_ = &run.trees.clocks[p];
    }
    for (uint32_t row = 0; row < store.spans.size(); ++row) {
      if (store.process_of(row).file == file) rows_[Key(store.spans.begin[row], store.spans.duration[row], store.spans.name[row])].push_back(row);
    }
  }

  base::Result<RewriteCounts> Run(const simdjson::padded_string& text, const std::string& path) {
    text_ = std::string_view(text.data(), text.size());
    ondemand::parser parser;
    ondemand::document document;
    const base::Error broken{base::Code::kBadFormat, "is no whole Chrome trace", path};
    if (parser.iterate(text).get(document) != simdjson::SUCCESS) return broken;
    base_ = BaseOf(text);
    ondemand::array events;
    ondemand::json_type type{};
    if (document.type().get(type) != simdjson::SUCCESS) return broken;
    const auto error = type == ondemand::json_type::array ? document.get_array().get(events)
                                                           : document.find_field_unordered("traceEvents").get_array().get(events);
    if (error != simdjson::SUCCESS) return broken;
    for (auto element : events) {
      ondemand::object object;
      if (element.get_object().get(object) != simdjson::SUCCESS) return broken;
      Event event;
      if (!Read(object, event)) return broken;
      TELLER_TRY(Move(event));
    }
    TELLER_TRY(Put(text_.substr(done_)));
    TELLER_TRY(Flush());
    return counts_;
  }

 private:
  static uint64_t Key(Nanos begin, Nanos duration, base::StringId name) {
    uint64_t hash = static_cast<uint64_t>(begin) * 0x9E3779B97F4A7C15ULL;
    hash ^= (static_cast<uint64_t>(duration) + 0x7F4A7C15ULL) * 0xBF58476D1CE4E5B9ULL;
    return (hash ^ (hash >> 29)) * 0x94D049BB133111EBULL + name.value();
  }

  /// What is added to the times of the file.
  Nanos BaseOf(const simdjson::padded_string& text) {
    ondemand::parser parser;
    ondemand::document document;
    int64_t base = 0;
    if (parser.iterate(text).get(document) != simdjson::SUCCESS) return 0;
    ondemand::json_type type{};
    if (document.type().get(type) != simdjson::SUCCESS || type != ondemand::json_type::object) return 0;
    if (document.find_field_unordered("baseTimeNanoseconds").get_int64().get(base) != simdjson::SUCCESS) return 0;
    return base;
  }

  static bool Read(ondemand::object& object, Event& event) {
    for (auto field : object) {
      std::string_view key;
      if (field.unescaped_key().get(key) != simdjson::SUCCESS) return false;
      ondemand::value value;
      if (field.value().get(value) != simdjson::SUCCESS) return false;
      if (key == "ts") {
        event.ts = Trimmed(value.raw_json_token());
      } else if (key == "dur") {
        event.dur = Trimmed(value.raw_json_token());
      } else if (key == "name") {
        std::string_view name;
        event.has_name = value.get_string().get(name) == simdjson::SUCCESS;
        event.name = name;
      }
    }
    return true;
  }

  base::Status Move(const Event& event) {
    Nanos at = 0;
    if (event.ts.empty() || ingest::ParseMicros(event.ts, at) != ingest::NumberFault::kNone) return {};
    Nanos length = 0;
    const bool has_length = !event.dur.empty() && ingest::ParseMicros(event.dur, length) == ingest::NumberFault::kNone;
    // A file without an epoch of its own counts from zero in the store too.
    for (const Nanos base : {base_, Nanos{0}}) {
      if (!has_length || !event.has_name) break;
      const Nanos recorded = OnRunClock(at + base);
      const SpanRow row = TakeRow(recorded, length, event.name);
      if (!row.valid()) continue;
      if (times_.at[retime::BeginOf(row)] == base::kNoTime) break;  // no lane holds it: moved along
      ++counts_.moved;
      const Nanos begin = times_.begin(row);
      return Replace({{event.ts, at + (begin - recorded)}, {event.dur, times_.end(row) - begin}});
    }
    ++counts_.carried;
    const Nanos recorded = OnRunClock(at + base_);
    const Nanos moved = Along(recorded) - recorded;
    if (!has_length) return Replace({{event.ts, at + moved}});
    return Replace({{event.ts, at + moved}, {event.dur, std::max<Nanos>(0, Along(recorded + length) - recorded - moved)}});
  }

  Nanos OnRunClock(Nanos raw) const { return clock_ == nullptr ? raw : clock_->ToReference(raw); }
  Nanos Along(Nanos recorded) const { return thread_ ? map_.NewTime(*thread_, recorded) : recorded; }

  SpanRow TakeRow(Nanos begin, Nanos length, const std::string& name) {
    const base::StringId id = run_.store.strings.Find(name);
    if (!id.valid()) return {};
    const auto found = rows_.find(Key(begin, length, id));
    if (found == rows_.end() || found->second.empty()) return {};
    const SpanRow row(found->second.back());
    found->second.pop_back();
    return row;
  }

  /// Numbers of one event that are to stand there instead. Fields come in any order.
  base::Status Replace(std::vector<std::pair<std::string_view, Nanos>> numbers) {
    std::sort(numbers.begin(), numbers.end(), [](const auto& a, const auto& b) { return a.first.data() < b.first.data(); });
    for (const auto& [old, fresh] : numbers) {
      const auto at = static_cast<size_t>(old.data() - text_.data());
      TELLER_TRY(Put(text_.substr(done_, at - done_)));
      TELLER_TRY(Put(Micros(fresh)));
      done_ = at + old.size();
    }
    return {};
  }

  base::Status Put(std::string_view piece) {
    out_ += piece;
    return out_.size() < kPiece ? base::Status() : Flush();
  }
  base::Status Flush() {
    const base::Status status = write_(out_);
    out_.clear();
    return status;
  }

  const engine::Run& run_;
  const retime::TimeMap& map_;
  const retime::Times& times_;
  const std::function<base::Status(std::string_view)>& write_;
  std::optional<uint32_t> thread_;  ///< lane that times without a span of their own go along with
  const trace::ProcessClock* clock_ = nullptr;
  std::unordered_map<uint64_t, std::vector<uint32_t>> rows_;
  std::string_view text_;
  Nanos base_ = 0;
  size_t done_ = 0;  ///< of text_, written
  std::string out_;
  RewriteCounts counts_;
};

}  // namespace

base::Result<RewriteCounts> RewriteTrace(const engine::Run& run, const retime::TimeMap& map, const retime::Times& times,
                                         trace::FileRow file, const std::string& path,
                                         const std::function<base::Status(std::string_view)>& write) {
  const auto text = ReadAll(path);
  if (!text) return text.error();
  return Rewriter(run, map, times, file, write).Run(*text, path);
}

}  // namespace teller::inject
