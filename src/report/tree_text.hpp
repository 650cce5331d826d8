#pragma once

#include <string>

#include "engine/engine.hpp"
#include "report/call_tree.hpp"
#include "report/page.hpp"

namespace teller::report {

struct TreeTextOptions {
  TextOptions text;
  unsigned depth = 0;         ///< levels below a lane; 0 = no bound
  double hide_below = 0.005;  ///< calls that take a smaller part of their lane are summed up; 0 = show all
};

/// The call tree of a scope, one line a call: total time, self time, count, name; repeats are one line.
/// A run of interpreter frames that only call each other is one line too.
std::string CallTreeToText(const engine::Run& run, const CallTree& tree, const TreeTextOptions& options);

/// The steps of a run by process: index, kind, shape, gap and duration; the longest ones when there are many.
std::string StepsToText(const engine::Run& run, std::optional<int> rank, const TextOptions& options);

/// One line about a step: process, index, kind, shape, duration.
std::string StepHeadToText(const engine::Run& run, const trace::Step& step, const TextOptions& options);

/// Counts, wall time of each stage and peak memory of this process (`peak_bytes`).
std::string StatsToText(const engine::Run& run, uint64_t peak_bytes, const TextOptions& options);

}  // namespace teller::report
