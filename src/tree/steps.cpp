#include "tree/steps.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>

#include "tree/dims.hpp"
#include "tree/repetition.hpp"
#include "tree/step_name.hpp"

namespace teller::tree {

namespace {

using trace::Nanos;
using trace::ProcessRow;
using trace::SpanKind;
using trace::SpanRow;
using trace::Step;
using trace::StepKind;
using trace::StringId;

/// Spans of one process that can be step marks: one family, one thread.
struct Marks {
  std::vector<uint32_t> spans;
  double covered = 0;  // ns; a sum over hostile durations would overflow an integer
};

/// "decode step 12" -> "decode step N": the family of an annotation.
std::string Family(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      if (out.empty() || out.back() != 'N') out += 'N';
    } else {
      out += c;
    }
  }
  return out;
}

/// Annotations that are parts of a step or of the library, never steps.
bool IsPart(std::string_view text) {
  return text.starts_with("nccl:") || text.starts_with("gloo:") || text.starts_with("c10d:") ||
         text.starts_with("FSDP::") || text.starts_with("FullyShardedDataParallel.") || text.starts_with("##") ||
         text.starts_with("Optimizer.") || text.starts_with("enumerate(DataLoader)") || text.starts_with("ncclGroup");
}

/// The largest member by covered time; ties by track and name, so that the choice never depends on hash order.
template <class Map>
const Marks* Largest(const Map& families) {
  const Marks* best = nullptr;
  for (const auto& [key, marks] : families) {
    if (best == nullptr || marks.covered > best->covered) best = &marks;
  }
  return best;
}

/// Drops marks inside an earlier mark of the same family (nested twins).
void DropNested(const trace::Store& store, std::vector<uint32_t>& spans) {
  std::sort(spans.begin(), spans.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(store.spans.begin[a], a) < std::pair(store.spans.begin[b], b);
  });
  std::vector<uint32_t> kept;
  Nanos last_end = trace::kNoTime;
  for (const uint32_t span : spans) {
    if (!kept.empty() && store.spans.begin[span] < last_end) continue;
    kept.push_back(span);
    last_end = store.spans.end(span);
  }
  spans = std::move(kept);
}

constexpr int64_t kMostTokens = 1'000'000'000'000;  // as for the numbers in step names

int64_t AttributeNumber(const trace::Store& store, uint32_t span, std::string_view key) {
  for (const auto& attribute : store.attributes.FindAll(span)) {
    if (store.text(attribute.key) != key) continue;
    const std::string_view text = store.text(attribute.value);
    int64_t value = -1;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value > kMostTokens ? -1 : value;
  }
  return -1;
}

/// Elements touched by the operators of a step: grows with batch, new tokens and context, whatever the engine.
class WorkMeter {
 public:
  explicit WorkMeter(const trace::Store& store) : store_(store) {}

  double Measure(trace::TrackRow track, Nanos begin, Nanos end) {
    const auto& t = store_.tracks[track.value()];
    const auto first = store_.spans.begin.begin() + t.first_span;
    const auto last = first + t.span_count;
    const auto lo = std::lower_bound(first, last, begin) - store_.spans.begin.begin();
    double total = 0;
    bool any = false;
    for (size_t at = store_.op_args.LowerBound(static_cast<uint32_t>(lo)); at < store_.op_args.size(); ++at) {
      const uint32_t row = store_.op_args.row(at);
      if (row >= t.first_span + t.span_count || store_.spans.begin[row] >= end) break;
      const StringId dims = store_.op_args.value(at).input_dims;
      if (!dims.valid() || store_.kind(row) != SpanKind::kOp) continue;
      const auto [it, fresh] = memo_.try_emplace(dims, 0.0);
      if (fresh) it->second = ElementsOfFirstTensor(store_.text(dims));
      total += it->second;
      any = true;
    }
    return any ? total : -1;
  }

 private:
  const trace::Store& store_;
  std::unordered_map<StringId, double> memo_;
};

class Finder {
 public:
  explicit Finder(trace::Store& store) : store_(store), meter_(store) {}

  std::vector<Step> Run() {
    CollectMarks();
    for (uint32_t p = 0; p < store_.processes.size(); ++p) FindProcess(ProcessRow(p));
    return std::move(steps_);
  }

 private:
  using ByMark = std::map<std::pair<StepMark, uint32_t>, Marks>;          // (mark, track)
  using ByFamily = std::map<std::pair<std::string, uint32_t>, Marks>;     // (family, track)

  void CollectMarks() {
    for (uint32_t row = 0; row < store_.spans.size(); ++row) {
      if (store_.kind(row) != SpanKind::kAnnotation) continue;
      const auto& track = store_.track_of(row);
      if (track.is_stream) continue;
      const std::string_view text = store_.name(row);
      if (IsPart(text)) continue;
      const uint32_t process = track.process.value();
      const uint32_t track_row = store_.spans.track[row].value();
      Marks* marks = nullptr;
      if (const auto name = ReadStepName(text)) {
        marks = &by_mark_[process][{name->mark, track_row}];
      } else {
        marks = &by_family_[process][{Family(text), track_row}];
      }
      marks->spans.push_back(row);
      marks->covered += static_cast<double>(store_.spans.duration[row]);
    }
  }

  void FindProcess(ProcessRow process) {
    std::optional<StepMark> mark;
    const Marks* marks = nullptr;
    if (const auto found = by_mark_.find(process.value()); found != by_mark_.end()) {
      mark = found->second.begin()->first.first;  // the map is ordered by preference
      ByMark same;
      for (const auto& [key, value] : found->second) {
        if (key.first == *mark) same.emplace(key, value);
      }
      chosen_ = *Largest(same);
      marks = &chosen_;
    } else if (const auto generic = by_family_.find(process.value()); generic != by_family_.end()) {
      ByFamily repeated;
      for (const auto& [key, value] : generic->second) {
        if (value.spans.size() >= kFewestGeneric) repeated.emplace(key, value);
      }
      if (!repeated.empty()) {
        chosen_ = *Largest(repeated);
        marks = &chosen_;
      }
    }
    const size_t first = steps_.size();
    if (marks != nullptr) {
      std::vector<uint32_t> spans = marks->spans;
      DropNested(store_, spans);
      for (const uint32_t span : spans) AddMarked(process, span);
    } else {
      for (const Repeat& repeat : FindRepeats(store_, process)) AddRepeat(process, repeat);
    }
    FinishProcess(first);
  }

  void AddMarked(ProcessRow process, uint32_t span) {
    Step step;
    step.process = process;
    step.span = SpanRow(span);
    step.name = std::string(store_.name(span));
    step.begin = store_.spans.begin[span];
    step.end = store_.spans.end(span);
    if (const auto name = ReadStepName(step.name)) {
      step.kind = name->kind;
      step.prefill_requests = name->prefill_requests;
      step.decode_requests = name->decode_requests;
      step.new_tokens = name->new_tokens;
      step.context_tokens = name->context_tokens;
      if (name->mark == StepMark::kLlamaCpp) {
        step.new_tokens = AttributeNumber(store_, span, "n_tokens");
      }
    }
    if (step.prefill_requests >= 0 && step.decode_requests >= 0) step.batch = step.prefill_requests + step.decode_requests;
    step.work = meter_.Measure(store_.spans.track[span], step.begin, step.end);
    steps_.push_back(std::move(step));
  }

  void AddRepeat(ProcessRow process, const Repeat& repeat) {
    Step step;
    step.process = process;
    step.name = "repetition";
    step.begin = repeat.begin;
    step.end = repeat.end;
    step.work = meter_.Measure(repeat.track, step.begin, step.end);
    steps_.push_back(std::move(step));
  }

  /// Ordinals, gaps, shapes, and the observer's mark on the first step.
  void FinishProcess(size_t first) {
    for (size_t i = first; i < steps_.size(); ++i) {
      Step& step = steps_[i];
      step.index = static_cast<uint32_t>(i - first);
      step.rank = store_.processes[step.process.value()].rank;
      if (i > first) step.gap_before = std::max<Nanos>(0, step.begin - steps_[i - 1].end);
      step.shape = store_.strings.Intern(ShapeText(step));
    }
    // The first step after the profiler starts carries its set-up (allocation, unequal starts over ranks).
    if (first < steps_.size()) steps_[first].observer = true;
  }

  static std::string ShapeText(const Step& step) {
    std::string text(trace::Name(step.kind));
    text += " b" + std::to_string(step.batch) + " t" + std::to_string(step.new_tokens);
    if (step.work >= 0) text += " w" + std::to_string(static_cast<int>(std::log2(step.work + 1) * 8));
    return text;
  }

  static constexpr size_t kFewestGeneric = 3;  // fewer are no steps but phases of the program

  trace::Store& store_;
  WorkMeter meter_;
  std::map<uint32_t, ByMark> by_mark_;
  std::map<uint32_t, ByFamily> by_family_;
  Marks chosen_;
  std::vector<Step> steps_;
};

}  // namespace

std::vector<Step> FindSteps(trace::Store& store) { return Finder(store).Run(); }

}  // namespace teller::tree
