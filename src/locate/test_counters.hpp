#pragma once

#include <functional>
#include <string>
#include <vector>

#include "trace/store.hpp"

namespace teller::locate {

inline constexpr trace::Nanos kEpoch = 1'768'469'400'000'000'000;
inline constexpr trace::Nanos kHalf = 500'000'000;

/// Adds a counter of the first file of a store for tests, sampled twice a second from kEpoch on.
inline void AddCounter(trace::Store& store, const std::string& process, const std::string& name,
                       const std::vector<double>& values, trace::CounterKind kind = trace::CounterKind::kCumulative) {
  const trace::CounterRow row(static_cast<uint32_t>(store.counter_series.size()));
  trace::CounterSeries series;
  series.file = trace::FileRow(0);
  series.process_name = process;
  series.name = name;
  series.kind = kind;
  store.counter_series.push_back(series);
  for (size_t i = 0; i < values.size(); ++i)
    store.counters.push_back({kEpoch + static_cast<trace::Nanos>(i) * kHalf, row, static_cast<uint32_t>(i), values[i]});
}

/// A counter that grows by `rate(i)` a second in the i-th of so many intervals.
inline void AddRate(trace::Store& store, const std::string& process, const std::string& name, int intervals,
                    const std::function<double(int)>& rate) {
  std::vector<double> values = {0};
  for (int i = 0; i < intervals; ++i) values.push_back(values.back() + 0.5 * rate(i));
  AddCounter(store, process, name, values);
}

}  // namespace teller::locate
