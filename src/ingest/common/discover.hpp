#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.hpp"
#include "base/status.hpp"

namespace teller::ingest {

/// Also reported by whoever opens a file that was found.
inline constexpr base::DiagnosticKind kUnreadableInput = {"input.unreadable", base::Severity::kError,
                                                          "the system refused to read a file"};

/// A file to look at. `path` may be a region of an archive (base::FileRegion), which tells nothing by its name.
struct Found {
  const std::string& place() const { return name.empty() ? path : name; }

  std::string path;            ///< to open
  std::string shown;           ///< to print: relative to the run directory when there is exactly one, else as given
  bool named = false;          ///< the user named it, it was not found in a directory
  bool as_log = false;         ///< to be read as a log whatever it looks like
  std::string name{};          ///< where it lies, for what names tell (rank, extension, folder); empty = path
  std::string_view special{};  ///< why it must not be opened (a pipe would block for ever); empty for regular files
};

/// Something that could not be looked at.
struct DiscoverProblem {
  const base::DiagnosticKind* kind = nullptr;
  base::Error error;
};

/// What was found, and what could not be.
struct Discovered {
  std::vector<Found> files;               ///< by path; a file is listed once, however often it was named
  std::vector<DiscoverProblem> problems;  ///< by path
};

/// Expands files, directories (recursively; names that begin with a dot are left out, links to directories are not
/// followed) and glob patterns. The result does not depend on the order of the arguments.
/// Diagnostics: input.missing, input.unreadable, input.unreadable_folder, input.broken_link, input.linked_folder,
/// input.link_inside.
Discovered Discover(const std::vector<std::string>& paths, const std::vector<std::string>& logs);

}  // namespace teller::ingest
