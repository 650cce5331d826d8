// The log reader on arbitrary bytes: no crash, no leak, bounded records, times resolved without a trace.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/byte_source.hpp"
#include "ingest/log/log_reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace teller;
  const auto source = base::OpenMemory({reinterpret_cast<const char*>(data), size});
  trace::Store store;
  store.files.push_back({});
  const base::Limits limits;
  if (!ingest::ReadLog(*source, trace::FileRow(0), store, limits).ok()) std::abort();
  ingest::ResolveLogTimes(store);
  for (const auto& record : store.logs) {
    if (record.message.size() > limits.max_log_record_bytes + limits.max_log_line_bytes) std::abort();
  }
  return 0;
}
