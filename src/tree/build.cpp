#include "tree/build.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "tree/collectives.hpp"
#include "tree/graph.hpp"
#include "tree/launch.hpp"
#include "tree/nesting.hpp"
#include "tree/steps.hpp"

namespace teller::tree {

namespace {

constexpr base::DiagnosticKind kMissingRanks{
    "tree.missing_ranks", base::Severity::kNotice,
    "the job has ranks without a trace here; who is late, and whether a link is slow, "
    "cannot be told without them"};
constexpr base::DiagnosticKind kDuplicateRank{
    "tree.duplicate_rank", base::Severity::kNotice,
    "several traces claim one rank; they are taken for replicas and not compared "
    "across ranks"};

/// Says which ranks are missing or claimed twice: both change what can be concluded across ranks.
void ReportRanks(trace::Store& store) {
  std::map<int, size_t> ranks;
  int world = 0;
  for (const auto& process : store.processes) {
    if (!process.rank.has_value()) continue;
    if (++ranks[*process.rank] == 2) {
      store.diagnostics.Report(kDuplicateRank, process.file, "rank " + std::to_string(*process.rank));
    }
    world = std::max(world, process.world_size.value_or(0));
  }
  if (ranks.empty() || world <= static_cast<int>(ranks.size())) return;
  store.diagnostics.Report(kMissingRanks, {},
                           std::to_string(ranks.size()) + " of " + std::to_string(world) + " ranks are here",
                           static_cast<uint64_t>(world) - ranks.size());
}

}  // namespace

trace::Trees Build(trace::Store& store, unsigned threads) {
  ReportRanks(store);
  trace::Trees trees;
  Nest(store, threads);
  MatchCollectives(store, trees);  // puts the store on one clock: before all that keeps times
  LinkLaunches(store, trees);
  trees.steps = FindSteps(store);
  AttributeGraphs(store, trees);
  return trees;
}

}  // namespace teller::tree
