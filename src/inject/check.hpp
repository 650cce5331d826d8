#pragma once

#include <string>
#include <vector>

#include "base/status.hpp"

namespace teller::inject {

/// Folders below `root` (itself included) that hold a label.json, in order of their names. Errors: kNotFound.
base::Result<std::vector<std::string>> FindCases(const std::string& root);

/// What is wrong with a case, one line each; empty when it is whole: the form of its label, the inputs that the label
/// says show it, a window within the run (the hull of all inputs), inputs that can be read.
std::vector<std::string> CheckCase(const std::string& folder, unsigned threads);

}  // namespace teller::inject
