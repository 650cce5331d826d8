// Any bytes as a pickled Flight Recorder dump, through to the causes found in it. Beyond "no crash": what is kept stays
// bounded by the input, and each entry was kept or dropped.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.hpp"
#include "ingest/flight_recorder/flight_recorder.hpp"
#include "ingest/flight_recorder/notation.hpp"
#include "locate/log_cause.hpp"

using namespace teller;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  ingest::flight_recorder::PickleEnd end;
  if (const auto tree = ingest::flight_recorder::ParsePickle(bytes, end)) {
    TELLER_CHECK(end.trailing <= size);
    std::string text;
    (void)ingest::flight_recorder::Minify({*tree, tree->root}, 4096, text);
    TELLER_CHECK(text.size() < 4096 + size + 64);
  }
  trace::Store store;
  store.files.resize(1);
  store.files[0].path = "rank1";
  auto source = base::OpenMemory(bytes);
  if (!ingest::ReadFlightRecorder(*source, trace::FileRow(0), store, {}).ok()) return 0;
  const trace::File& file = store.files[0];
  TELLER_CHECK(file.records_read == file.spans + file.dropped);
  size_t kept = 0;
  for (const auto& record : store.comm_records) kept += record.sizes.size() + record.frame.size();
  TELLER_CHECK(kept <= 2 * size + (1u << 20));
  (void)locate::FindCommRecordCauses(store);
  return 0;
}
