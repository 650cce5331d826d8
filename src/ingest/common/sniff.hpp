#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace teller::ingest {

/// What a file is, judged by its first bytes (plain text is a log; an extension of other texts speaks against
/// it only where most lines are no log lines).
enum class Kind : uint8_t {
  kEmpty,
  kTrace,  ///< Chrome-trace JSON
  kFlightRecorder,
  kOtlpJson,  ///< OpenTelemetry spans
  kOtlpProtobuf,
  kPrometheus,    ///< metrics in the text format
  kHostCounters,  ///< JSON lines of numbers with a time
  kNsys,          ///< SQLite; whether it is an export of Nsight Systems only its tables tell
  kInspector,     ///< NCCL Inspector JSON lines
  kGraphs,        ///< launch sequences that earlier runs showed
  kLog,
  kArrival,      ///< one epoch-ns integer a line
  kJsonUnknown,  ///< one JSON document that may still turn out to be a trace further down
  kOther,
};

/// How reports call the kind: trace::File::kind.
std::string_view Name(Kind kind);
/// True when there is a reader for it.
bool IsRead(Kind kind);

struct Sniffed {
  Kind kind = Kind::kOther;
  std::string_view note;  ///< why a kOther is not read, one sentence
};

/// Note of bytes that no reader knows.
inline constexpr std::string_view kBinaryNote = "binary data of unknown form";

/// Bytes that SniffKind wants to see (fewer when the file is shorter).
inline constexpr size_t kSniffBytes = 64u << 10;

/// `head` is the front of the decompressed file, `whole` tells that it is all of it.
Sniffed SniffKind(std::string_view head, bool whole, std::string_view path);

}  // namespace teller::ingest
