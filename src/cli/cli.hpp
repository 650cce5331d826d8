#pragma once

namespace teller::cli {

/// The program: reads the arguments, runs one command, prints its result on stdout and all talk on stderr.
/// Returns the exit status (docs/reference/exit-codes.md). Never throws.
int Main(int argc, const char* const* argv);

}  // namespace teller::cli
