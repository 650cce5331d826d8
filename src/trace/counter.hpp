#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "trace/types.hpp"

namespace teller::trace {

struct CounterTag;
using CounterRow = base::Id<CounterTag>;  ///< index into Store::counter_series

/// What the values of a counter mean.
enum class CounterKind : uint8_t {
  kGauge = 0,       ///< a level; each sample stands alone
  kCumulative = 1,  ///< grows from the start of its process; differences count, a fall is a restart
};

/// One counter of one source.
struct CounterSeries {
  FileRow file;
  ProcessRow process;        ///< the traced process; none for counters of a service or a host
  std::string process_name;  ///< as the source names it ("scheduler"); empty when it names none
  std::string name;          ///< as written ("vllm:num_requests_running", "cpu_s")
  std::vector<std::pair<std::string, std::string>> labels;  ///< order: by key; a histogram's bound is "le"
  CounterKind kind = CounterKind::kGauge;
};

/// One value of a counter.
struct CounterSample {
  Nanos at = kNoTime;  ///< none when the source tells only an order (two scrapes without a time)
  CounterRow series;
  uint32_t scrape = 0;  ///< ordinal of the sample within its series' file, from 0
  double value = 0;
};

}  // namespace teller::trace
