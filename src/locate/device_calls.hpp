#pragma once

#include <cstdint>

#include "locate/hypothesis.hpp"

namespace teller::locate {

/// What a host operator that is slow does with the device. It is the host's time that is looked at, not the kernels'.
enum class HostCause : uint8_t {
  kComputes,       ///< the process launches nothing: the operator itself computes
  kHost,           ///< it launches work and takes longer to do so
  kHiddenSync,     ///< it waits for the device where equal steps hardly do
  kGraphFallback,  ///< kernels are launched one by one where equal steps replay a graph
};

/// Reads the cause of a slow operator of the host from the API calls in the claim's steps and in the process's others.
HostCause ReadHostCause(const Scene& scene, const Hypothesis& claim);

}  // namespace teller::locate
