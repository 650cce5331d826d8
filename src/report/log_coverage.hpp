#pragma once

#include <cstdint>
#include <vector>

#include "trace/store.hpp"

namespace teller::report {

/// How much of one log was recognized, in lines. Lines joined to a record count with it; blank ones count nowhere.
struct LogCoverage {
  trace::FileRow file;
  uint64_t lines = 0;
  uint64_t unknown = 0;  ///< in no known grammar
  uint64_t printed = 0;  ///< program output: tables, rulers, banners that no logger wrote
  double unknown_share() const { return lines == 0 ? 0 : static_cast<double>(unknown) / static_cast<double>(lines); }
};

/// One entry a file with log records, in the order of the files.
std::vector<LogCoverage> LogCoverages(const trace::Store& store);

/// Sum over all files; its file is none.
LogCoverage TotalCoverage(const std::vector<LogCoverage>& files);

}  // namespace teller::report
