#pragma once

#include "cli/options.hpp"

namespace teller::cli {

/// Whether the command is one of `teller tpe`.
bool IsTpe(const Command& command);

/// Runs it. Returns the exit status.
int RunTpe(const Command& command);

}  // namespace teller::cli
