#pragma once

#include <string>
#include <vector>

#include "base/status.hpp"

namespace teller::inject {

/// Folders below each root (itself included) that hold a label.json, in order of their names, each once however many
/// roots lead to it. Drafts (hidden folders, NAME.part) are passed over. Errors: kNotFound (no folder, no case in one
/// of them), kUnreadable (a folder below that cannot be listed).
base::Result<std::vector<std::string>> FindCases(const std::vector<std::string>& roots);

/// What is wrong with a case, one line "FILE: what" each; empty when it is whole: the form of its label, the inputs
/// that the label says show it, a window within the run (the hull of all inputs), inputs that can be read.
std::vector<std::string> CheckCase(const std::string& folder, unsigned threads);

}  // namespace teller::inject
