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
};

struct RunOptions {
  unsigned threads = 0;  ///< 0 = one per core
  base::Limits limits = {};
  base::Progress* progress = nullptr;
};

/// Reads everything usable into one store; spans sorted, log times resolved, conservation counted per file.
/// Files that cannot be used stay in Store::files with a note and a diagnostic.
/// Errors: kNotFound (nothing named exists, or nothing in it is a trace or a log), kUnreadable, kCancelled.
base::Result<trace::Store> ReadRun(const RunInputs& inputs, const RunOptions& options);

}  // namespace teller::ingest
