#include "tree/graph_sequence.hpp"

#include <algorithm>
#include <tuple>

namespace teller::tree {

namespace {

using trace::SpanKind;
using trace::SpanRow;

constexpr uint32_t kNoOthersName = UINT32_MAX;  // of kernels whose exact name was not kept; no string has this number

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Step of a launch: the one that its call begins in.
uint32_t StepOf(const trace::Store& store, const std::vector<trace::Step>& steps, const GraphLaunch& graph) {
  if (!graph.launch.valid()) return UINT32_MAX;
  const std::pair want(graph.process, store.spans.begin[graph.launch.value()]);
  const auto after = std::upper_bound(steps.begin(), steps.end(), want, [](const auto& at, const trace::Step& step) {
    return at < std::pair(step.process, step.begin);
  });
  if (after == steps.begin()) return UINT32_MAX;
  const auto step = after - 1;
  return step->process == want.first && want.second < step->end ? static_cast<uint32_t>(step - steps.begin())
                                                                : UINT32_MAX;
}

/// Work whose launch is not in the file, by (process, correlation): what has a graph node or shares its id.
void AddUnlaunched(const trace::Store& store, const trace::Trees& trees, std::vector<GraphLaunch>& out) {
  if (trees.gpu_work_unlaunched == 0) return;
  struct Work {
    uint32_t process;
    uint32_t correlation;
    SpanRow row;
    bool node;
    auto key() const { return std::pair(process, correlation); }
  };
  std::vector<bool> linked(store.spans.size(), false);
  for (const auto& link : trees.launches) linked[link.work.value()] = true;
  std::vector<Work> all;
  for (size_t i = 0; i < store.gpu_args.size(); ++i) {
    const uint32_t row = store.gpu_args.row(i);
    const trace::GpuArgs& args = store.gpu_args.value(i);
    if (args.correlation == 0 || linked[row] || !trace::IsGpuWork(store.kind(row))) continue;
    all.push_back({store.track_of(row).process.value(), args.correlation, SpanRow(row), args.graph_node != 0});
  }
  std::sort(all.begin(), all.end(),
            [](const Work& a, const Work& b) { return std::tuple(a.key(), a.row) < std::tuple(b.key(), b.row); });
  for (size_t first = 0; first < all.size();) {
    size_t last = first;
    bool node = false;
    for (; last < all.size() && all[last].key() == all[first].key(); ++last) node = node || all[last].node;
    if (node || last - first > 1) {
      GraphLaunch graph{.process = trace::ProcessRow(all[first].process)};
      for (size_t i = first; i < last; ++i) graph.work.push_back(all[i].row);
      out.push_back(std::move(graph));
    }
    first = last;
  }
}

}  // namespace

bool IsGraphLaunch(std::string_view call) {
  return Has(call, "GraphLaunch");
}

bool IsWorkLaunch(std::string_view call) {
  if (IsGraphLaunch(call)) return false;
  return Has(call, "LaunchKernel") || Has(call, "LaunchCooperative") || Has(call, "ModuleLaunch") ||
         ((Has(call, "Memcpy") || Has(call, "Memset")) && Has(call, "Async"));
}

GraphToken GraphTokens::OfName(trace::StringId name, SpanKind kind) {
  const uint64_t key = static_cast<uint64_t>(name.value()) << 8 | static_cast<uint64_t>(kind);
  const auto [it, fresh] = known_.try_emplace(key);
  GraphToken& token = it->second;
  if (!fresh) return token;
  const std::string_view text = store_.text(name);
  token.kind = kind;
  token.name = name.value() + 1;
  token.family = Number("f" + FamilyOfName(text));
  token.stem = Number("s" + StemOfName(text));
  token.work = kind == SpanKind::kKernel ? ClassOfName(text) : KernelClass::kUnknown;
  return token;
}

GraphToken GraphTokens::OfCall(std::string_view call, const Surroundings& around) {
  GraphToken token;
  if (Has(call, "Memcpy")) {
    token.kind = SpanKind::kCopy;
  } else if (Has(call, "Memset")) {
    token.kind = SpanKind::kMemset;
  } else {
    token.work = ClassAround(around.op, around.module);
  }
  return token;
}

GraphToken GraphTokens::OfLearned(const trace::LearnedLaunch& launch) {
  GraphToken token;
  token.kind = launch.kind;
  if (!launch.family.valid()) {
    if (launch.kind == SpanKind::kKernel) token.work = ClassAround(launch.op, launch.module);
    return token;
  }
  const std::string_view family = store_.text(launch.family);
  token.name = kNoOthersName;
  token.family = Number("f" + std::string(family));
  token.stem = Number("s" + std::string(store_.text(launch.stem)));
  if (launch.kind == SpanKind::kKernel) token.work = ClassOfName(family);
  return token;
}

KernelClass GraphTokens::ClassAround(trace::StringId op, trace::StringId module) const {
  const KernelClass by_op = ClassOfName(store_.text(op));
  if (by_op != KernelClass::kUnknown) return by_op;
  const std::string_view path = store_.text(module);
  return ClassOfName(path.substr(path.rfind('/') + 1));
}

uint32_t GraphTokens::Number(std::string text) {
  return numbers_.try_emplace(std::move(text), static_cast<uint32_t>(numbers_.size() + 1)).first->second;
}

std::vector<GraphLaunch> FindGraphLaunches(const trace::Store& store, const trace::Trees& trees) {
  std::vector<GraphLaunch> out;
  std::vector<trace::LaunchLink> links;
  std::unordered_map<trace::StringId, bool> known;  // names of calls are few, calls are many
  for (const auto& link : trees.launches) {
    const auto [it, fresh] = known.try_emplace(store.spans.name[link.launch.value()], false);
    if (fresh) it->second = IsGraphLaunch(store.name(link.launch.value()));
    if (it->second) links.push_back(link);
  }
  const auto& begins = store.spans.begin;
  std::sort(links.begin(), links.end(),
            [](const auto& a, const auto& b) { return std::tuple(a.launch, a.work) < std::tuple(b.launch, b.work); });
  for (const auto& link : links) {
    if (out.empty() || out.back().launch != link.launch) {
      out.push_back({.process = store.track_of(link.launch.value()).process, .launch = link.launch});
    }
    out.back().work.push_back(link.work);
  }
  AddUnlaunched(store, trees, out);
  for (GraphLaunch& graph : out) {
    std::stable_sort(graph.work.begin(), graph.work.end(),
                     [&](SpanRow a, SpanRow b) { return begins[a.value()] < begins[b.value()]; });
    graph.step = StepOf(store, trees.steps, graph);
  }
  std::stable_sort(out.begin(), out.end(), [&](const GraphLaunch& a, const GraphLaunch& b) {
    return std::pair(a.process, begins[a.work.front().value()]) < std::pair(b.process, begins[b.work.front().value()]);
  });
  return out;
}

}  // namespace teller::tree
