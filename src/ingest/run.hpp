#pragma once

#include <string>
#include <vector>

#include "base/limits.hpp"
#include "base/progress.hpp"
#include "base/status.hpp"
#include "trace/store.hpp"

namespace teller::ingest {

/// What the user named. Directories are searched, patterns expanded; kinds are found by content.
struct RunInputs {
  std::vector<std::string> paths;  ///< files, directories, archives or glob patterns; "-" is standard input
  std::vector<std::string> logs;   ///< files to be read as logs whatever they look like
  /// Files of learned graphs (docs/reference/teller.graphs-1.md) that must be ones; also found among `paths`.
  std::vector<std::string> graphs = {};
};

struct RunOptions {
  unsigned threads = 0;  ///< 0 = one per core
  base::Limits limits = {};
  base::Progress* progress = nullptr;
};

/// Reads everything usable into one store; spans sorted, log times resolved, conservation counted per file.
/// Files that cannot be used stay in Store::files with a note and a diagnostic.
/// Errors, when nothing can be used: kNotFound (nothing named exists, or nothing in it is a trace or a log),
/// kUnreadable, kBadFormat (something in it is damaged: it may have been one). kCancelled; what is wrong with one of
/// RunInputs::graphs.
base::Result<trace::Store> ReadRun(const RunInputs& inputs, const RunOptions& options);

}  // namespace teller::ingest
