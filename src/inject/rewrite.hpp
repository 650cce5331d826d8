#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/status.hpp"
#include "engine/engine.hpp"
#include "retime/time_map.hpp"

namespace teller::inject {

/// What became of a file's events.
struct RewriteCounts {
  uint64_t moved = 0;    ///< spans with their new begin and duration
  uint64_t carried = 0;  ///< everything else with a time: moved along with the busiest thread
};

/// Writes a Chrome trace of the run again with the times of a replay: only the numbers of "ts" and "dur" change, all else
/// is copied byte for byte. `path` is where the file lies, `file` its row in the store. Bytes go to `write`, piece by piece.
/// Errors: kUnreadable, kUnsupported (not a Chrome trace, or more than 4 GB of text), kBadFormat, those of `write`.
base::Result<RewriteCounts> RewriteTrace(const engine::Run& run, const retime::TimeMap& map, const retime::Times& times,
                                         trace::FileRow file, const std::string& path,
                                         const std::function<base::Status(std::string_view)>& write);

}  // namespace teller::inject
