#include "report/tree_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/clock.hpp"
#include "report/summary.hpp"
#include "report/units.hpp"

namespace teller::report {

namespace {

using base::Nanos;
using trace::SpanKind;

constexpr size_t kShownSteps = 20;
constexpr size_t kIndent = 2;

class TreeWriter {
 public:
  TreeWriter(const engine::Run& run, const CallTree& tree, const TreeTextOptions& options)
      : store_(run.store), tree_(tree), options_(options), page_(options.text) {}

  std::string Write() {
    for (const uint32_t lane : tree_.lanes) {
      const CallNode& node = tree_.nodes[lane];
      page_.Gap();
      page_.Head(fmt::format("{}: {} in {}", NodeLabel(store_, node), Duration(node.total), Count(node.count, "call")));
      page_.Line(0, "     total       self   count", Ink::kDim);
      smallest_ = static_cast<Nanos>(static_cast<double>(node.weight) * options_.hide_below);
      Children(node, 0);
    }
    return page_.Take();
  }

 private:
  /// Depth is bounded by that of the trees (base::Limits::max_tree_depth); an explicit stack keeps it off ours.
  void Children(const CallNode& top, unsigned top_depth) {
    struct Open {
      const CallNode* node;
      size_t next;
      unsigned depth;
      uint64_t hidden;
      Nanos hidden_time;
    };
    std::vector<Open> stack{{&top, 0, top_depth, 0, 0}};
    while (!stack.empty()) {
      Open& open = stack.back();
      if (open.next == open.node->children.size()) {
        if (open.hidden_time > smallest_) {
          Line(open.hidden_time, -1, open.hidden, open.depth, "(shorter calls)", Ink::kDim);
        }
        stack.pop_back();
        continue;
      }
      const CallNode* child = &tree_.nodes[open.node->children[open.next++]];
      if (child->weight < smallest_) {
        open.hidden += child->count;
        open.hidden_time += child->total;
        continue;
      }
      const unsigned depth = open.depth;
      std::string name;
      child = FollowFrames(store_, tree_, child, name);
      if (!options_.text.all) name = WithoutFolders(name);
      Line(child->total, child->self, child->count, depth, name, InkOf(child->kind));
      if (child->children.empty()) continue;
      if (options_.depth != 0 && depth + 1 >= options_.depth) continue;
      stack.push_back({child, 0, depth + 1, 0, 0});
    }
  }

  /// "a/b/model.py(7): forward" without "a/b/", also within "first > last".
  static std::string WithoutFolders(std::string_view name) {
    std::string out;
    for (size_t at = 0; at < name.size();) {
      const size_t end = std::min(name.find(' ', at), name.size());
      const std::string_view word = name.substr(at, end - at);
      const size_t slash = word.find(".py(") == std::string_view::npos ? std::string_view::npos : word.rfind('/');
      out.append(slash == std::string_view::npos ? word : word.substr(slash + 1));
      if (end < name.size()) out += ' ';
      at = end + 1;
    }
    return out;
  }

  static Ink InkOf(SpanKind kind) {
    if (trace::IsGpuWork(kind)) return Ink::kGreen;
    if (kind == SpanKind::kOp) return Ink::kCyan;
    if (kind == SpanKind::kAnnotation) return Ink::kBold;
    return Ink::kPlain;
  }

  void Line(Nanos total, Nanos self, uint64_t count, unsigned depth, const std::string& name, Ink ink) {
    const std::string numbers =
        fmt::format("{:>10} {:>10} {:>7}  ", Duration(total), self < 0 ? "" : Duration(self), Count(count));
    // Deep trees keep half of the line for the name.
    const size_t indent = std::min(depth * kIndent, page_.width() / 4);
    const size_t used = numbers.size() + indent;
    TextOptions rest = options_.text;
    rest.width = rest.width > used + 16 ? rest.width - used : 16;
    Page tail(rest);
    tail.Line(0, name, ink);
    std::string text = tail.Take();
    text.pop_back();
    page_.Raw(page_.Inked(Ink::kDim, numbers) + std::string(indent, ' ') + text);
  }

  const trace::Store& store_;
  const CallTree& tree_;
  const TreeTextOptions& options_;
  Page page_;
  Nanos smallest_ = 0;
};

/// Launches of graphs, and how many of their kernels were given a module or an operator.
std::string GraphsText(const trace::Trees& trees) {
  uint64_t work = 0;
  uint64_t attributed = 0;
  uint64_t sure = 0;
  for (const trace::GraphReplay& replay : trees.graph_replays) {
    work += replay.work;
    attributed += replay.attributed;
  }
  for (const trace::GraphOrigin& origin : trees.graph_origins) sure += origin.confidence >= trace::kSureOrigin;
  const auto by_source = trace::OriginsBySource(trees.graph_origins);
  std::string from;
  for (const auto& [source, n] : by_source) {
    if (n > 0)
      from += fmt::format("{}{} by {} {}", from.empty() ? "" : ", ", Count(n),
                          source == trace::GraphSource::kEager ? "an" : "a", Name(source));
  }
  return fmt::format("{} graph launches; {} of {} kernels and copies aligned{}, {} of them surely",
                     Count(trees.graph_replays.size()), Count(attributed), Count(work),
                     from.empty() ? "" : " (" + from + ")", Count(sure));
}

std::string ShapeText(const trace::Step& step) {
  std::string text(Name(step.kind));
  if (step.batch >= 0) text += fmt::format(", batch {}", step.batch);
  if (step.prefill_requests > 0 && step.decode_requests > 0) {
    text += fmt::format(" ({} prefill, {} decode)", step.prefill_requests, step.decode_requests);
  }
  if (step.new_tokens >= 0) text += fmt::format(", {} new tokens", step.new_tokens);
  if (step.context_tokens >= 0) text += fmt::format(", {} context", step.context_tokens);
  if (step.observer) text += ", touched by the profiler";
  return text;
}

void AddProcessSteps(const trace::Store& store, std::vector<const trace::Step*> steps, Page& page) {
  page.Gap();
  const bool cut = !page.options().all && steps.size() > kShownSteps;
  page.Head(fmt::format("{}: {}{}", ProcessLabel(store, steps.front()->process), Count(steps.size(), "step"),
                        cut ? fmt::format("; the {} longest (--all shows the rest)", kShownSteps) : ""));
  if (cut) {
    std::stable_sort(steps.begin(), steps.end(),
                     [](const trace::Step* a, const trace::Step* b) { return a->duration() > b->duration(); });
    steps.resize(kShownSteps);
    std::sort(steps.begin(), steps.end(),
              [](const trace::Step* a, const trace::Step* b) { return a->index < b->index; });
  }
  page.Line(0, fmt::format("{:>6} {:>10} {:>10}  {:<23}  {}", "step", "takes", "gap", "begins", "what"), Ink::kDim);
  for (const trace::Step* step : steps) {
    page.Line(0, fmt::format("{:>6} {:>10} {:>10}  {:<23}  {}  {}", step->index, Duration(step->duration()),
                             step->gap_before < 0 ? "-" : Duration(step->gap_before), Time(step->begin),
                             ShapeText(*step), step->name));
  }
}

}  // namespace

std::string CallTreeToText(const engine::Run& run, const CallTree& tree, const TreeTextOptions& options) {
  return TreeWriter(run, tree, options).Write();
}

std::string StepsToText(const engine::Run& run, std::optional<int> rank, const TextOptions& options) {
  std::map<trace::ProcessRow, std::vector<const trace::Step*>> by_process;
  for (const trace::Step& step : run.trees.steps) {
    if (!rank || step.rank == rank) by_process[step.process].push_back(&step);
  }
  Page page(options);
  for (auto& [process, steps] : by_process) AddProcessSteps(run.store, steps, page);
  if (by_process.empty()) page.Line(0, "no steps found");
  return page.Take();
}

std::string StepHeadToText(const engine::Run& run, const trace::Step& step, const TextOptions& options) {
  Page page(options);
  page.Head(fmt::format("{}, step {} {}", ProcessLabel(run.store, step.process), step.index, step.name));
  page.Line(2, fmt::format("{} from {}, gap before it {}; {}", Duration(step.duration()), Time(step.begin),
                           step.gap_before < 0 ? "unknown" : Duration(step.gap_before), ShapeText(step)));
  return page.Take();
}

std::string StatsToText(const engine::Run& run, uint64_t peak_bytes, const TextOptions& options) {
  Page page(options);
  uint64_t bytes = 0;
  uint64_t records = 0;
  uint64_t dropped = 0;
  for (const trace::File& file : run.store.files) {
    bytes += file.bytes;
    records += file.records_read;
    dropped += file.dropped;
  }
  const trace::Trees& trees = run.trees;
  page.Field("files", Count(run.store.files.size()) + ", " + Bytes(bytes) + " uncompressed");
  page.Field("records", fmt::format("{} read, {} dropped", Count(records), Count(dropped)));
  page.Field("spans", Count(run.store.spans.size()) + " on " + Count(run.store.tracks.size(), "track"));
  page.Field("names", Count(run.store.strings.size()));
  page.Field("steps", Count(trees.steps.size()));
  page.Field("collectives", Count(trees.collectives.size()));
  if (const std::string clock = ClockLine(run); !clock.empty()) page.Field("clock", clock);
  page.Field("gpu work",
             fmt::format("{} with a correlation id; {} linked to their launch, {} launched outside the file",
                         Count(trees.gpu_work), Count(trees.gpu_work_linked), Count(trees.gpu_work_unlaunched)));
  if (!trees.graph_replays.empty()) page.Field("graphs", GraphsText(trees));
  page.Field("logs", Count(run.store.logs.size(), "record"));
  Nanos sum = 0;
  for (const auto& [stage, ns] : run.stage_ns) {
    page.Field(stage, Duration(ns));
    sum += ns;
  }
  page.Field(
      "all stages",
      Duration(sum) +
          (sum > 0 ? fmt::format(", {:.0f} MB/s", static_cast<double>(bytes) * 1e3 / static_cast<double>(sum)) : ""));
  page.Field("peak memory", Bytes(peak_bytes));
  return page.Take();
}

}  // namespace teller::report
