#pragma once

#include "cli/options.hpp"

namespace teller::cli {

/// Scores methods on labelled cases; writes the results' folder and prints its tables. Exit status of the program.
int RunScore(const CommonOptions& common, const LabScoreOptions& what);

}  // namespace teller::cli
