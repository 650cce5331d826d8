#include "locate/cpu_witness.hpp"

#include <gtest/gtest.h>

#include "locate/test_counters.hpp"

namespace teller::locate {
namespace {

using trace::Nanos;

/// Two processors; in samples 8 and 9 the machine is full and the service gets `own` of it.
trace::Store Machine(double own) {
  trace::Store store;
  const auto inside = [](int i) { return i == 8 || i == 9; };
  AddRate(store, "Worker", "cpu_s", 20, [=](int i) { return inside(i) ? own : 1.0; });
  AddRate(store, "", "busy_s", 20, [=](int i) { return inside(i) ? 2.0 : 1.1; });
  AddRate(store, "", "idle_s", 20, [=](int i) { return inside(i) ? 0.0 : 0.9; });
  return store;
}

TEST(CpuWitness, AMachineFullOfOthersIsCrowded) {
  const CpuWitness witness(Machine(0.3));
  EXPECT_TRUE(witness.WasCrowded(kEpoch + 8 * kHalf, kEpoch + 10 * kHalf));
  EXPECT_TRUE(witness.WasCrowded(kEpoch + 8 * kHalf + kHalf / 10, kEpoch + 10 * kHalf + kHalf / 10));
  EXPECT_FALSE(witness.WasCrowded(kEpoch + 2 * kHalf, kEpoch + 4 * kHalf));    // one processor is idle
  EXPECT_FALSE(witness.WasCrowded(kEpoch + 40 * kHalf, kEpoch + 42 * kHalf));  // nobody looked
}

TEST(CpuWitness, AMachineFullOfTheServiceIsNot) {
  EXPECT_FALSE(CpuWitness(Machine(1.8)).WasCrowded(kEpoch + 8 * kHalf, kEpoch + 10 * kHalf));
}

}  // namespace
}  // namespace teller::locate
