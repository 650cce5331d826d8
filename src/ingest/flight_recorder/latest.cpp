#include <algorithm>
#include <map>
#include <tuple>

#include "ingest/flight_recorder/flight_recorder.hpp"

namespace teller::ingest {

namespace {

using trace::CommRecord;
using trace::FileRow;
using trace::Nanos;

constexpr base::DiagnosticKind kEarlier = {
    "flight-recorder.earlier", base::Severity::kNotice,
    "several dumps are of one rank; only the latest was used, as operations of the earlier ones have gone on since"};

/// How late a dump was written, as far as it tells: the last time in it, then how far it came.
struct Lateness {
  Nanos last = trace::kNoTime;
  int64_t sequence = -1;
};

}  // namespace

void KeepLatestDumps(trace::Store& store) {
  std::map<FileRow, Lateness> lateness;
  for (const CommRecord& record : store.comm_records) {
    Lateness& dump = lateness[record.file];
    for (const Nanos at : {record.created, record.started, record.completed}) {
      if (at != trace::kNoTime) dump.last = dump.last == trace::kNoTime ? at : std::max(dump.last, at);
    }
    dump.sequence = std::max({dump.sequence, record.sequence, record.p2p_sequence});
  }
  std::map<int, FileRow> latest;
  for (const auto& [file, dump] : lateness) {
    const auto& rank = store.files[file.value()].rank;
    if (!rank) continue;
    const auto [it, fresh] = latest.try_emplace(*rank, file);
    const Lateness& best = lateness[it->second];
    if (!fresh && std::tie(dump.last, dump.sequence) > std::tie(best.last, best.sequence)) it->second = file;
  }
  const auto superseded = [&](FileRow file) {
    const auto& rank = store.files[file.value()].rank;
    return rank && latest.at(*rank) != file;
  };
  for (const auto& [file, dump] : lateness) {
    if (!superseded(file)) continue;
    trace::File& row = store.files[file.value()];
    const std::string& used = store.files[latest.at(*row.rank).value()].path;
    store.diagnostics.Report(kEarlier, file, "rank " + std::to_string(*row.rank) + "; " + used + " is used");
    row.note = "an earlier dump of rank " + std::to_string(*row.rank) + "; " + used + " was used";
    row.dropped += row.spans;
    row.spans = 0;
  }
  std::erase_if(store.comm_records, [&](const CommRecord& record) { return superseded(record.file); });
}

}  // namespace teller::ingest
