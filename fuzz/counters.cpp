// Any bytes as Prometheus text and as host counters. Beyond "no crash": every record is kept or counted, and every
// sample has a series.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/status.hpp"
#include "ingest/host_counters/host_counters.hpp"
#include "ingest/prometheus/prometheus.hpp"

using namespace teller;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  base::Limits limits;
  limits.max_log_line_bytes = 4096;  // small, so that the bound is met
  trace::Store store;
  store.files.resize(2);
  store.files[0].path = "scrape_1795986612.prom";
  auto metrics = base::OpenMemory(text);
  (void)ingest::ReadPrometheus(*metrics, trace::FileRow(0), store, limits);
  auto host = base::OpenMemory(text);
  (void)ingest::ReadHostCounters(*host, trace::FileRow(1), store, limits);
  for (const trace::File& file : store.files) {
    TELLER_CHECK(file.records_read == file.counters + file.metadata + file.dropped);
  }
  for (const trace::CounterSample& sample : store.counters) {
    TELLER_CHECK(sample.series.value() < store.counter_series.size());
  }
  return 0;
}
