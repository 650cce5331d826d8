#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ingest/common/assemble.hpp"
#include "ingest/common/worker.hpp"
#include "ingest/nsys/names.hpp"
#include "ingest/nsys/session.hpp"
#include "ingest/run.hpp"

namespace teller::ingest::nsys {

/// What one export holds: blocks of spans in the order of its tables and rows, and what it tells about the recording.
struct Export {
  FileParts parts;
  Session session;
  std::vector<Naming> namings;  ///< threads named by NVTX
};

/// Reads the event tables of one export in chunks of row numbers, on several threads (there must be a worker for each;
/// the file may add some behind them). Chunks depend on the file alone. What is missing or damaged becomes a
/// diagnostic; only an unusable database is an error. Errors: kUnreadable, kBadFormat, kCancelled.
base::Result<Export> ReadExport(const std::string& path, trace::FileRow file,
                                std::vector<std::unique_ptr<Worker>>& workers, trace::Store& store,
                                const RunOptions& options);

}  // namespace teller::ingest::nsys
