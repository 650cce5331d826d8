#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/sweep.hpp"
#include "engine/token_stats.hpp"
#include "engine/training.hpp"
#include "engine/vocabulary.hpp"
#include "report/page.hpp"

namespace teller::report {

/// What was learned, and from what.
std::string TrainingToText(const engine::Training& training, const std::string& path, const TextOptions& options);

/// Nodes, tokens and what is saved by engine; the most used tokens as fragments of the tree.
std::string TokenStatsToText(const engine::Structures& structures, const engine::NamedVocabulary& vocabulary,
                             const engine::TokenStats& stats, const TextOptions& options);
/// Schema "teller.tpe-stats/1" (docs/reference/teller.tokens-1.md).
nlohmann::ordered_json TokenStatsToJson(const engine::Structures& structures, const engine::NamedVocabulary& vocabulary,
                                        const engine::TokenStats& stats, bool all);

/// The table of methods, and of engines by vocabulary.
std::string SweepToText(const engine::Sweep& sweep, const TextOptions& options);
/// Schema "teller.tpe-sweep/1".
nlohmann::ordered_json SweepToJson(const engine::Sweep& sweep);

}  // namespace teller::report
