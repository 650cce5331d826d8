#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "engine/structures.hpp"
#include "report/page.hpp"

namespace teller::report {

/// Fields that list what was named and not used, with the reason, what was lost first; a few and a count, all with
/// TextOptions::all.
void AddSkipped(Page& page, const std::vector<engine::Structures::Skipped>& skipped);

/// Members "skipped" (paths), "skipped_why" (parallel to it) and "lost_input" (runs of which something was lost).
void AddSkipped(nlohmann::ordered_json& out, const std::vector<engine::Structures::Skipped>& skipped,
                const std::vector<std::string>& lost);

}  // namespace teller::report
