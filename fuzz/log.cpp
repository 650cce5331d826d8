// Any bytes as a log, as arrival times and as a Flight Recorder dump, through to the causes found in them.
// Beyond "no crash": every segment is a record, was joined to one, or was counted as dropped.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/status.hpp"
#include "ingest/flight_recorder/flight_recorder.hpp"
#include "ingest/log/log_reader.hpp"
#include "ingest/log/nccl_topology.hpp"
#include "locate/log_cause.hpp"
#include "logs/template_miner.hpp"

using namespace teller;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  base::Limits limits;
  limits.max_log_line_bytes = 4096;  // small, so that the bounds are met
  limits.max_log_record_bytes = 8192;
  trace::Store store;
  store.files.resize(3);
  store.files[0].path = "a.log";
  store.files[2].path = "rank1.json";
  auto log = base::OpenMemory(text);
  TELLER_CHECK(ingest::ReadLog(*log, trace::FileRow(0), store, limits).ok());
  for (const auto& record : store.logs) {
    TELLER_CHECK(record.message.size() <= limits.max_log_record_bytes + limits.max_log_line_bytes);
  }
  const trace::File& file = store.files[0];
  TELLER_CHECK(file.records_read == file.log_records + file.repaired_away + file.dropped);
  // The second half of the input doubles as a list of arrival times and as a dump of another rank.
  const std::string_view tail = text.substr(size / 2);
  auto arrivals = base::OpenMemory(tail);
  TELLER_CHECK(ingest::ReadLogArrivals(*arrivals, trace::FileRow(1), trace::FileRow(0), store).ok());
  auto dump = base::OpenMemory(text);
  (void)ingest::ReadFlightRecorder(*dump, trace::FileRow(2), store, limits);
  ingest::ResolveLogTimes(store);
  ingest::BuildCommunicators(store);
  logs::MineTemplates(store);
  (void)locate::FindLogCauses(store);
  (void)locate::FindCommRecordCauses(store);
  (void)locate::FindTopologyCauses(store);
  return 0;
}
