#pragma once

#include "cli/options.hpp"

namespace teller::cli {

/// True for the verbs of the fault laboratory.
bool IsLab(const Command& command);
/// Runs one of them; the result is the exit status of the program.
int RunLab(const Command& command);

}  // namespace teller::cli
