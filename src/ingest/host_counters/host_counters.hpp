#pragma once

#include <string_view>

#include "base/byte_source.hpp"
#include "base/limits.hpp"
#include "base/status.hpp"
#include "trace/store.hpp"

namespace teller::ingest {

/// True when one line of JSON is a sample of host counters: an object with a time and nothing but numbers, objects of
/// numbers, and short texts that name a process or its state.
bool LooksLikeHostCounters(std::string_view line);

/// Appends the samples of a file of JSON lines to `store.counter_series` and `store.counters`, and fills its File row:
/// records_read counts the fields of the lines other than the time.
/// A number is a counter of the machine, or of the process that the line names; an object of numbers is one counter a
/// process. Kinds are known by name; a counter of unknown name that never falls and does grow is taken as cumulative.
/// Errors: kUnreadable; kBadFormat when no line could be used.
base::Status ReadHostCounters(base::ByteSource& source, trace::FileRow file, trace::Store& store,
                              const base::Limits& limits);

}  // namespace teller::ingest
