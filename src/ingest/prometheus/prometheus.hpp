#pragma once

#include <string_view>

#include "base/byte_source.hpp"
#include "base/limits.hpp"
#include "base/status.hpp"
#include "trace/store.hpp"

namespace teller::ingest {

/// True when the first bytes look like Prometheus or OpenMetrics text: nearly all whole lines that are no comments are
/// samples, or the text begins with HELP or TYPE. `whole` tells that `head` is all of the file.
bool LooksLikePrometheus(std::string_view head, bool whole);

/// Appends the samples of one file of Prometheus text, holding one scrape or several, to `store.counter_series` and
/// `store.counters`, and fills its File row (records_read counts lines that are not blank).
/// Time of a sample, the first that is told: its own timestamp, the mark before its scrape ("# scrape <epoch>"), or, in
/// a file of a single scrape, epoch digits in the file's name. Otherwise kNoTime: only the order of scrapes is known.
/// Memory: grows with the number of series and samples, not with the length of their labels.
/// Errors: kUnreadable; kBadFormat when no line of the file is a sample.
base::Status ReadPrometheus(base::ByteSource& source, trace::FileRow file, trace::Store& store,
                            const base::Limits& limits);

}  // namespace teller::ingest
