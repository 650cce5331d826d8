#pragma once

#include <string>
#include <vector>

#include "base/status.hpp"

namespace teller::cli {

/// The laboratory's part in Python (folder `lab`): real engines, baselines, sets of cases.

/// The folder that holds the package: $TELLER_LAB_PATH, else beside or above this program (`lab` of a source tree,
/// `share/teller/lab` of an installed one). Errors: kNotFound, with what to do.
base::Result<std::string> FindLabPython();

/// Becomes `python3 -m lab ARGS`. Returns only when that is not possible: the exit status, after saying why.
int RunLabPython(const std::vector<std::string>& args);

/// A shell command that runs `python3 -m MODULE`; more words may be appended. Errors: those of FindLabPython.
base::Result<std::string> LabPythonCommand(const std::string& module);

/// What `python3 -m lab list` prints. Errors: those of FindLabPython; kUnreadable (it failed).
base::Result<std::string> ListOfLabPython();

}  // namespace teller::cli
