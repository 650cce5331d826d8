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

/// True when the first bytes look like OTLP spans as protobuf: one export request, several put together, or each behind
/// its length (a varint, or four bytes as the OpenTelemetry collector's file exporter writes them).
bool LooksLikeOtlpProtobuf(std::string_view head);

/// As ReadOtlpJson, for protobuf. The same spans give the same store in either form. Behind a frame that makes no sense
/// nothing can be found again: the rest is dropped with a diagnostic.
/// Memory: the spans, and the longest message (of messages put together: the longest part).
/// Errors: kUnreadable; kBadFormat when nothing in the file is OTLP.
base::Status ReadOtlpProtobuf(base::ByteSource& source, trace::FileRow file, trace::Store& store,
                              const base::Limits& limits);

}  // namespace teller::ingest
