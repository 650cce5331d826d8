#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "score/truth.hpp"

namespace teller::score {

/// What an earlier run read: the neutral name of each case, by which its features lie in `folder`/features. None when
/// `folder` is new or empty. Errors: kUsage when one of the cases is not among them or has changed since, or when
/// something else lies there.
base::Result<std::optional<std::vector<std::string>>> NamesRead(const std::string& folder,
                                                                const std::vector<Truth>& cases);

/// Notes that these cases were read as a whole. Errors: kUnreadable.
base::Status NoteReads(const std::string& folder, const std::vector<Truth>& cases,
                       const std::vector<std::string>& names);

}  // namespace teller::score
