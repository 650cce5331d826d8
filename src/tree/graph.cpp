#include "tree/graph.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "tree/graph_match.hpp"

namespace teller::tree {

namespace {

using trace::GraphOrigin;

constexpr base::DiagnosticKind kGivenUp{
    "tree.graph_bound", base::Severity::kNotice,
    "graph replays were not aligned to a capture: the run has more different ones than are looked "
    "at; their kernels have no module and no operator"};

class Attributor {
 public:
  Attributor(trace::Store& store, trace::Trees& trees)
      : store_(store),
        trees_(trees),
        tokens_(store),
        launches_(FindGraphLaunches(store, trees)),
        references_(launches_.empty() ? std::vector<GraphReference>() : References()),
        matcher_(store, references_) {}

  void Run() {
    for (size_t first = 0; first < launches_.size();) {
      size_t last = first + 1;
      const auto same_step = [&](const GraphLaunch& launch) {
        return launch.process == launches_[first].process && launch.step == launches_[first].step &&
               launch.step != UINT32_MAX;
      };
      while (last < launches_.size() && same_step(launches_[last])) ++last;
      Step(first, last);
      first = last;
    }
    std::sort(trees_.graph_origins.begin(), trees_.graph_origins.end(),
              [](const GraphOrigin& a, const GraphOrigin& b) { return a.work < b.work; });
    InternParts();
    if (matcher_.given_up() > 0) store_.diagnostics.Report(kGivenUp, {}, {}, matcher_.given_up());
  }

 private:
  /// Of this run, then what earlier runs showed.
  std::vector<GraphReference> References() {
    std::vector<GraphReference> all = FindGraphReferences(store_, trees_, tokens_);
    AddLearned(store_, tokens_, all);
    return all;
  }

  /// All graph launches of one step: together against the captures of one pass, else each by itself.
  void Step(size_t first, size_t last) {
    const bool together = last - first > 1 && !references_.empty();
    const Attribution* all = together ? Find(first, last, true) : nullptr;
    size_t at = 0;
    for (size_t i = first; i < last; ++i) {
      const GraphLaunch& launch = launches_[i];
      trace::GraphReplay replay{
          .process = launch.process, .launch = launch.launch, .work = static_cast<uint32_t>(launch.work.size())};
      const Attribution* one = all == nullptr && !references_.empty() ? Find(i, i + 1, false) : all;
      if (all == nullptr) at = 0;
      for (const trace::SpanRow work : launch.work) {
        if (one == nullptr) break;
        GraphOrigin origin = (*one)[at++];
        if (origin.confidence <= 0) continue;
        origin.work = work;
        trees_.graph_origins.push_back(origin);
        ++replay.attributed;
      }
      trees_.graph_replays.push_back(replay);
    }
  }

  /// Steps replay the same graphs again and again: each different sequence is aligned once.
  const Attribution* Find(size_t first, size_t last, bool joined) {
    GraphReplayed replay{.process = launches_[first].process};
    if (launches_[first].step != UINT32_MAX) replay.batch = trees_.steps[launches_[first].step].batch;
    std::vector<uint32_t> key{replay.process.value(), static_cast<uint32_t>(replay.batch), joined};
    for (size_t i = first; i < last; ++i) {
      for (const trace::SpanRow work : launches_[i].work) {
        replay.tokens.push_back(tokens_.OfName(store_.spans.name[work.value()], store_.kind(work.value())));
        replay.streams.push_back(store_.spans.track[work.value()].value());
        key.push_back(replay.tokens.back().name);
        key.push_back(replay.streams.back());
      }
    }
    const auto [it, fresh] = known_.try_emplace(std::move(key));
    if (fresh) it->second = matcher_.Match(replay, joined);
    return it->second ? &*it->second : nullptr;
  }

  /// The call tree has a node for each part of a path, and names are strings of the store.
  void InternParts() {
    std::set<trace::StringId> modules;
    for (const GraphOrigin& origin : trees_.graph_origins) modules.insert(origin.module);
    for (const trace::StringId module : modules) {
      std::string_view rest = store_.text(module);
      while (!rest.empty()) {
        const std::string_view part = rest.substr(0, rest.find('/'));
        store_.strings.Intern(part);
        rest.remove_prefix(std::min(rest.size(), part.size() + 1));
      }
    }
  }

  trace::Store& store_;
  trace::Trees& trees_;
  GraphTokens tokens_;
  std::vector<GraphLaunch> launches_;
  std::vector<GraphReference> references_;
  GraphMatcher matcher_;
  std::map<std::vector<uint32_t>, std::optional<Attribution>> known_;
};

}  // namespace

void AttributeGraphs(trace::Store& store, trace::Trees& trees) {
  Attributor(store, trees).Run();
}

}  // namespace teller::tree
