#include "ingest/flight_recorder/flight_recorder.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace teller::ingest {
namespace {

constexpr std::string_view kDump =
    R"({"version":"2.9","pg_config":{"0":{"name":"0","desc":"default_pg","ranks":"[0, 1]"},
"5":{"name":"5","desc":"TP","ranks":"[0, 1]"}},"nccl_version":"2.27.3",
"pg_status":{"0":{"last_enqueued_collective":9,"last_started_collective":-1,"last_completed_collective":9},
"3":{"last_enqueued_collective":7,"last_started_collective":-1,"last_completed_collective":6}},
"entries":[{"pg_id":3,"process_group":["5","TP"],"collective_seq_id":7,"p2p_seq_id":0,"profiling_name":"nccl:all_reduce",
"time_created_ns":1758610505592849034,"input_sizes":[[4]],"input_dtypes":["BFloat16"],"state":"scheduled",
"time_discovered_started_ns":null,"is_p2p":false},{"pg_id":3,"state":"scheduled"}]})";

trace::Store ReadDump(std::string_view text, const std::string& path) {
  trace::Store store;
  store.files.emplace_back();
  store.files[0].path = path;
  auto source = base::OpenMemory(text);
  EXPECT_TRUE(ReadFlightRecorder(*source, trace::FileRow(0), store, {}).ok());
  return store;
}

TEST(FlightRecorder, ReadsEntriesGroupsAndStatus) {
  ASSERT_TRUE(LooksLikeFlightRecorder(kDump.substr(0, 200)));
  const auto store = ReadDump(kDump, "dumps/rank07.json");
  ASSERT_EQ(store.comm_records.size(), 5u);
  const auto& record = store.comm_records[0];
  EXPECT_EQ(record.rank, 7);
  EXPECT_EQ(record.group, "5 TP");
  ASSERT_GE(record.members, 0);
  EXPECT_EQ(store.comm_groups[static_cast<size_t>(record.members)], (std::vector<int>{0, 1}));
  EXPECT_EQ(record.sequence, 7);
  EXPECT_EQ(record.op, "nccl:all_reduce");
  EXPECT_EQ(record.created, 1758610505592849034);
  EXPECT_EQ(record.started, trace::kNoTime);
  EXPECT_EQ(store.files[0].dropped, 1u);
  EXPECT_EQ(store.diagnostics.Count("flight-recorder.bad-entry"), 1u);
  EXPECT_EQ(store.comm_records[4].state, "last-completed");
  EXPECT_EQ(store.comm_records[4].sequence, 6);
}

TEST(FlightRecorder, OfSeveralDumpsOfOneRankTheLatestCounts) {
  const std::string early(kDump);
  std::string late(kDump);
  for (size_t at = 0; (at = late.find("1758610505592849034")) != std::string::npos;)
    late.replace(at, 19, "1758610509592849034");
  late.replace(late.find("\"scheduled\""), 11, "\"completed\"");
  for (const bool late_first : {false, true}) {
    trace::Store store;
    for (const char* path : {"a/rank07.json", "b/rank07.json", "b/rank08.json"}) store.files.push_back({.path = path});
    for (uint32_t f = 0; f < 3; ++f) {
      auto source = base::OpenMemory((f == 0) == late_first ? late : early);
      ASSERT_TRUE(ReadFlightRecorder(*source, trace::FileRow(f), store, {}).ok());
    }
    KeepLatestDumps(store);
    const uint32_t used = late_first ? 0 : 1;
    for (const auto& record : store.comm_records) EXPECT_NE(record.file.value(), 1 - used);
    EXPECT_EQ(store.files[1 - used].spans, 0u);
    EXPECT_EQ(store.files[1 - used].records_read, store.files[1 - used].dropped);
    EXPECT_NE(store.files[1 - used].note.find(store.files[used].path), std::string::npos);
    EXPECT_EQ(store.diagnostics.Count("flight-recorder.earlier"), 1u) << "the other rank has one dump";
  }
}

TEST(FlightRecorder, RecordsShareTheMembersOfTheirGroup) {
  std::string entries;
  for (int i = 0; i < 1000; ++i) {
    entries += (i > 0 ? "," : "") + std::string(R"({"process_group":["0","x"],"collective_seq_id":)") +
               std::to_string(i) + R"(,"profiling_name":"nccl:all_reduce","state":"completed"})";
  }
  const auto dump = [&](const std::string& ranks) {
    return R"({"rank":1,"pg_config":{"0":{"name":"0","desc":"d","ranks":")" + ranks + R"("}},"entries":[)" + entries +
           "]}";
  };
  std::string ranks = "0";
  for (int i = 1; i < 5000; ++i) ranks += ", " + std::to_string(i);
  const auto store = ReadDump(dump(ranks), "dump");
  ASSERT_EQ(store.comm_records.size(), 1000u);
  ASSERT_EQ(store.comm_groups.size(), 1u);
  EXPECT_EQ(store.comm_groups[0].size(), 5000u);
  for (const auto& record : store.comm_records) ASSERT_EQ(record.members, 0);

  for (int i = 5000; i < 200000; ++i) ranks += ", " + std::to_string(i);
  const auto absurd = ReadDump(dump(ranks), "dump");
  EXPECT_EQ(absurd.comm_records.size(), 1000u);
  EXPECT_TRUE(absurd.comm_groups.empty());
  EXPECT_EQ(absurd.diagnostics.Count("flight-recorder.big-group"), 1u);
}

TEST(FlightRecorder, ANumberInAFileNameIsARankOnlyWhereItSaysSo) {
  const auto rank = [](const std::string& path) { return ReadDump(kDump, path).files[0].rank; };
  EXPECT_EQ(rank("x/nccl_trace_rank_3"), 3);
  EXPECT_EQ(rank("x/rank12.json"), 12);
  for (const char* path : {"x/dump_20261130.json", "x/node7.json", "x/dump.4"}) {
    const auto store = ReadDump(kDump, path);
    EXPECT_FALSE(store.files[0].rank.has_value()) << path;
    EXPECT_TRUE(store.comm_records.empty());
    EXPECT_EQ(store.diagnostics.Count("flight-recorder.no-rank"), 1u);
    EXPECT_TRUE(store.diagnostics.LostInput());
  }
}

TEST(FlightRecorder, TimesBeyondAnyDateAreNotTold) {
  const auto store = ReadDump(
      R"({"rank":0,"entries":[{"process_group":["0","x"],"collective_seq_id":1,"profiling_name":"a","state":"b",)"
      R"("time_created_ns":9223372036854775807}]})",
      "d");
  ASSERT_EQ(store.comm_records.size(), 1u);
  EXPECT_EQ(store.comm_records[0].created, trace::kNoTime);
  EXPECT_EQ(store.diagnostics.Count("flight-recorder.bad-time"), 1u);
}

TEST(FlightRecorder, RefusesOtherJson) {
  EXPECT_FALSE(LooksLikeFlightRecorder(R"({"traceEvents":[],"pg_config":{}})"));
  EXPECT_FALSE(LooksLikeFlightRecorder("[1]"));
  trace::Store store;
  store.files.emplace_back();
  for (const std::string_view text :
       {std::string_view("{"), std::string_view("[]"), std::string_view("{\"entries\":3}")}) {
    auto source = base::OpenMemory(text);
    const auto status = ReadFlightRecorder(*source, trace::FileRow(0), store, {});
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, base::Code::kBadFormat);
  }
}

TEST(FlightRecorder, ReadsTheRealDumps) {
  const std::filesystem::path root = "../shared/data/logs/nccl_flight_recorder";
  if (!std::filesystem::exists(root)) {
    GTEST_SKIP() << "the real dumps (../shared/data) are not here";
  }
  size_t entries = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() != ".json") continue;
    trace::Store store;
    store.files.emplace_back();
    store.files[0].path = entry.path().string();
    auto source = base::OpenFile(entry.path().string());
    ASSERT_TRUE(source.has_value());
    ASSERT_TRUE(ReadFlightRecorder(**source, trace::FileRow(0), store, {}).ok()) << entry.path();
    EXPECT_EQ(store.files[0].records_read, store.files[0].spans + store.files[0].dropped);
    entries += store.files[0].spans;
  }
  EXPECT_EQ(entries, 289u + 142u);
}

}  // namespace
}  // namespace teller::ingest
