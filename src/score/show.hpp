#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "score/score.hpp"

namespace teller::score {

/// Everything as one object, schema "teller.scores/1" (docs/reference/teller.scores-1.schema.json).
nlohmann::ordered_json ScoresToJson(const Scores& scores);
/// Tables for people: all figures that matter, by method; then by group; losses and necessity of each method.
std::string ScoresToText(const Scores& scores);
/// The same with bars, one page that needs nothing else.
std::string ScoresToHtml(const Scores& scores);

}  // namespace teller::score
