#include "ingest/log/log_reader.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "ingest/common/decimal.hpp"
#include "ingest/common/drain.hpp"
#include "ingest/log/cursor.hpp"
#include "ingest/log/diagnostics.hpp"
#include "ingest/log/line_splitter.hpp"
#include "ingest/log/record_builder.hpp"

namespace teller::ingest {

base::Status ReadLog(base::ByteSource& source, trace::FileRow file, trace::Store& store, const base::Limits& limits) {
  log::RecordBuilder builder(file, store, limits);
  log::LineSplitter splitter(limits.max_log_line_bytes, [&](const log::Segment& segment) { builder.Add(segment); });
  const base::Status status = Drain(source, splitter, store.files[file.value()].bytes);
  builder.Finish();
  if (!source.damage().empty()) store.diagnostics.Report(log::kDamaged, file, std::string(source.damage()));
  return status;
}

base::Status ReadLogArrivals(base::ByteSource& source, trace::FileRow arrivals, trace::FileRow log,
                             trace::Store& store) {
  constexpr size_t kLongest = 64;  // nineteen digits and some space
  std::vector<trace::Nanos> times;
  log::LineSplitter splitter(kLongest, [&](const log::Segment& segment) {
    log::Cursor c(log::Trim(segment.text));
    // Digits of an int64 beyond 18 do not fit Number's bound, so the two halves are read apart.
    int64_t high = 0;
    const std::string_view text = c.rest();
    trace::Nanos value = trace::kNoTime;
    if (text.size() == 19 && log::Cursor(text.substr(0, 10)).Number(10, 10, high)) {
      int64_t low = 0;
      if (log::Cursor(text.substr(10)).Number(9, 9, low) && high < 9'223'372'036) value = high * base::kSecond + low;
    } else if (c.Number(1, 18, high) && c.done()) {
      value = high;
    }
    if (value > kMaxNanos) value = trace::kNoTime;
    if (value == trace::kNoTime) {
      store.diagnostics.Report(log::kArrivalBad, arrivals, "line " + std::to_string(segment.line));
    }
    times.push_back(value);
  });
  TELLER_TRY(Drain(source, splitter, store.files[arrivals.value()].bytes));

  uint32_t last_line = 0;
  for (auto& record : store.logs) {
    if (record.file != log) continue;
    last_line = std::max(last_line, record.line);
    if (record.line > times.size() || times[record.line - 1] == trace::kNoTime) continue;
    record.at = times[record.line - 1];
    record.at_error = base::kMilli;  // a collector stamps a line when its pipe is read, soon after it was written
    record.stamp_open = trace::kNothingOpen;
    record.basis = trace::TimeBasis::kArrival;
  }
  if (last_line > times.size()) {
    store.diagnostics.Report(log::kArrivalCount, arrivals,
                             std::to_string(times.size()) + " times, last record on line " + std::to_string(last_line));
  }
  trace::File& row = store.files[arrivals.value()];
  row.kind = "log-arrival";
  row.records_read = times.size();
  row.metadata = times.size();
  return {};
}

}  // namespace teller::ingest
