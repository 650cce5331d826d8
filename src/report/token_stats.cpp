#include "report/token_stats.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "report/skipped.hpp"
#include "report/table.hpp"
#include "report/token_names.hpp"
#include "report/tokens_json.hpp"
#include "report/units.hpp"

namespace teller::report {

using Json = nlohmann::ordered_json;

namespace {

constexpr size_t kShownTokens = 20;
constexpr size_t kTextNodes = 12;  // of a fragment
constexpr size_t kJsonNodes = 200;

double PerStep(uint64_t amount, uint64_t steps) {
  return steps == 0 ? 0 : static_cast<double>(amount) / static_cast<double>(steps);
}

double Share(uint64_t part, uint64_t of) {
  return of == 0 ? 0 : static_cast<double>(part) / static_cast<double>(of);
}

Json CountsToJson(const engine::TokenCounts& counts) {
  return {{"files", counts.files},
          {"steps", counts.steps},
          {"nodes", counts.nodes},
          {"structure_nodes", counts.structure},
          {"tokens", counts.tokens},
          {"nodes_per_step", PerStep(counts.nodes, counts.steps)},
          {"tokens_per_step", PerStep(counts.tokens, counts.steps)},
          {"saved", counts.saved()},
          {"unknown_nodes", counts.unknown}};
}

void AddCounts(std::string name, const engine::TokenCounts& counts, Table& table) {
  table.Row({std::move(name), Count(counts.files), Count(counts.steps), Count(counts.nodes), Count(counts.tokens),
             fmt::format("{:.1f}", PerStep(counts.nodes, counts.steps)),
             fmt::format("{:.1f}", PerStep(counts.tokens, counts.steps)), fmt::format("{:.2f}%", 100 * counts.saved()),
             fmt::format("{:.2f}%", 100 * Share(counts.unknown, counts.nodes))});
}

}  // namespace

std::string TrainingToText(const engine::Training& training, const std::string& path, const TextOptions& options) {
  Page page(options);
  page.Field("written",
             fmt::format("{}: {} names in {} classes, {} merges", path, Count(NameCount(training.vocabulary)),
                         training.vocabulary.class_count(), Count(training.vocabulary.merge_count())));
  page.Field(
      "trained on",
      fmt::format("{} of {}, {} nodes ({} in sequences that differ), {} tokens left", Count(training.files, "file"),
                  fmt::format("{}", fmt::join(training.engines, ", ")), Count(training.stats.weighted_nodes),
                  Count(training.stats.nodes), Count(training.stats.tokens)));
  AddSkipped(page, training.skipped);
  return page.Take();
}

std::string TokenStatsToText(const engine::Structures& structures, const engine::NamedVocabulary& vocabulary,
                             const engine::TokenStats& stats, const TextOptions& options) {
  Page page(options);
  page.Field("vocabulary",
             fmt::format("{}: {} names, {} merges", vocabulary.name, Count(NameCount(vocabulary.vocabulary)),
                         Count(vocabulary.vocabulary.merge_count())));
  page.Field("spans", fmt::format("{} in traced processes; {} nodes in {} segments outside of steps",
                                  Count(structures.spans), Count(stats.outside.nodes), Count(stats.outside.steps)));
  AddSkipped(page, structures.skipped);
  page.Gap();
  Table table({"engine", "files", "steps", "nodes", "tokens", "nodes/step", "tok/step", "saved", "unknown"});
  for (const engine::EngineCounts& row : stats.engines) AddCounts(row.engine, row.counts, table);
  AddCounts("all", stats.steps, table);
  table.AddTo(page);
  page.Gap();
  page.Head("tokens that cover most nodes");
  const size_t shown = options.all ? stats.used.size() : std::min(stats.used.size(), kShownTokens);
  for (size_t i = 0; i < shown; ++i) {
    const engine::TokenUse& use = stats.used[i];
    page.Line(0, fmt::format("{:>6}  {} x {}, {:.1f} % of all nodes", use.id, Count(use.count),
                             Count(vocabulary.vocabulary.node_count(use.id), "node"),
                             100 * Share(use.nodes, stats.steps.nodes)));
    page.Paragraph(8, FragmentName(vocabulary.vocabulary, use.id, kTextNodes), Ink::kDim);
  }
  if (shown < stats.used.size())
    page.Line(0, fmt::format("{} more (--all shows them)", Count(stats.used.size() - shown)));
  return page.Take();
}

Json TokenStatsToJson(const engine::Structures& structures, const engine::NamedVocabulary& vocabulary,
                      const engine::TokenStats& stats, bool all) {
  Json out;
  out["schema"] = "teller.tpe-stats/1";
  out["vocabulary"] = {{"name", vocabulary.name},
                       {"fingerprint", HexText(vocabulary.fingerprint)},
                       {"entries", vocabulary.vocabulary.size()},
                       {"merges", vocabulary.vocabulary.merge_count()}};
  out["spans"] = structures.spans;
  AddSkipped(out, structures.skipped, structures.lost);
  out["steps"] = CountsToJson(stats.steps);
  Json engines = Json::array();
  for (const engine::EngineCounts& row : stats.engines) {
    Json engine = {{"engine", row.engine}};
    engine.update(CountsToJson(row.counts));
    engines.push_back(std::move(engine));
  }
  out["engines"] = std::move(engines);
  out["outside_steps"] = {{"segments", stats.outside.steps},
                          {"nodes", stats.outside.nodes},
                          {"structure_nodes", stats.outside.structure},
                          {"tokens", stats.outside.tokens}};
  out["tokens_used"] = stats.used.size();
  Json used = Json::array();
  const size_t shown = all ? stats.used.size() : std::min(stats.used.size(), kShownTokens);
  for (size_t i = 0; i < shown; ++i) {
    const engine::TokenUse& use = stats.used[i];
    used.push_back({{"id", use.id},
                    {"count", use.count},
                    {"nodes", vocabulary.vocabulary.node_count(use.id)},
                    {"covers", Share(use.nodes, stats.steps.nodes)},
                    {"fragment", FragmentName(vocabulary.vocabulary, use.id, kJsonNodes)}});
  }
  out["most_used"] = std::move(used);
  return out;
}

}  // namespace teller::report
