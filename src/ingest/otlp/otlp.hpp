#pragma once

#include <string_view>

#include "base/byte_source.hpp"
#include "base/limits.hpp"
#include "base/status.hpp"
#include "trace/store.hpp"

namespace teller::ingest {

/// True when the first bytes look like OTLP spans in JSON: an export request, a line of them, or a bare list of spans.
bool LooksLikeOtlpJson(std::string_view head);

/// Appends the spans of a file of OTLP in JSON to the store (as spans of category "otlp", instants for their events and
/// request records) and fills its File row (records_read counts spans and their events). The file may hold one export
/// request, one a line as collectors write them, or bare lists of spans.
/// Memory: the spans, and the longest export request.
/// Errors: kUnreadable; kBadFormat when nothing in the file is OTLP.
base::Status ReadOtlpJson(base::ByteSource& source, trace::FileRow file, trace::Store& store,
                          const base::Limits& limits);

}  // namespace teller::ingest
