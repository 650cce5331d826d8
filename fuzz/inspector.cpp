// Any bytes as NCCL Inspector output, through to what its measurements prove. Beyond "no crash": every line counts
// once.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/status.hpp"
#include "ingest/nccl_inspector/nccl_inspector.hpp"
#include "locate/log_cause.hpp"

using namespace teller;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  trace::Store store;
  store.files.resize(1);
  store.files[0].path = "pid1.log";
  auto source = base::OpenMemory({reinterpret_cast<const char*>(data), size});
  TELLER_CHECK(ingest::ReadInspector(*source, trace::FileRow(0), store, {}).ok());
  const trace::File& file = store.files[0];
  TELLER_CHECK(file.records_read == file.spans + file.metadata + file.dropped);
  TELLER_CHECK(file.spans == store.comm_perf.size());
  for (const auto& perf : store.comm_perf) TELLER_CHECK(perf.duration >= 0 && perf.rank >= 0);
  (void)locate::FindCommPerfCauses(store);
  return 0;
}
