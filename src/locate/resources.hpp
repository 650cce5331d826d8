#pragma once

#include "locate/hypothesis.hpp"

namespace teller::locate {

/// True for slots whose length says nothing about their own process: it waits there for other ranks or the device.
bool WaitsForOthers(const Scene& scene, const Slot& slot);

/// What a step needs of one resource: measured, and what is normal for its shape. ns.
struct Cost {
  double took = 0;
  double expected = 0;
};

/// The host's own time in a step: operators and host code that wait for nobody.
Cost HostCost(const Scene& scene, uint32_t step);

/// Time of the work that a step launched on the device, without collectives.
Cost DeviceCost(const Scene& scene, uint32_t step);

/// A pause is longer: schedulers of a busy host stop a thread that long. The host of a device needs one processor only,
/// and there are many.
inline Nanos PauseFloor(bool device) {
  return device ? 5 * base::kMilli : 60 * base::kMilli;
}

/// A processor that shares its core with a neighbour (another thread of the core, another guest of the machine) takes
/// up to this many times as long for everything it does, evenly and for seconds, and no counter that can be read here
/// shows it: on idle virtual machines a loop that waits for nothing took 1.65 times its time now and then.
inline constexpr double kSharedCore = 2.0;

/// True when a process has its work done on a device. Its host needs one processor and computes nothing on it;
/// elsewhere the threads that compute share the processors with the one that is looked at, and a busy machine shows in
/// everything.
bool UsesDevice(const Scene& scene, trace::ProcessRow process);

}  // namespace teller::locate
