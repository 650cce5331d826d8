#pragma once

#include "base/diagnostics.hpp"

/// What the reader of Nsight Systems exports reports about its input.
namespace teller::ingest::nsys {

using base::DiagnosticKind;
using base::Severity;

inline constexpr DiagnosticKind kUnreadable = {"nsys.unreadable", Severity::kError,
                                               "the database cannot be opened or its schema is damaged"};
inline constexpr DiagnosticKind kDamaged = {
    "nsys.damaged", Severity::kDataLoss,
    "the database is damaged or cut off; what could not be read is missing. Export it again"};
inline constexpr DiagnosticKind kLayout = {
    "nsys.unknown_layout", Severity::kDataLoss,
    "a table lacks a column without which its rows mean nothing; it was not read"};
inline constexpr DiagnosticKind kNotUsed = {"nsys.table_not_used", Severity::kInfo,
                                            "a table with events of a kind that is not used"};
inline constexpr DiagnosticKind kNewSchema = {
    "nsys.new_schema", Severity::kInfo, "the export is newer than what was tested; columns are found by their names"};
inline constexpr DiagnosticKind kNoEpoch = {
    "nsys.no_epoch", Severity::kNotice,
    "the export does not tell when its session began: times count from that start, and logs cannot be tied to them"};
inline constexpr DiagnosticKind kNoGpuWork = {
    "nsys.no_gpu_work", Severity::kNotice,
    "the export has no kernels, copies or graph launches; record with --trace=cuda to see the GPU"};
inline constexpr DiagnosticKind kProfilerSays = {"nsys.profiler_warning", Severity::kNotice,
                                                 "the profiler itself warned while it recorded"};
inline constexpr DiagnosticKind kBadTime = {"nsys.bad_time", Severity::kDataLoss,
                                            "a start that is no integer, or beyond any date; the row was dropped"};
inline constexpr DiagnosticKind kNoTime = {
    "nsys.no_time", Severity::kNotice, "GPU work whose times could not be collected (both are 0); the row was dropped"};
inline constexpr DiagnosticKind kBadEnd = {
    "nsys.bad_end", Severity::kDataLoss,
    "an end that is missing, before the start, or more than 30 days after it; the span was kept with duration 0"};
inline constexpr DiagnosticKind kOpenRange = {
    "nsys.open_range", Severity::kNotice, "a range that was not closed; it was kept up to the end of the recording"};
inline constexpr DiagnosticKind kUnknownNvtx = {"nsys.unknown_nvtx", Severity::kNotice,
                                                "an NVTX record of unknown type; dropped"};
inline constexpr DiagnosticKind kNoThread = {"nsys.no_thread", Severity::kNotice,
                                             "a record tells no thread or process; it stands on a lane of its own"};
inline constexpr DiagnosticKind kNoString = {"nsys.no_string", Severity::kNotice,
                                             "a name's id is not in StringIds; its number stands for it"};
inline constexpr DiagnosticKind kInvalidUtf8 = {"nsys.invalid_utf8", Severity::kNotice,
                                                "text that is not valid UTF-8; the bytes were replaced"};
inline constexpr DiagnosticKind kLongName = {"nsys.long_name", Severity::kNotice,
                                             "a name is longer than is kept; the rest was cut"};
inline constexpr DiagnosticKind kBadAmount = {
    "nsys.bad_amount", Severity::kNotice,
    "bytes, a correlation or a stream is no believable number; it was taken as not told"};
inline constexpr DiagnosticKind kBacktrace = {
    "nsys.backtrace_record", Severity::kInfo,
    "a call that was recorded a second time to carry its call chain; counted with the call"};
inline constexpr DiagnosticKind kFrames = {"nsys.sampled_frames", Severity::kInfo,
                                           "frames of sampled call chains above the innermost one; counted only"};
inline constexpr DiagnosticKind kNoFrames = {"nsys.sample_without_frames", Severity::kInfo,
                                             "a sample of a thread that has no call chain; kept without a name"};
inline constexpr DiagnosticKind kRankInferred = {
    "nsys.rank_inferred", Severity::kInfo,
    "no process tells its rank; each has one GPU of its own, so the order of GPUs was taken for it"};

}  // namespace teller::ingest::nsys
