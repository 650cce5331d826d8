#include "inject/retime_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "inject/draft.hpp"
#include "retime/time_map.hpp"

namespace teller::inject {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

using base::Nanos;

base::Error CannotWrite(const fs::path& path) {
  return {base::Code::kUnreadable, "cannot be written", path.string()};
}

/// A file that is written; closing says whether all of it arrived.
class Output {
 public:
  explicit Output(const fs::path& path) : path_(path), file_(std::fopen(path.c_str(), "wb"), &std::fclose) {}

  base::Status Write(std::string_view text) {
    if (!file_ || std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size()) return CannotWrite(path_);
    written_ += text.size();
    return {};
  }
  /// Fills up with blanks, so that the size does not tell how many digits the times have: all that are made of a
  /// recording of `bytes` are equally long.
  base::Status Pad(uint64_t bytes) {
    constexpr uint64_t kUnit = 1u << 16;
    constexpr uint64_t kDigits = 64;  // times may take one more byte of so many
    const uint64_t step = std::max(kUnit, (bytes / kDigits + kUnit - 1) / kUnit * kUnit);
    uint64_t size = (bytes + step + kUnit - 1) / kUnit * kUnit;
    while (size < written_) size += step;
    const std::string blanks(kUnit, ' ');
    while (written_ + 1 < size) {
      TELLER_TRY(Write(std::string_view(blanks).substr(0, std::min<uint64_t>(kUnit, size - written_ - 1))));
    }
    return written_ < size ? Write("\n") : base::Status();
  }
  base::Status Close() {
    if (!file_ || std::fclose(file_.release()) != 0) return CannotWrite(path_);
    return {};
  }

 private:
  fs::path path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  uint64_t written_ = 0;
};

template <class T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
Json OrNull(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

class Maker {
 public:
  Maker(const engine::Run& run, const std::string& root, const Plant& plant)
      : run_(run), root_(root), plant_(plant), graph_(retime::BuildGraph(run.store, run.trees)) {}

  base::Result<MadeCase> Make(const fs::path& folder) {
    auto planned = PlanFault(run_, plant_);
    if (!planned) return planned.error();
    planted_ = std::move(*planned);
    times_ = retime::Replay(run_.store, run_.trees, graph_, planted_.changes);
    TELLER_TRY(CheckEffect());
    auto part = Draft::Make(folder);
    if (!part) return part.error();
    std::error_code error;
    fs::create_directories(part->path() / "traces", error);
    if (error) return CannotWrite(part->path());
    TELLER_TRY(WriteTraces(part->path() / "traces"));
    MoveLabel();
    TELLER_TRY(WriteLabel(part->path() / "label.json", part->path().stem().string()));
    TELLER_TRY(part->Keep());
    return std::move(made_);
  }

 private:
  fs::path Locate(const std::string& name) const {
    std::error_code error;
    return fs::is_directory(root_, error) ? fs::path(root_) / name : fs::path(root_);
  }

  base::Status WriteTraces(const fs::path& folder) {
    const retime::TimeMap map(run_.store, graph_, times_);
    std::set<std::string> names;
    for (uint32_t f = 0; f < run_.store.files.size(); ++f) {
      const trace::File& file = run_.store.files[f];
      if (file.kind != "kineto" || file.spans == 0) continue;
      const fs::path source = Locate(file.path);
      std::error_code error;
      if (!fs::is_regular_file(source, error)) {
        return base::Error{base::Code::kUnsupported, "lies in an archive; unpack the run first", file.path};
      }
      std::string name = file.rank ? fmt::format("rank{}.json", *file.rank) : fmt::format("trace{}.json", made_.files);
      if (!names.insert(name).second) name = fmt::format("trace{}.json", made_.files);
      Output output(folder / name);
      auto counts = RewriteTrace(run_, map, times_, trace::FileRow(f), source.string(),
                                 [&](std::string_view text) { return output.Write(text); });
      if (!counts) return counts.error();
      TELLER_TRY(output.Pad(file.bytes));
      TELLER_TRY(output.Close());
      ++made_.files;
      made_.events.moved += counts->moved;
      made_.events.carried += counts->carried;
    }
    if (made_.files > 0) return {};
    return base::Error{base::Code::kUnsupported, "the run has no Chrome trace that could be written again", root_};
  }

  /// New begin and end of a step.
  Interval Moved(const retime::TimeMap& map, uint32_t step) const {
    const trace::Step& s = run_.trees.steps[step];
    const auto lane = map.BusiestThread(s.process, s.begin, s.end);
    if (!lane) return {s.begin, s.end};
    return {map.NewTime(*lane, s.begin), map.NewTime(*lane, s.end)};
  }

  /// A label of a fault that makes no step longer than the same re-timing without it would be wrong: hidden behind
  /// waits, or too small for the clock of a trace.
  base::Status CheckEffect() const {
    if (plant_.fault == "none") return {};
    const retime::Times control = retime::Replay(run_.store, run_.trees, graph_);
    const retime::TimeMap with(run_.store, graph_, times_);
    const retime::TimeMap without(run_.store, graph_, control);
    std::set<uint32_t> indices;
    for (const uint32_t step : planted_.steps) indices.insert(run_.trees.steps[step].index);
    for (uint32_t s = 0; s < run_.trees.steps.size(); ++s) {
      if (indices.count(run_.trees.steps[s].index) == 0) continue;
      const Interval changed = Moved(with, s);
      const Interval same = Moved(without, s);
      if ((changed.end - changed.begin) - (same.end - same.begin) >= base::kMicro) return {};
    }
    return base::Error{base::Code::kUsage,
                       "this makes no step longer by a microsecond; take more of it, other steps or another place, or "
                       "--fault none for a control"};
  }

  void MoveLabel() {
    made_.label = planted_.label;
    CompareTimes();
    if (!made_.label.window) return;
    Interval& window = *made_.label.window;
    if (plant_.fault == "pause") {
      const trace::SpanRow row = planted_.changes.pauses.front().before;
      window = {times_.begin(row) - plant_.length, times_.begin(row)};
      made_.label.activations = {window};
    } else {
      const retime::TimeMap map(run_.store, graph_, times_);
      window = {Moved(map, planted_.steps.front()).begin, Moved(map, planted_.steps.back()).end};
    }
  }

  /// How long the steps of the process take, recorded and changed.
  void CompareTimes() {
    const trace::Step& first = run_.trees.steps[planted_.steps.front()];
    const retime::TimeMap map(run_.store, graph_, times_);
    for (uint32_t s = 0; s < run_.trees.steps.size(); ++s) {
      if (run_.trees.steps[s].process != first.process) continue;
      const Interval moved = Moved(map, s);
      made_.recorded += run_.trees.steps[s].duration();
      made_.changed += moved.end - moved.begin;
    }
  }

  Json AbnormalSteps() const {
    std::map<uint32_t, std::vector<uint32_t>> by_index;
    for (uint32_t s = 0; s < run_.trees.steps.size(); ++s) by_index[run_.trees.steps[s].index].push_back(s);
    const retime::TimeMap map(run_.store, graph_, times_);
    Json steps = Json::array();
    for (const uint32_t step : planted_.steps) {
      Json ranks = Json::array();
      for (const uint32_t s : by_index[run_.trees.steps[step].index]) {
        const Interval moved = Moved(map, s);
        ranks.push_back({moved.begin, moved.end});
      }
      steps.push_back({{"index", run_.trees.steps[step].index},
                       {"annotation", run_.trees.steps[step].name},
                       {"ranks", std::move(ranks)}});
    }
    return steps;
  }

  Json CulpritJson() const {
    if (!made_.label.culprit) return nullptr;
    const LabelCulprit& culprit = *made_.label.culprit;
    return {{"rank", OrNull(culprit.rank)},
            {"process", OrNull(culprit.process)},
            {"layer", culprit.layer},
            {"operator", OrNull(culprit.op)},
            {"module", nullptr},
            {"function", nullptr},
            {"log_record", nullptr}};
  }

  /// What the recorded run is called: its folder, not the one of its traces.
  std::string RunName() const {
    fs::path path = fs::path(root_).lexically_normal();
    if (path.filename().empty()) path = path.parent_path();
    if (path.filename() == "traces" && path.has_parent_path()) path = path.parent_path();
    return path.filename().string();
  }

  base::Status WriteLabel(const fs::path& path, const std::string& name) const {
    const Label& label = made_.label;
    Json accepted = Json::array();
    for (const trace::FaultClass fault : label.accepted) accepted.push_back(trace::Name(fault));
    Json activations = Json::array();
    for (const Interval& interval : label.activations) activations.push_back({interval.begin, interval.end});
    Json victims = Json::array();
    for (int64_t rank = 0; rank < label.world_size; ++rank) {
      if (label.culprit && label.culprit->rank && rank != *label.culprit->rank) victims.push_back(rank);
    }
    Json params = {{"run", RunName()}};
    if (label.is_fault && plant_.fault != "pause") params["scale"] = plant_.scale;
    if (plant_.fault == "pause") params["length_ns"] = plant_.length;
    const Json json = {{"schema", "teller.label/1"},
                       {"case", name},
                       {"is_fault", label.is_fault},
                       {"fault_class", trace::Name(label.fault)},
                       {"accept_classes", std::move(accepted)},
                       {"fault_kind", label.kind},
                       {"stack", OrNull(label.stack)},
                       {"source", "retimed"},
                       {"world_size", label.world_size},
                       {"culprit", CulpritJson()},
                       {"accept_ranks", label.accepted_ranks.empty() ? Json(nullptr) : Json(label.accepted_ranks)},
                       {"victims", std::move(victims)},
                       {"t_start_ns", label.window ? Json(label.window->begin) : Json(nullptr)},
                       {"t_end_ns", label.window ? Json(label.window->end) : Json(nullptr)},
                       {"intervals_ns", std::move(activations)},
                       {"abnormal_steps", label.is_fault ? AbnormalSteps() : Json(nullptr)},
                       {"ignore_steps", Json::array()},
                       {"observer_ns", Json::array()},
                       {"visible_in", *label.visible_in},
                       {"seed", plant_.seed},
                       {"params", std::move(params)}};
    Output output(path);
    TELLER_TRY(output.Write(json.dump(1, ' ', true, Json::error_handler_t::replace) + "\n"));
    return output.Close();
  }

  const engine::Run& run_;
  const std::string& root_;
  const Plant& plant_;
  const retime::Graph graph_;
  Planted planted_;
  retime::Times times_;
  MadeCase made_;
};

}  // namespace

base::Result<MadeCase> MakeRetimedCase(const engine::Run& run, const std::string& root, const Plant& plant,
                                       const std::string& folder) {
  return Maker(run, root, plant).Make(folder);
}

}  // namespace teller::inject
