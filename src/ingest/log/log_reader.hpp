#pragma once

#include "base/byte_source.hpp"
#include "base/limits.hpp"
#include "base/status.hpp"
#include "trace/store.hpp"

namespace teller::ingest {

/// Appends the records of one log to `store.logs`, with stamps as written (year and zone still open), and fills its
/// File row (records_read counts lines). The grammar is found per line: several processes share one stream.
/// Errors: kUnreadable. Diagnostics: log.* for lines cut, over-long, not UTF-8, in no known grammar.
base::Status ReadLog(base::ByteSource& source, trace::FileRow file, trace::Store& store, const base::Limits& limits);

/// Attaches arrival times (case form: one epoch-ns integer per line of the log) to the records of `log`.
base::Status ReadLogArrivals(base::ByteSource& source, trace::FileRow arrivals, trace::FileRow log,
                             trace::Store& store);

/// Gives every record a time on the trace clock: resolves missing years and zones against the traces (and says so in a
/// diagnostic), corrects c10's sub-second digits, anchors relative clocks, lends neighbours' times.
/// Call once, after all files were read.
void ResolveLogTimes(trace::Store& store);

}  // namespace teller::ingest
