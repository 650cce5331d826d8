#include "locate/cpu_witness.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace teller::locate {
namespace {

using trace::Nanos;

constexpr Nanos kEpoch = 1'768'469'400'000'000'000;
constexpr Nanos kHalf = 500'000'000;

void Add(trace::Store& store, const std::string& process, const std::string& name,
         const std::function<double(int)>& rate) {
  const trace::CounterRow row(static_cast<uint32_t>(store.counter_series.size()));
  trace::CounterSeries series;
  series.file = trace::FileRow(0);
  series.process_name = process;
  series.name = name;
  store.counter_series.push_back(series);
  double value = 0;
  for (int i = 0; i <= 20; ++i) {
    store.counters.push_back({kEpoch + i * kHalf, row, static_cast<uint32_t>(i), value});
    value += 0.5 * rate(i);
  }
}

/// Two processors; in samples 8 and 9 the machine is full and the service gets `own` of it.
trace::Store Machine(double own) {
  trace::Store store;
  const auto inside = [](int i) { return i == 8 || i == 9; };
  Add(store, "Worker", "cpu_s", [=](int i) { return inside(i) ? own : 1.0; });
  Add(store, "", "busy_s", [=](int i) { return inside(i) ? 2.0 : 1.1; });
  Add(store, "", "idle_s", [=](int i) { return inside(i) ? 0.0 : 0.9; });
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
