#pragma once

#include <string_view>

#include "base/byte_source.hpp"
#include "base/limits.hpp"
#include "base/status.hpp"
#include "trace/store.hpp"

namespace teller::ingest {

/// True when the first bytes look like a Flight Recorder dump: JSON, or the recorder's own pickle.
bool LooksLikeFlightRecorder(std::string_view head);

/// Appends one rank's NCCL Flight Recorder dump (JSON, or a pickle that is read without executing anything) to
/// `store.comm_records` and fills its File row. Errors: kBadFormat, kUnsupported (a pickle that builds objects),
/// kLimit, kUnreadable.
base::Status ReadFlightRecorder(base::ByteSource& source, trace::FileRow file, trace::Store& store,
                                const base::Limits& limits);

/// Of several dumps of one rank, only the one with the latest time in it (then the highest sequence number, then the
/// first in the list) keeps its records: what the earlier ones show unfinished has ended since. Call after all were
/// read. Diagnostics: flight-recorder.earlier, one a dump that is not used.
void KeepLatestDumps(trace::Store& store);

}  // namespace teller::ingest
