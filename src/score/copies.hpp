#pragma once

#include <filesystem>
#include <string>
#include <system_error>

#include "base/status.hpp"

namespace teller::score {

base::Error CannotWrite(const std::filesystem::path& path, const std::error_code& error);

/// True for what belongs to a case but is no input: label, evidence, client truth, remarks.
bool IsTruthFile(const std::string& name);

/// Copies the inputs of a case; links are followed, so that no name of the origin is left. With `link` files get a
/// second name where that is possible, which costs nothing. Errors: kUnreadable.
base::Status CopyInputs(const std::filesystem::path& from, const std::filesystem::path& to, bool link);

}  // namespace teller::score
