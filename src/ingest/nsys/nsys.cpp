#include "ingest/nsys/nsys.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/parallel.hpp"
#include "ingest/common/assemble.hpp"
#include "ingest/common/decimal.hpp"
#include "ingest/nsys/database.hpp"
#include "ingest/nsys/diagnostics.hpp"
#include "ingest/nsys/identity.hpp"
#include "ingest/nsys/scan.hpp"

namespace teller::ingest {

DatabaseKind KindOfDatabase(const std::string& path) {
  static constexpr std::array kOwnTables = {"META_DATA_EXPORT",
                                            "EXPORT_META_DATA",
                                            "ANALYSIS_DETAILS",
                                            "CUPTI_ACTIVITY_KIND_KERNEL",
                                            "CUPTI_ACTIVITY_KIND_RUNTIME",
                                            "NVTX_EVENTS"};
  static constexpr uintmax_t kSmallestPage = 512;
  const auto database = nsys::Database::Open(path, nullptr);
  if (!database) {
    std::error_code error;
    const bool page = std::filesystem::file_size(path, error) >= kSmallestPage && !error;
    return page && database.error().code == base::Code::kBadFormat ? DatabaseKind::kDamaged : DatabaseKind::kOther;
  }
  const bool own = std::any_of(kOwnTables.begin(), kOwnTables.end(),
                               [&database](const char* name) { return database->Find(name) != nullptr; });
  return own ? DatabaseKind::kExport : DatabaseKind::kOther;
}

base::Status ReadNsys(const std::vector<NsysInput>& inputs, trace::Store& store, const RunOptions& options) {
  if (inputs.empty()) return {};
  const unsigned threads = base::ThreadCount(options.threads);
  std::vector<std::unique_ptr<Worker>> workers;  // one a thread; what a file adds stands behind
  for (unsigned i = 0; i < threads; ++i) workers.push_back(std::make_unique<Worker>());
  std::vector<nsys::Export> exports;
  std::vector<FileParts> files;
  for (const auto& input : inputs) {
    auto read = nsys::ReadExport(input.path, input.file, workers, store, options);
    if (!read) {
      if (read.error().code == base::Code::kCancelled) return read.error();
      store.diagnostics.Report(nsys::kUnreadable, input.file, read.error().message);
      store.files[input.file.value()].note = read.error().message;
      continue;
    }
    // Kineto files have as much again: the sum of both stays inside int64.
    CheckTotal(read->parts, kMaxNanos / static_cast<trace::Nanos>(inputs.size()), store.diagnostics);
    files.push_back(std::move(read->parts));
    read->parts.file = input.file;
    exports.push_back(std::move(*read));
  }
  const auto assembled = Assemble(files, workers, store, threads, options.limits.max_spans);
  for (size_t i = 0; i < exports.size(); ++i) {
    nsys::ResolveProcesses(exports[i], assembled.first_tracks[i], assembled.first_tracks[i + 1], assembled.pids, store);
  }
  return {};
}

}  // namespace teller::ingest
