#include <algorithm>
#include <charconv>
#include <map>
#include <tuple>

#include "tree/graph_sequence.hpp"

namespace teller::tree {

namespace {

using trace::GraphSource;
using trace::Nanos;
using trace::ProcessRow;
using trace::SpanKind;
using trace::SpanRow;
using trace::StringId;
using trace::Trees;

constexpr size_t kFewestLaunches = 4;  // fewer are no sequence: any step has as much

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// First number of a text; -1 when there is none.
int64_t FirstNumber(std::string_view text) {
  const size_t at = text.find_first_of("0123456789");
  if (at == std::string_view::npos) return -1;
  int64_t value = -1;
  std::from_chars(text.data() + at, text.data() + text.size(), value);
  return value;
}

/// Row of the step of `process` that contains `at`.
class StepIndex {
 public:
  explicit StepIndex(const Trees& trees) : steps_(trees.steps) {}
  uint32_t Find(ProcessRow process, Nanos at) const {
    const auto after = std::upper_bound(
        steps_.begin(), steps_.end(), std::pair(process, at),
        [](const auto& want, const trace::Step& step) { return want < std::pair(step.process, step.begin); });
    if (after == steps_.begin()) return UINT32_MAX;
    const auto step = after - 1;
    return step->process == process && at < step->end ? static_cast<uint32_t>(step - steps_.begin()) : UINT32_MAX;
  }

 private:
  const std::vector<trace::Step>& steps_;
};

/// A stretch in which a process captures.
struct Window {
  Nanos begin = 0;
  Nanos end = 0;
};

/// A launch call, before it is known what it belongs to.
struct Call {
  ProcessRow process;
  Nanos begin = 0;
  SpanRow row;
  uint32_t first_link = 0;  // into the links by launch
  uint32_t links = 0;
};

class Finder {
 public:
  Finder(trace::Store& store, const Trees& trees, GraphTokens& tokens)
      : store_(store), trees_(trees), tokens_(tokens), surrounder_(store), steps_(trees) {}

  std::vector<GraphReference> Run() {
    links_ = trees_.launches;
    std::sort(links_.begin(), links_.end(),
              [](const auto& a, const auto& b) { return std::tuple(a.launch, a.work) < std::tuple(b.launch, b.work); });
    CollectCalls();
    for (const Call& call : calls_) Place(call);
    for (auto unit = units_.begin(); unit != units_.end(); unit = JoinFrom(unit)) {
    }
    for (auto& [key, unit] : units_) Keep(std::move(unit.reference));
    return std::move(out_);
  }

 private:
  /// What a launch belongs to: a capture window, else a step, else the forward pass of its outermost module.
  struct UnitKey {
    uint32_t process;
    int kind;
    uint32_t number;
    auto operator<=>(const UnitKey&) const = default;
  };
  struct Unit {
    GraphReference reference;
    SpanRow root;  // outermost module of its first launch
  };
  using Units = std::map<UnitKey, Unit>;

  void CollectCalls() {
    std::vector<std::pair<Call, bool>> marks;  // captures: true = begin
    for (uint32_t row = 0; row < store_.spans.size(); ++row) {
      if (!trace::IsApiCall(store_.kind(row))) continue;
      const std::string_view name = store_.name(row);
      const Call call{store_.track_of(row).process, store_.spans.begin[row], SpanRow(row)};
      if (Has(name, "StreamBeginCapture")) {
        marks.emplace_back(call, true);
      } else if (Has(name, "StreamEndCapture")) {
        marks.emplace_back(call, false);
      } else {
        AddCall(call, name);
      }
    }
    std::sort(calls_.begin(), calls_.end(), [](const Call& a, const Call& b) {
      return std::tuple(a.process, a.begin, a.row) < std::tuple(b.process, b.begin, b.row);
    });
    std::sort(marks.begin(), marks.end(), [](const auto& a, const auto& b) {
      return std::tuple(a.first.process, a.first.begin, a.first.row) <
             std::tuple(b.first.process, b.first.begin, b.first.row);
    });
    for (size_t i = 0; i + 1 < marks.size(); ++i) {
      const bool pair = marks[i].second && !marks[i + 1].second && marks[i].first.process == marks[i + 1].first.process;
      if (pair) windows_[marks[i].first.process.value()].push_back({marks[i].first.begin, marks[i + 1].first.begin});
    }
  }

  void AddCall(Call call, std::string_view name) {
    const auto [lo, hi] = std::equal_range(links_.begin(), links_.end(), trace::LaunchLink{call.row, {}},
                                           [](const auto& a, const auto& b) { return a.launch < b.launch; });
    call.first_link = static_cast<uint32_t>(lo - links_.begin());
    call.links = static_cast<uint32_t>(hi - lo);
    if (IsGraphLaunch(name) || (call.links == 0 && (!IsWorkLaunch(name) || IsTwin(call.row)))) return;
    calls_.push_back(call);
  }

  /// A driver call inside the runtime call that made it, and the other way round for the one that has the work.
  bool IsTwin(SpanRow row) const {
    const SpanRow parent = store_.spans.parent[row.value()];
    if (parent.valid() && trace::IsApiCall(store_.kind(parent.value())) && IsWorkLaunch(store_.name(parent.value())))
      return true;
    const uint32_t next = row.value() + 1;
    if (next >= store_.spans.size() || store_.spans.parent[next] != row || !trace::IsApiCall(store_.kind(next)))
      return false;
    const auto it = std::lower_bound(links_.begin(), links_.end(), SpanRow(next),
                                     [](const auto& link, SpanRow want) { return link.launch < want; });
    return it != links_.end() && it->launch == SpanRow(next);
  }

  void Place(const Call& call) {
    const Surroundings around = surrounder_.Around(call.row);
    UnitKey key{call.process.value(), 0, 0};
    const uint32_t window = call.links == 0 ? WindowOf(call) : UINT32_MAX;
    if (window != UINT32_MAX) {
      key.number = window;
    } else if (const uint32_t step = steps_.Find(call.process, call.begin); step != UINT32_MAX) {
      key = {call.process.value(), 1, step};
    } else if (around.root.valid()) {
      key = {call.process.value(), 2, around.root.value()};
    } else {
      return;
    }
    if (budget_ == 0) return;
    const auto [it, fresh] = units_.try_emplace(key);
    if (fresh) Begin(it->second, call, around, window != UINT32_MAX);
    Append(it->second.reference, call, around);
  }

  uint32_t WindowOf(const Call& call) const {
    const auto found = windows_.find(call.process.value());
    if (found == windows_.end()) return UINT32_MAX;
    const auto& windows = found->second;
    const auto after = std::upper_bound(windows.begin(), windows.end(), call.begin,
                                        [](Nanos at, const Window& w) { return at < w.begin; });
    if (after == windows.begin() || call.begin >= (after - 1)->end) return UINT32_MAX;
    return static_cast<uint32_t>(after - 1 - windows.begin());
  }

  void Begin(Unit& unit, const Call& call, const Surroundings& around, bool capture) {
    unit.root = around.root;
    unit.reference.process = call.process;
    unit.reference.whole = capture;
    unit.reference.source = capture ? GraphSource::kCapture : GraphSource::kEager;
    unit.reference.batch = Batch(around);
  }

  /// "capture_32_DECODE", "bs=32": what the innermost annotation names; else the rows of the first operator's first
  /// tensor.
  int64_t Batch(const Surroundings& around) const {
    const std::string_view annotation = store_.text(around.annotation);
    if (!annotation.starts_with("ProfilerStep")) {
      if (const int64_t batch = FirstNumber(annotation); batch >= 0) return batch;
    }
    if (!around.op_span.valid()) return -1;
    const trace::OpArgs* args = store_.op_args.Find(around.op_span.value());
    return args == nullptr ? -1 : FirstNumber(store_.text(args->input_dims));
  }

  void Append(GraphReference& unit, const Call& call, const Surroundings& around) {
    GraphPlace place{call.row, around.module, around.op, {}};
    const auto add = [&](GraphToken token, StringId kernel) {
      if (budget_ == 0) return;
      --budget_;
      token.place = PlaceNumber(place);
      place.kernel = kernel;
      unit.names_kernels = unit.names_kernels && token.name != 0;
      unit.tokens.push_back(token);
      unit.places.push_back(place);
    };
    for (uint32_t i = 0; i < call.links; ++i) {
      const uint32_t work = links_[call.first_link + i].work.value();
      add(tokens_.OfName(store_.spans.name[work], store_.kind(work)), store_.spans.name[work]);
    }
    if (call.links > 0) return;
    const StringId name = KernelOf(call.row);
    add(name.valid() ? tokens_.OfName(name, SpanKind::kKernel) : tokens_.OfCall(store_.name(call.row.value()), around),
        name);
  }

  StringId KernelOf(SpanRow row) const {
    for (const auto& attribute : store_.attributes.FindAll(row.value())) {
      if (store_.text(attribute.key) == trace::kKernelAttribute) return attribute.value;
    }
    return {};
  }

  uint32_t PlaceNumber(const GraphPlace& place) {
    const uint64_t key = static_cast<uint64_t>(place.module.value()) << 32 | place.op.value();
    return place_numbers_.try_emplace(key, static_cast<uint32_t>(place_numbers_.size() + 1)).first->second;
  }

  bool SaysSomething(const GraphReference& unit) const {
    return unit.tokens.size() >= kFewestLaunches &&
           std::any_of(unit.places.begin(), unit.places.end(),
                       [](const GraphPlace& p) { return p.module.valid() || p.op.valid(); });
  }

  static uint64_t Hash(const GraphReference& unit) {
    uint64_t hash = unit.tokens.size() * 2 + unit.whole;
    for (const GraphToken& token : unit.tokens) {
      for (const uint64_t part : {uint64_t{token.name}, uint64_t{token.place}, static_cast<uint64_t>(token.work)}) {
        hash = (hash ^ part) * 0x9E3779B97F4A7C15ULL;
        hash ^= hash >> 29;
      }
    }
    return hash;
  }

  /// Steps repeat: of equal sequences of a process one is enough.
  void Keep(GraphReference unit) {
    if (!SaysSomething(unit)) return;
    if (seen_.emplace(std::tuple(unit.process.value(), unit.batch, Hash(unit)), true).second)
      out_.push_back(std::move(unit));
  }

  /// Keeps the captures of one forward pass, joined in their order: a step launches them all. Gives the unit behind
  /// them.
  Units::iterator JoinFrom(Units::iterator first) {
    auto last = std::next(first);
    const auto same_pass = [&](const auto& unit) {
      return unit.second.reference.whole && unit.first.process == first->first.process &&
             unit.second.root == first->second.root;
    };
    if (!first->second.reference.whole || !first->second.root.valid()) return last;
    while (last != units_.end() && same_pass(*last)) ++last;
    if (std::next(first) == last) return last;
    GraphReference joined = first->second.reference;
    joined.joined = true;
    for (auto unit = std::next(first); unit != last; ++unit) {
      const GraphReference& part = unit->second.reference;
      if (budget_ < part.tokens.size()) return last;
      budget_ -= part.tokens.size();
      joined.names_kernels = joined.names_kernels && part.names_kernels;
      joined.tokens.insert(joined.tokens.end(), part.tokens.begin(), part.tokens.end());
      joined.places.insert(joined.places.end(), part.places.begin(), part.places.end());
    }
    Keep(std::move(joined));
    return last;
  }

  trace::Store& store_;
  const Trees& trees_;
  GraphTokens& tokens_;
  Surrounder surrounder_;
  StepIndex steps_;
  std::vector<trace::LaunchLink> links_;  // by launch
  std::vector<Call> calls_;
  std::map<uint32_t, std::vector<Window>> windows_;  // by process
  Units units_;
  std::unordered_map<uint64_t, uint32_t> place_numbers_;
  std::map<std::tuple<uint32_t, int64_t, uint64_t>, bool> seen_;
  size_t budget_ = kMaxReferenceTokens;
  std::vector<GraphReference> out_;
};

}  // namespace

std::vector<GraphReference> FindGraphReferences(trace::Store& store, const trace::Trees& trees, GraphTokens& tokens) {
  return Finder(store, trees, tokens).Run();
}

}  // namespace teller::tree
