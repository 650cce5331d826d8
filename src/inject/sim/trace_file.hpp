#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/nanos.hpp"
#include "base/rng.hpp"
#include "base/status.hpp"

namespace teller::inject::sim {

using base::Nanos;

/// A process's clock against the true one.
struct HostClock {
  Nanos offset = 0;
  double drift = 0;  ///< seconds gained a second
  Nanos origin = 0;

  Nanos Read(Nanos at) const { return at + offset + static_cast<Nanos>(drift * static_cast<double>(at - origin)); }
};

/// Who wrote a trace.
struct TraceOwner {
  int rank = 0;
  int world = 1;
  int device = 0;
  int pid = 0;
  std::string process;  ///< its name in the metadata
  std::string device_name;
  std::string groups;  ///< JSON list for pg_config
  HostClock clock;
  double lost = 0;  ///< share of events that the profiler lost
  uint64_t seed = 1;
};

/// Parts of a GPU event that are the same at every call, as JSON text.
struct KernelText {
  std::string name;  ///< quoted and escaped
  std::string args;  ///< members after "correlation", each with a comma before it
};

/// Writes one rank's events as a Kineto trace. Text goes to disk in pieces, so memory stays bounded however long the
/// run; the file is open only while a piece is written, so any number of ranks fit. Times are true ones: the owner's
/// clock is applied here. Threads: confined.
class TraceFile {
 public:
  TraceFile(std::string path, TraceOwner owner, Nanos start);

  /// A span on the main thread; `args` are JSON members without braces, may be empty.
  void Span(std::string_view category, std::string_view quoted_name, Nanos begin, Nanos end, std::string_view args);
  /// An operator with what is said about its inputs (JSON members; may be empty).
  void Operator(std::string_view quoted_name, Nanos begin, Nanos end, uint64_t id, std::string_view inputs);
  /// A call of the runtime; `flow` adds the arrow's tail.
  void Call(std::string_view quoted_name, int cbid, Nanos begin, Nanos end, uint64_t id, uint64_t correlation,
            bool flow);
  /// Work on the device. `category` is kernel or gpu_memcpy.
  void Work(std::string_view category, const KernelText& text, int stream, Nanos begin, Nanos end, uint64_t id,
            uint64_t correlation);
  void DeviceSpan(std::string_view quoted_name, int stream, Nanos begin, Nanos end, uint64_t id);
  /// Writes what is left and the end. Errors: kUnreadable (disk full, folder gone); also of earlier pieces.
  base::Status Finish();
  uint64_t bytes() const { return bytes_; }

 private:
  void Begin(std::string_view category, std::string_view quoted_name, int64_t pid, int64_t tid, Nanos begin, Nanos end);
  void Close();
  void Stamp(Nanos at);
  void Number(uint64_t value);
  void Piece();
  bool Lost();

  std::string path_;
  TraceOwner owner_;
  Nanos base_ = 0;
  base::Rng rng_;
  std::string buffer_;
  std::string pid_text_;
  uint64_t operators_ = 0;
  uint64_t bytes_ = 0;
  bool failed_ = false;
};

}  // namespace teller::inject::sim
