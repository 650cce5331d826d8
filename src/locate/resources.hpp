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
/// up to about twice as long for everything it does, alike and for seconds, and no counter that can be read here shows
/// it: a loop that waits for nothing took 1.65 times its time now and then on an idle virtual machine, healthy ranks up
/// to 1.84. Less than what one busy program on the same processor takes from another, which is half.
inline constexpr double kSharedCore = 1.9;

/// True for a claim about a process that computes on the host itself and is slower by less than that for half a minute
/// at most. `by`: logarithm of how much slower it is. Such a claim is a suspicion.
bool MayShareItsCore(const Scene& scene, const Hypothesis& claim, double by);

/// True when a process has its work done on a device. Its host needs one processor and computes nothing on it;
/// elsewhere the threads that compute share the processors with the one that is looked at, and a busy machine shows in
/// everything.
bool UsesDevice(const Scene& scene, trace::ProcessRow process);

}  // namespace teller::locate
