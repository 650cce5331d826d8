#include "locate/log_xid.hpp"

#include <algorithm>
#include <array>

#include "locate/log_text.hpp"

namespace teller::locate {

using trace::FaultClass;

namespace {

// Numbers: NVIDIA open kernel modules, nverror.h. Readings: docs/reference/fault-classes.md.
constexpr std::array kApplication = {13, 31, 32, 43, 68, 69, 109};
constexpr std::array kMemory = {48, 63, 64, 92, 94, 95, 140, 156, 157, 171, 172};
constexpr std::array kBus = {79, 167, 176};
constexpr std::array kLink = {74, 108, 121, 136, 137, 144, 145, 146, 147, 148, 149, 150, 155, 173};
constexpr std::array kFirmware = {61, 62, 119, 120, 122, 123, 124, 125, 143, 158};
constexpr std::array kConsequence = {45, 154, 162, 163, 164, 165};

template <size_t N>
bool In(const std::array<int, N>& list, int number) {
  return std::find(list.begin(), list.end(), number) != list.end();
}

}  // namespace

std::optional<Xid> ParseXid(std::string_view message) {
  Xid xid;
  size_t at = message.find("SXid (PCI:");
  xid.fabric = at != std::string_view::npos;
  if (!xid.fabric) at = message.find("Xid (PCI:");
  if (at == std::string_view::npos) return std::nullopt;
  const size_t device = message.find("PCI:", at) + 4;
  const size_t close = message.find("): ", device);
  if (close == std::string_view::npos || close - device > 64) return std::nullopt;
  xid.device = std::string(message.substr(device, close - device));
  const auto number = NumberAfter(message.substr(close), "): ");
  if (!number || *number < 0 || *number > 99'999) return std::nullopt;
  xid.number = static_cast<int>(*number);
  const std::string_view rest = message.substr(close);
  xid.pid = NumberAfter(rest, "pid=");
  if (const size_t name = rest.find("name="); name != std::string_view::npos) {
    const std::string_view word = rest.substr(name + 5, rest.find(',', name) - name - 5);
    if (word.size() < 64 && !Has(word, "unknown")) xid.process = std::string(word);
  }
  xid.nonfatal = HasAny(rest, {"Nonfatal", "Non-fatal", "non-fatal"});
  return xid;
}

XidMeaning MeaningOf(const Xid& xid) {
  constexpr double kWeak = 0.05;
  if (xid.fabric) {
    return {FaultClass::kIntraLinkDegraded, false, xid.nonfatal ? kWeak : 1e-4, "an error of the NVLink switch"};
  }
  if (In(kConsequence, xid.number)) return {FaultClass::kUnknown, true, kWeak, "a consequence of an earlier error"};
  if (In(kApplication, xid.number)) {
    return {FaultClass::kGpuAppFault, false, 1e-4, "a fault of the code that ran on the GPU"};
  }
  if (In(kLink, xid.number)) {
    return {FaultClass::kIntraLinkDegraded, false, xid.nonfatal ? kWeak : 1e-4, "an error of the link between GPUs"};
  }
  if (In(kMemory, xid.number)) {
    const bool mild =
        xid.number == 63 || xid.number == 92;  // a row was remapped, errors were corrected: the GPU goes on
    return {FaultClass::kGpuHwFault, false, mild ? 5e-3 : 1e-4, "an error of the GPU's memory"};
  }
  if (In(kBus, xid.number)) {
    return {FaultClass::kGpuHwFault, false, xid.number == 176 ? kWeak : 1e-4, "the GPU lost its bus"};
  }
  if (In(kFirmware, xid.number)) return {FaultClass::kGpuHwFault, false, 1e-4, "the GPU's firmware does not answer"};
  return {FaultClass::kUnknown, false, 0.02, "a driver error without a known reading"};
}

}  // namespace teller::locate
