#pragma once

#include "base/diagnostics.hpp"

/// What the Chrome-trace reader reports about its input.
namespace teller::ingest::kineto {

using base::DiagnosticKind;
using base::Severity;

inline constexpr DiagnosticKind kUnreadableTrace = {"trace.unreadable", Severity::kError,
                                                    "the system refused to read the file"};
inline constexpr DiagnosticKind kTruncated = {
    "trace.truncated", Severity::kDataLoss,
    "the file ends in the middle; everything up to the last whole event was read; the writer probably died"};
inline constexpr DiagnosticKind kUnclosed = {"trace.unclosed", Severity::kInfo,
                                             "the event array is not closed; all events in it are whole"};
inline constexpr DiagnosticKind kDamagedGzip = {
    "trace.damaged_gzip", Severity::kDataLoss,
    "the compressed data ends early or is damaged; what came before was read"};
inline constexpr DiagnosticKind kNoEvents = {"trace.no_events", Severity::kDataLoss,
                                             "no event array was found; is this a trace?"};
inline constexpr DiagnosticKind kBrokenTop = {
    "trace.bad_json", Severity::kDataLoss, "the text around the events is not JSON; the rest of the file was not read"};
inline constexpr DiagnosticKind kTrailing = {"trace.trailing_text", Severity::kNotice,
                                             "text behind the end of the document was ignored"};
inline constexpr DiagnosticKind kOversize = {"trace.event_too_long", Severity::kDataLoss,
                                             "an event is longer than the limit, or its quotes do not match; skipped"};
inline constexpr DiagnosticKind kTooDeep = {"trace.event_too_deep", Severity::kDataLoss,
                                            "an event is nested deeper than the limit; dropped"};
inline constexpr DiagnosticKind kBadEvent = {"trace.bad_event", Severity::kDataLoss,
                                             "an event is not valid JSON; dropped"};
inline constexpr DiagnosticKind kNotObject = {"trace.not_an_event", Severity::kDataLoss,
                                              "an element of the event array is no object; dropped"};
inline constexpr DiagnosticKind kEmptyElement = {
    "trace.empty_element", Severity::kInfo,
    "an empty element (some writers end their array with one); nothing is lost"};
inline constexpr DiagnosticKind kInvalidUtf8 = {
    "trace.invalid_utf8", Severity::kNotice,
    "text is not valid UTF-8 or holds raw control characters; they were replaced"};
inline constexpr DiagnosticKind kBadTime = {"trace.bad_time", Severity::kDataLoss,
                                            "\"ts\" is missing or not a number of microseconds; the event was dropped"};
inline constexpr DiagnosticKind kHugeTime = {"trace.huge_time", Severity::kDataLoss,
                                             "\"ts\" is beyond any date, or before 1970; the event was dropped"};
inline constexpr DiagnosticKind kBadDuration = {
    "trace.bad_duration", Severity::kDataLoss,
    "\"dur\" is missing, not a number, or more than 30 days; the span was kept with duration 0"};
inline constexpr DiagnosticKind kLongMark = {
    "trace.long_mark", Severity::kDataLoss,
    "a beginning and its end are more than 30 days apart; the span was kept with duration 0"};
inline constexpr DiagnosticKind kBadAmount = {
    "trace.bad_amount", Severity::kNotice,
    "bytes, elements or a sequence number is no believable count; it was taken as not told"};
inline constexpr DiagnosticKind kNegativeDuration = {"trace.negative_duration", Severity::kDataLoss,
                                                     "\"dur\" is negative; the span was kept with duration 0"};
inline constexpr DiagnosticKind kBadField = {"trace.bad_field", Severity::kDataLoss,
                                             "a name, category, pid or tid has the wrong type; it was taken as empty"};
inline constexpr DiagnosticKind kNoPhase = {"trace.no_phase", Severity::kDataLoss,
                                            "\"ph\" is missing or not a text of one letter; the event was dropped"};
inline constexpr DiagnosticKind kUnusedPhase = {
    "trace.unused_phase", Severity::kNotice, "events of a phase that is not used (objects, samples, marks); dropped"};
inline constexpr DiagnosticKind kUnmatchedEnd = {"trace.unmatched_end", Severity::kNotice,
                                                 "an end without a beginning (recording started in between); dropped"};
inline constexpr DiagnosticKind kUnmatchedBegin = {
    "trace.unmatched_begin", Severity::kNotice,
    "a beginning without an end; the span was kept up to the end of the recording"};
inline constexpr DiagnosticKind kBadCounter = {"trace.bad_counter", Severity::kNotice,
                                               "a counter without a numeric value; dropped"};
inline constexpr DiagnosticKind kBadMetadata = {
    "trace.bad_metadata", Severity::kNotice,
    "a metadata event of unknown name or without a value; nothing depends on it"};
inline constexpr DiagnosticKind kBadBase = {
    "trace.bad_base_time", Severity::kDataLoss,
    "baseTimeNanoseconds is not a believable time; times of this file are relative to an unknown start"};
inline constexpr DiagnosticKind kLongArgument = {"trace.long_argument", Severity::kInfo,
                                                 "an argument is longer than is kept; the event was kept without it"};
inline constexpr DiagnosticKind kBadRank = {
    "trace.bad_rank", Severity::kNotice, "distributedInfo has a rank or world size that is no small number; ignored"};

}  // namespace teller::ingest::kineto
