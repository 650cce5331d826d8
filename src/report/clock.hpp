#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/engine.hpp"
#include "report/page.hpp"

namespace teller::report {

/// "clocks of the ranks: collectives, +/- 1.2 us"; empty when nothing is known about clocks.
std::string ClockLine(const engine::Run& run);

/// `input.clock`: method, error and how each rank's clock lies against the reference. `domain` as in
/// Summary::clock_domain.
nlohmann::ordered_json ClockToJson(const engine::Run& run, const std::string& domain);

/// A table of the same, where there is more than one rank.
void AddClocks(const engine::Run& run, Page& page);

}  // namespace teller::report
