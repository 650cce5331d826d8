#include "align/align.hpp"

#include <gtest/gtest.h>

namespace teller::align {
namespace {

using trace::Nanos;
using trace::TimeBasis;

constexpr Nanos kEpoch = 1'790'000'000 * base::kSecond;

/// Two ranks; the clock of rank 1 was 5 s ahead and was corrected.
struct TwoRanks {
  trace::Store store;
  trace::Trees trees;

  TwoRanks() {
    store.files.resize(2);
    trees.clocks.resize(2);
    for (uint32_t r = 0; r < 2; ++r) {
      trace::Process process;
      process.file = trace::FileRow(r);
      process.rank = static_cast<int>(r);
      process.pid = std::to_string(100 + r);
      store.processes.push_back(process);
      trees.clocks[r].linked = true;
    }
    trees.clocks[1].middle = kEpoch;
    trees.clocks[1].offset = 5 * base::kSecond;
    trees.clocks[1].corrected = true;
  }

  void Log(int rank, TimeBasis basis) {
    trace::LogRecord record;
    record.file = trace::FileRow(static_cast<uint32_t>(rank));
    record.rank = rank;
    record.at = kEpoch + 5 * base::kSecond;
    record.basis = basis;
    store.logs.push_back(record);
  }
};

TEST(Align, StampsOfACorrectedRankMoveWithItsSpans) {
  TwoRanks run;
  run.Log(0, TimeBasis::kStamp);
  run.Log(1, TimeBasis::kStamp);
  run.Log(1, TimeBasis::kNeighbour);
  run.Log(1, TimeBasis::kArrival);
  run.Log(1, TimeBasis::kNeighbour);
  run.Log(1, TimeBasis::kRelative);
  AlignLogs(run.store, run.trees);
  const Nanos raw = kEpoch + 5 * base::kSecond;
  EXPECT_EQ(run.store.logs[0].at, raw) << "rank 0 was not corrected";
  EXPECT_EQ(run.store.logs[1].at, kEpoch);
  EXPECT_EQ(run.store.logs[2].at, kEpoch) << "lent by a stamp";
  EXPECT_EQ(run.store.logs[3].at, raw) << "the collecting host's clock";
  EXPECT_EQ(run.store.logs[4].at, raw) << "lent by an arrival time";
  EXPECT_EQ(run.store.logs[5].at, raw) << "anchored to arrival times";
}

TEST(Align, WhatALineStatesOfARequestMovesWithTheLine) {
  TwoRanks run;
  const Nanos raw = kEpoch + 5 * base::kSecond;
  const auto state = [&](int rank, TimeBasis basis, uint32_t line) {
    run.Log(rank, basis);
    run.store.logs.back().line = line;
    run.store.logs.back().lines = 3;
    trace::RequestRecord request;
    request.file = trace::FileRow(static_cast<uint32_t>(rank));
    request.source = trace::RequestSource::kLog;
    request.ref = "line:" + std::to_string(line + 2);
    request.finished = raw;
    run.store.request_records.push_back(request);
  };
  state(0, TimeBasis::kStamp, 4);
  state(1, TimeBasis::kStamp, 4);
  state(1, TimeBasis::kArrival, 10);
  run.store.request_records.push_back(run.store.request_records[1]);
  run.store.request_records.back().ref = "line:9";  // behind the record
  AlignLogs(run.store, run.trees);
  EXPECT_EQ(run.store.request_records[0].finished, raw);
  EXPECT_EQ(run.store.request_records[1].finished, kEpoch);
  EXPECT_EQ(run.store.request_records[1].arrival, trace::kNoTime);
  EXPECT_EQ(run.store.request_records[2].finished, raw) << "arrival times are the collecting host's";
  EXPECT_EQ(run.store.request_records[3].finished, raw);
}

}  // namespace
}  // namespace teller::align
