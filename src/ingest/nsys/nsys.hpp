#pragma once

#include <string>
#include <vector>

#include "ingest/run.hpp"

namespace teller::ingest {

/// What an SQLite file turns out to be.
enum class DatabaseKind : uint8_t {
  kExport,   ///< it has a table that only exports of Nsight Systems have
  kOther,    ///< of some other program, or no database at all
  kDamaged,  ///< its tables cannot be listed
};
DatabaseKind KindOfDatabase(const std::string& path);

/// One export to read; its File row exists already.
struct NsysInput {
  trace::FileRow file;
  std::string path;
};

/// Reads SQLite exports of Nsight Systems (schema 2.9 to 3.25, columns are found by name) into `store`, with several
/// threads, behind what it holds already. Format: docs/reference/nsys.md.
/// Same input, same store, whatever the thread count. Fills the File rows (conservation): a record is a row of an event
/// table that is read. Errors of one file become a note and a diagnostic of that file. Errors: kCancelled.
base::Status ReadNsys(const std::vector<NsysInput>& inputs, trace::Store& store, const RunOptions& options);

}  // namespace teller::ingest
