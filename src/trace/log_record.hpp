#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trace/types.hpp"

namespace teller::trace {

/// Which line grammar recognized a record.
enum class LogSource : uint8_t {
  kUnknown = 0,
  kVllm = 1,
  kSglang = 2,
  kLlamaCpp = 3,
  kNccl = 4,
  kTorchC10 = 5,
  kUvicorn = 6,
  kPythonLogging = 7,
  kKernel = 8,
  kProgress = 9,    ///< tqdm and other \r bars
  kTraceback = 10,  ///< traceback without a logger's prefix
  kGlog = 11,
  kKineto = 12,  ///< the profiler library's own lines
  kTensorRtLlm = 13,
  kTgi = 14,
  kTriton = 15,  ///< Triton Inference Server, not the compiler
  kRay = 16,
  kFabricManager = 17,
  kProgramOutput = 18,  ///< printed for people, by no logger: tables, rulers, banners
};
std::string_view Name(LogSource source);

/// Level as written, or as the text implies where the grammar has none.
enum class LogLevel : uint8_t { kUnknown = 0, kDebug = 1, kInfo = 2, kWarning = 3, kError = 4, kFatal = 5 };
std::string_view Name(LogLevel level);

/// Where a record's time comes from, best first.
enum class TimeBasis : uint8_t {
  kNone = 0,
  kArrival = 1,    ///< a collector's arrival time of the line
  kStamp = 2,      ///< the record's own stamp (with year and zone, or resolved and stated)
  kRelative = 3,   ///< time since process start, anchored
  kNeighbour = 4,  ///< that of the nearest stamped record of the same stream
};

/// What a stamp as written leaves open until ingest::ResolveLogTimes settles it; bits of LogRecord::stamp_open.
enum StampGap : uint8_t {
  kNothingOpen = 0,
  kYearOpen = 1,      ///< written in year 1972 (a leap year, so that every date exists)
  kDateOpen = 2,      ///< a time of day only, written on 1970-01-01
  kZoneOpen = 4,      ///< local time of an unknown zone, written as if UTC
  kFractionOpen = 8,  ///< digits below the second are of another clock; written as the whole second
  kStartOpen = 16,    ///< time since process start or boot
};

/// A value in a hole of a template.
struct LogParameter {
  enum class Kind : uint8_t { kText, kInteger, kFloat, kHex, kAddress, kPath, kId, kDuration };
  Kind kind = Kind::kText;
  std::string text;
};

/// One parsed record: a line, or several (tracebacks, continuation lines).
struct LogRecord {
  FileRow file;
  uint32_t line = 0;   ///< first line, from 1
  uint32_t lines = 1;  ///< how many lines it holds
  Nanos at = kNoTime;  ///< on the trace clock
  Nanos at_error = 0;  ///< half width of what the stamp leaves open (0.5 s for whole seconds)
  TimeBasis basis = TimeBasis::kNone;
  uint8_t stamp_open = kNothingOpen;  ///< StampGap bits; 0 once times are resolved
  LogSource source = LogSource::kUnknown;
  LogLevel level = LogLevel::kUnknown;
  std::string process;  ///< engine's own name without prefix ("EngineCore", "scheduler"); empty when not told
  std::optional<int64_t> pid;
  std::optional<int> rank;
  std::string request;       ///< id of the one request it is about, as written; empty when it is about none or several
  std::string logger;        ///< "core.py:502"; empty when not told
  std::string message;       ///< without prefixes and colours; further lines joined by \n
  std::string exception;     ///< final "Type: text" line of a traceback inside, or empty
  uint32_t template_id = 0;  ///< 0 = not mined
  std::vector<LogParameter> parameters;
  std::vector<std::pair<std::string, double>>
      statistics;  ///< key/value of statistics lines; keys normalized to snake_case

  // Filled by align:
  StepRow step;                 ///< none when it belongs to no step
  ProcessRow trace_process;     ///< the traced process that wrote it, when known
  double align_confidence = 0;  ///< 0..1
  std::string align_reason;
};

}  // namespace teller::trace
