#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "trace/fault_class.hpp"

namespace teller::locate {

/// One NVIDIA driver error report of a kernel log.
struct Xid {
  int number = 0;
  std::string device;   ///< "0000:38:00"
  std::string process;  ///< name the driver gives; empty when unknown
  std::optional<int64_t> pid;
  bool fabric = false;    ///< an NVSwitch's SXid
  bool nonfatal = false;  ///< the report itself says so
};
std::optional<Xid> ParseXid(std::string_view message);

/// First reading of an Xid number.
struct XidMeaning {
  trace::FaultClass fault = trace::FaultClass::kUnknown;
  bool consequence = false;  ///< follows another error; never a cause
  double false_alarm = 1e-4;
  std::string_view what;
};
XidMeaning MeaningOf(const Xid& xid);

}  // namespace teller::locate
