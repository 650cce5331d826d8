#pragma once

#include "base/diagnostics.hpp"

namespace teller::ingest::otlp {

inline constexpr base::DiagnosticKind kBadDocument = {
    "otlp.bad-document", base::Severity::kDataLoss,
    "a part of the file is no OTLP export request (broken JSON, other keys, wrong wire types); it was left out"};
inline constexpr base::DiagnosticKind kTruncated = {
    "otlp.truncated", base::Severity::kDataLoss,
    "an export request is cut off or torn; what stands whole before that was read"};
inline constexpr base::DiagnosticKind kTooLong = {"otlp.too-long", base::Severity::kDataLoss,
                                                  "an export request is larger than is believed; it was left out"};
inline constexpr base::DiagnosticKind kDamaged = {"otlp.damaged", base::Severity::kDataLoss,
                                                  "the file's compression is damaged; what came before was read"};
inline constexpr base::DiagnosticKind kBadSpan = {"otlp.bad-span", base::Severity::kDataLoss,
                                                  "an entry of a list of spans is no span; it was left out"};
inline constexpr base::DiagnosticKind kNoBegin = {"otlp.no-begin", base::Severity::kDataLoss,
                                                  "a span or event has no time that is a date; it was left out"};
inline constexpr base::DiagnosticKind kNoEnd = {"otlp.no-end", base::Severity::kNotice,
                                                "a span has no end; it was kept with no duration"};
inline constexpr base::DiagnosticKind kEndFirst = {"otlp.end-first", base::Severity::kNotice,
                                                   "a span ends before it begins; it was kept with no duration"};
inline constexpr base::DiagnosticKind kTooLongSpan = {
    "otlp.absurd-duration", base::Severity::kDataLoss,
    "durations longer than a month, or too long together; they were kept as none"};
inline constexpr base::DiagnosticKind kTwice = {"otlp.twice", base::Severity::kNotice,
                                                "a span was exported twice (same ids, name and begin); one was kept"};
inline constexpr base::DiagnosticKind kBadValue = {
    "otlp.bad-value", base::Severity::kNotice,
    "a latency or token count of a request is negative, no number, or absurd; it was taken as not told"};
inline constexpr base::DiagnosticKind kManyFields = {"otlp.many-attributes", base::Severity::kNotice,
                                                     "a span has more attributes than are kept"};
inline constexpr base::DiagnosticKind kOtherSignal = {
    "otlp.other-signal", base::Severity::kInfo, "metrics or logs in OTLP form; only spans are read from such a file"};
inline constexpr base::DiagnosticKind kManySpans = {"otlp.many-spans", base::Severity::kDataLoss,
                                                    "the run has more spans than a store holds; the rest was left out"};

}  // namespace teller::ingest::otlp
