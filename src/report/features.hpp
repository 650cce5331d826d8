#pragma once

#include <functional>
#include <string_view>

#include "base/status.hpp"
#include "engine/engine.hpp"

namespace teller::report {

/// What was read, as JSON lines for programs that judge runs themselves (schema "teller.features/1",
/// docs/reference/features.md): the run, its steps, what ran in each step by name, collectives with each rank's
/// arrival, log templates and records. Nothing of it is a judgement. Order: as listed, so that a reader may stop early.
/// `steps_only` stops behind the steps. Errors: those of `write`.
base::Status WriteFeatures(const engine::Run& run, const std::function<base::Status(std::string_view)>& write,
                           bool steps_only = false);

}  // namespace teller::report
