#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/diagnosis.hpp"
#include "trace/log_record.hpp"

namespace teller::locate {

/// Larger numbers are no ranks.
inline constexpr int kMaxRank = 1 << 20;

/// What one record says about a fault.
enum class SignalRole : uint8_t {
  kCause,      ///< names a cause by itself
  kException,  ///< a traceback: a cause when somebody dies of it
  kDeath,      ///< a messenger names a process that died
  kPeerLost,   ///< a rank lost the connection to another one
  kTimeout,    ///< the collective watchdog gave up waiting
  kSymptom,    ///< a loud consequence; never a cause
  kKvEvent,    ///< requests were taken out of the batch for lack of KV cache
  kClient,     ///< a request was refused
  kCompile,    ///< something was compiled while serving
  kTransfer,   ///< a KV transfer failed
  kLookup,     ///< a name on the network could not be resolved
  kShutdown,   ///< somebody asked the service to end
  kStart,      ///< a service starts (again)
};

struct Signal {
  size_t row = 0;  ///< in Store::logs
  SignalRole role = SignalRole::kSymptom;
  trace::FaultClass fault = trace::FaultClass::kUnknown;
  std::vector<trace::Alternative> alternatives;
  double false_alarm = 1;
  std::string_view layer;  ///< as Culprit::layer
  std::string_view what;   ///< half a sentence for the explanation
  std::string device;      ///< PCI address of the device that is at fault; empty when none is named
  std::string process;     ///< the process that is at fault, when the line names another than its writer
  std::optional<int> rank;
  std::optional<int64_t> pid;
  bool own_word = false;  ///< the writer speaks of itself (false: of `process`, or of nobody)
  bool fatal = false;     ///< the line says that its process ends
  std::string line;       ///< the text that names it
};

/// Reads one record; none for records that say nothing about a fault.
std::optional<Signal> ReadSignal(const trace::LogRecord& record, size_t row);

}  // namespace teller::locate
