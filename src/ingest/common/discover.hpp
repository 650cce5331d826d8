#pragma once

#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "base/status.hpp"

namespace teller::ingest {

/// A file to look at.
struct Found {
  std::string path;     ///< to open
  std::string shown;    ///< to print: relative to the run directory when there is exactly one, else as given
  bool named = false;   ///< the user named it, it was not found in a directory
  bool as_log = false;  ///< to be read as a log whatever it looks like
};

/// Expands files, directories (recursively; names that begin with a dot are left out) and glob patterns.
/// Order: as named, inside a directory by path; a file is listed once. What does not exist is appended to `missing`.
std::vector<Found> Discover(const std::vector<std::string>& paths, const std::vector<std::string>& logs,
                            std::vector<base::Error>& missing);

}  // namespace teller::ingest
