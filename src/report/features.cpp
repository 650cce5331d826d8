#include "report/features.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <vector>

#include "report/diagnosis_json.hpp"
#include "report/printable.hpp"
#include "report/summary.hpp"
#include "report/version.hpp"

namespace teller::report {

using Json = nlohmann::ordered_json;
using base::Nanos;

namespace {

/// Names with the largest self time of a step that are written; the rest is summed up.
constexpr size_t kMostNames = 200;
constexpr size_t kMaxNameBytes = 400;
constexpr size_t kMaxMessageBytes = 600;
constexpr uint32_t kNoStep = UINT32_MAX;

/// All calls of one name and kind in one step.
struct Calls {
  uint64_t count = 0;
  Nanos total = 0;
  Nanos self = 0;
  Nanos longest = 0;
  Nanos first = INT64_MAX;
};

class Writer {
 public:
  Writer(const engine::Run& run, const std::function<base::Status(std::string_view)>& write)
      : run_(run), store_(run.store), write_(write) {}

  base::Status Write(bool steps_only) {
    TELLER_TRY(WriteRun());
    TELLER_TRY(WriteSteps());
    if (steps_only) return {};
    TELLER_TRY(WriteOps());
    TELLER_TRY(WriteCollectives());
    return WriteLogs();
  }

 private:
  base::Status Line(const Json& value) {
    return write_(value.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n");
  }

  static Json Rank(const std::optional<int>& rank) { return rank ? Json(*rank) : Json(nullptr); }

  base::Status WriteRun() {
    Json files = Json::array();
    for (const trace::File& file : store_.files) {
      files.push_back(
          {{"path", file.path}, {"kind", file.kind}, {"bytes", file.bytes}, {"records", file.records_read}});
    }
    const Summary summary = Summarize(run_);
    return Line({{"type", "run"},
                 {"schema", "teller.features/1"},
                 {"teller", kVersion},
                 {"ranks", summary.ranks},
                 {"files", std::move(files)},
                 {"begin_ns", JsonTime(summary.begin)},
                 {"end_ns", JsonTime(summary.end)},
                 {"steps", run_.trees.steps.size()}});
  }

  base::Status WriteSteps() {
    for (size_t i = 0; i < run_.trees.steps.size(); ++i) {
      const trace::Step& s = run_.trees.steps[i];
      TELLER_TRY(
          Line({{"type", "step"},
                {"step", i},
                {"process", ProcessLabel(store_, s.process)},
                {"rank", Rank(s.rank)},
                {"index", s.index},
                {"name", Shortened(s.name, kMaxNameBytes)},
                {"kind", Name(s.kind)},
                {"begin_ns", JsonTime(s.begin)},
                {"end_ns", JsonTime(s.end)},
                {"gap_ns", s.gap_before},
                {"batch", s.batch},
                {"new_tokens", s.new_tokens},
                {"context_tokens", s.context_tokens},
                {"shape", s.shape.valid() ? Json(Shortened(store_.text(s.shape), kMaxNameBytes)) : Json(nullptr)},
                {"work", s.work},
                {"observer", s.observer}}));
    }
    return {};
  }

  /// The step of each span: that of its process in which it begins.
  uint32_t StepOf(trace::ProcessRow process, Nanos at) {
    const std::vector<uint32_t>& mine = steps_of_[process.value()];
    const auto after = std::upper_bound(mine.begin(), mine.end(), at,
                                        [&](Nanos t, uint32_t s) { return t < run_.trees.steps[s].begin; });
    if (after == mine.begin()) return kNoStep;
    const uint32_t step = *(after - 1);
    return at < run_.trees.steps[step].end ? step : kNoStep;
  }

  base::Status WriteOps() {
    steps_of_.resize(store_.processes.size());
    for (uint32_t s = 0; s < run_.trees.steps.size(); ++s) steps_of_[run_.trees.steps[s].process.value()].push_back(s);
    const trace::Spans& spans = store_.spans;
    std::vector<Nanos> self(spans.duration);
    for (size_t row = 0; row < spans.size(); ++row) {
      if (spans.parent[row].valid()) self[spans.parent[row].value()] -= spans.duration[row];
    }
    std::map<uint32_t, std::map<std::pair<uint32_t, trace::SpanKind>, Calls>> by_step;
    for (size_t row = 0; row < spans.size(); ++row) {
      const trace::SpanKind kind = store_.kind(row);
      if (kind == trace::SpanKind::kProfiler || kind == trace::SpanKind::kOverhead ||
          kind == trace::SpanKind::kGpuAnnotation)
        continue;
      const uint32_t step = StepOf(store_.track_of(row).process, spans.begin[row]);
      if (step == kNoStep) continue;
      Calls& calls = by_step[step][{spans.name[row].value(), kind}];
      ++calls.count;
      calls.total += spans.duration[row];
      calls.self += std::max<Nanos>(self[row], 0);
      calls.longest = std::max(calls.longest, spans.duration[row]);
      calls.first = std::min(calls.first, spans.begin[row]);
    }
    for (const auto& [step, names] : by_step) TELLER_TRY(WriteOpsOf(step, names));
    return {};
  }

  base::Status WriteOpsOf(uint32_t step, const std::map<std::pair<uint32_t, trace::SpanKind>, Calls>& names) {
    std::vector<std::pair<std::pair<uint32_t, trace::SpanKind>, Calls>> list(names.begin(), names.end());
    std::stable_sort(list.begin(), list.end(),
                     [](const auto& a, const auto& b) { return a.second.self > b.second.self; });
    for (size_t i = 0; i < list.size() && i < kMostNames; ++i) {
      const auto& [key, calls] = list[i];
      TELLER_TRY(Line({{"type", "op"},
                       {"step", step},
                       {"op", Shortened(store_.text(base::StringId(key.first)), kMaxNameBytes)},
                       {"kind", Name(key.second)},
                       {"count", calls.count},
                       {"total_ns", calls.total},
                       {"self_ns", calls.self},
                       {"longest_ns", calls.longest},
                       {"first_ns", calls.first}}));
    }
    if (list.size() <= kMostNames) return {};
    uint64_t count = 0;
    Nanos rest = 0;
    for (size_t i = kMostNames; i < list.size(); ++i) {
      count += list[i].second.count;
      rest += list[i].second.self;
    }
    return Line({{"type", "op_rest"},
                 {"step", step},
                 {"names", list.size() - kMostNames},
                 {"count", count},
                 {"self_ns", rest}});
  }

  base::Status WriteCollectives() {
    for (const trace::Collective& c : run_.trees.collectives) {
      Json members = Json::array();
      uint32_t step = kNoStep;
      for (const trace::CollectiveMember& m : c.members) {
        if (step == kNoStep && m.process.valid()) step = StepOf(m.process, m.arrival);
        members.push_back(
            {{"rank", m.rank}, {"arrival_ns", JsonTime(m.arrival)}, {"end_ns", JsonTime(m.end)}, {"wait_ns", m.wait}});
      }
      TELLER_TRY(Line({{"type", "collective"},
                       {"op", Shortened(store_.text(c.name), kMaxNameBytes)},
                       {"step", step == kNoStep ? Json(nullptr) : Json(step)},
                       {"transfer_ns", c.transfer},
                       {"members", std::move(members)}}));
    }
    return {};
  }

  base::Status WriteLogs() {
    for (const logs::Template& t : run_.templates.templates) {
      TELLER_TRY(Line({{"type", "template"},
                       {"template", t.id},
                       {"text", Shortened(t.text, kMaxMessageBytes)},
                       {"level", Name(t.level)},
                       {"count", t.count}}));
    }
    for (const trace::LogRecord& log : store_.logs) {
      TELLER_TRY(Line({{"type", "log"},
                       {"file", log.file.valid() ? Json(log.file.value()) : Json(nullptr)},
                       {"line", log.line},
                       {"at_ns", JsonTime(log.at)},
                       {"level", Name(log.level)},
                       {"process", log.process},
                       {"rank", Rank(log.rank)},
                       {"template", log.template_id},
                       {"step", log.step.valid() ? Json(log.step.value()) : Json(nullptr)},
                       {"message", Shortened(log.message, kMaxMessageBytes)},
                       {"exception", Shortened(log.exception, kMaxNameBytes)}}));
    }
    return {};
  }

  const engine::Run& run_;
  const trace::Store& store_;
  const std::function<base::Status(std::string_view)>& write_;
  std::vector<std::vector<uint32_t>> steps_of_;  // by process, in order of begin
};

}  // namespace

base::Status WriteFeatures(const engine::Run& run, const std::function<base::Status(std::string_view)>& write,
                           bool steps_only) {
  return Writer(run, write).Write(steps_only);
}

}  // namespace teller::report
