#pragma once

#include <string_view>
#include <vector>

#include "base/byte_source.hpp"
#include "ingest/run.hpp"

namespace teller::ingest {

/// True when the first bytes look like a Chrome-trace JSON object or array.
bool LooksLikeKineto(std::string_view head);

/// One trace file to read; its File row exists already.
struct KinetoInput {
  trace::FileRow file;
  std::string path;
};

/// Reads Chrome-trace JSON files into `store` in windows, with several threads, and sorts the spans of all of them.
/// Same input, same store, whatever the thread count. Fills the File rows (conservation).
/// Errors of one file become a note and a diagnostic of that file. Errors: kCancelled.
base::Status ReadKineto(const std::vector<KinetoInput>& inputs, trace::Store& store, const RunOptions& options);

}  // namespace teller::ingest
