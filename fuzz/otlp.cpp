// Any bytes as OTLP spans, in JSON and in protobuf. Beyond "no crash": every record is kept or counted, and the spans
// of a track are in order.
#include "ingest/otlp/otlp.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/status.hpp"
#include "ingest/common/decimal.hpp"

using namespace teller;

namespace {

void Check(const trace::Store& store) {
  for (const trace::File& file : store.files) {
    TELLER_CHECK(file.records_read == file.spans + file.instants + file.metadata + file.dropped);
  }
  trace::Nanos total = 0;
  for (const trace::Track& track : store.tracks) {
    for (uint32_t row = track.first_span; row < track.first_span + track.span_count; ++row) {
      TELLER_CHECK(store.spans.duration[row] >= 0);
      TELLER_CHECK(row == track.first_span || store.spans.begin[row - 1] <= store.spans.begin[row]);
      total += store.spans.duration[row];
      TELLER_CHECK(total <= ingest::kMaxNanos);
    }
  }
  for (const trace::RequestRecord& record : store.request_records) {
    TELLER_CHECK(record.e2e >= -1 && record.queue_time >= -1 && record.prefill_time >= -1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  trace::Store store;
  store.files.resize(2);
  auto json = base::OpenMemory(bytes);
  (void)ingest::ReadOtlpJson(*json, trace::FileRow(0), store, {});
  auto protobuf = base::OpenMemory(bytes);
  (void)ingest::ReadOtlpProtobuf(*protobuf, trace::FileRow(1), store, {});
  Check(store);
  return 0;
}
