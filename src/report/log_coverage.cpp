#include "report/log_coverage.hpp"

#include <map>

namespace teller::report {

std::vector<LogCoverage> LogCoverages(const trace::Store& store) {
  std::map<uint32_t, LogCoverage> files;
  for (const trace::LogRecord& log : store.logs) {
    LogCoverage& file = files[log.file.value()];
    file.file = log.file;
    file.lines += log.lines;
    if (log.source == trace::LogSource::kUnknown) file.unknown += log.lines;
    if (log.source == trace::LogSource::kProgramOutput) file.printed += log.lines;
  }
  std::vector<LogCoverage> out;
  out.reserve(files.size());
  for (const auto& [row, file] : files) out.push_back(file);
  return out;
}

LogCoverage TotalCoverage(const std::vector<LogCoverage>& files) {
  LogCoverage total;
  for (const LogCoverage& file : files) {
    total.lines += file.lines;
    total.unknown += file.unknown;
    total.printed += file.printed;
  }
  return total;
}

}  // namespace teller::report
