#pragma once

#include "base/diagnostics.hpp"

namespace teller::ingest::log {

inline constexpr base::DiagnosticKind kLineCut = {"log.line-cut", base::Severity::kDataLoss,
                                                  "a log line is longer than the limit; its end was dropped"};
inline constexpr base::DiagnosticKind kTooManyRecords = {"log.too-many-records", base::Severity::kDataLoss,
                                                         "the logs have more records than are held in memory; the "
                                                         "later lines were dropped: give the part around the incident"};
inline constexpr base::DiagnosticKind kRequestCut = {
    "log.request-cut", base::Severity::kDataLoss,
    "a line about a finished request is longer than the limit and its times are not in what was kept"};
inline constexpr base::DiagnosticKind kRecordCut = {
    "log.record-cut", base::Severity::kNotice,
    "a record of several lines is longer than the limit; later lines are counted but not kept"};
inline constexpr base::DiagnosticKind kNotUtf8 = {
    "log.not-utf8", base::Severity::kNotice, "bytes of the log are no UTF-8; they are kept as they are and shown as ?"};
inline constexpr base::DiagnosticKind kNoGrammar = {
    "log.no-grammar", base::Severity::kInfo,
    "lines in no known log grammar; kept as text, with the time of a neighbour"};
inline constexpr base::DiagnosticKind kDamaged = {
    "log.damaged", base::Severity::kDataLoss,
    "the log ends early or its compression is damaged; what came before was read"};
inline constexpr base::DiagnosticKind kArrivalBad = {
    "log.arrival-bad", base::Severity::kNotice,
    "an arrival time is no whole number of nanoseconds; the line keeps its own stamp"};
inline constexpr base::DiagnosticKind kArrivalCount = {
    "log.arrival-count", base::Severity::kNotice,
    "there are more or fewer arrival times than log lines; the rest keep their own stamps"};
inline constexpr base::DiagnosticKind kYearChosen = {
    "log.year-chosen", base::Severity::kInfo, "the log's stamps have no year or date; the stated one was chosen"};
inline constexpr base::DiagnosticKind kZoneChosen = {
    "log.zone-chosen", base::Severity::kInfo,
    "the log's stamps have no time zone; the stated offset from UTC was chosen"};
inline constexpr base::DiagnosticKind kNoEpoch = {
    "log.span-no-epoch", base::Severity::kNotice,
    "spans with times before the year 2000 do not count when log times are placed against the traces"};
inline constexpr base::DiagnosticKind kLentFar = {
    "log.neighbours-far", base::Severity::kInfo,
    "records without a time between stamped ones more than a minute apart; they took the time of the one before"};
inline constexpr base::DiagnosticKind kNoAnchor = {
    "log.no-anchor", base::Severity::kNotice,
    "the log counts from process start or boot and nothing anchors it to the traces; record arrival times"};
inline constexpr base::DiagnosticKind kNcclUnassigned = {
    "log.nccl-unassigned", base::Severity::kInfo,
    "NCCL lines about channels or topology that belong to no communicator whose start or end the logs hold"};

}  // namespace teller::ingest::log
