#pragma once

#include <vector>

#include "locate/coverage.hpp"
#include "trace/diagnosis.hpp"

namespace teller::locate {

/// Times at which a profiler held up serving, by `notes`, widened by what the stamps of log lines may be off. What
/// happens then is the observer's doing.
Coverage ObservedTimes(const std::vector<trace::Note>& notes);

}  // namespace teller::locate
