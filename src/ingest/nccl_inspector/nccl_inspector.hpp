#pragma once

#include <string_view>

#include "base/byte_source.hpp"
#include "base/limits.hpp"
#include "base/status.hpp"
#include "trace/store.hpp"

namespace teller::ingest {

/// True when the first bytes look like the output of NCCL's Inspector plugin.
bool LooksLikeInspector(std::string_view head);

/// Appends one process's NCCL Inspector output (JSON lines, format 4.0 to 4.3 and flat variants) to `store.comm_perf`
/// and fills its File row. Source: NCCL, plugins/profiler/inspector. Errors: kUnreadable.
base::Status ReadInspector(base::ByteSource& source, trace::FileRow file, trace::Store& store,
                           const base::Limits& limits);

}  // namespace teller::ingest
