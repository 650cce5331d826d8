#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/rng.hpp"
#include "ingest/nsys/nsys_test_support.hpp"

namespace teller::ingest {
namespace {

const std::string kStrings = "CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);";
const std::string kNvtx =
    "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER,"
    " textId INTEGER);";
const std::string kMeta = "CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);";
const std::string kKernel =
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,"
    " streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, bytes INTEGER);";

std::string FileText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(NsysBadInput, TimesThatCannotBeAreDroppedOrCut) {
  const TestFolder folder;
  const trace::Store store = ReadExportFile(MakeDatabase(
      folder, "a.sqlite",
      kNvtx + "INSERT INTO NVTX_EVENTS VALUES ('x', 5, 59, 'no number', 1, NULL), (NULL, 5, 59, 'none', 1, NULL),"
              " (9223372036854775807, 9223372036854775807, 59, 'huge', 1, NULL),"
              " (-9223372036854775808, 5, 59, 'early', 1, NULL), (1e300, 5, 59, 'real', 1, NULL),"
              " (10, 5, 59, 'backwards', 1, NULL), (10, 9223372036854775807, 59, 'long', 1, NULL),"
              " (10, 20, 4711, 'type', 1, NULL), (10, 20, 59, 'good', 1, NULL);"));
  EXPECT_EQ(store.files[0].records_read, 9u);
  EXPECT_EQ(store.diagnostics.Count("nsys.bad_time"), 5u);
  EXPECT_EQ(store.diagnostics.Count("nsys.bad_end"), 2u);
  EXPECT_EQ(store.diagnostics.Count("nsys.unknown_nvtx"), 1u);
  EXPECT_EQ(store.spans.duration[SpanNamed(store, "backwards")], 0);
  EXPECT_EQ(store.spans.duration[SpanNamed(store, "long")], 0);
  EXPECT_EQ(store.spans.duration[SpanNamed(store, "good")], 10);
  EXPECT_TRUE(store.diagnostics.LostInput());
}

TEST(NsysBadInput, NumbersThatCannotBeAreTakenAsNotTold) {
  const TestFolder folder;
  const trace::Store store = ReadExportFile(
      MakeDatabase(folder, "a.sqlite",
                   kStrings + kKernel +
                       "INSERT INTO StringIds VALUES (1, 'k');"
                       "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES"
                       " (1, 2, -5, 1, 7, -3, 16777216, 1, -8),"
                       " (3, 4, 99999999999, 1, 99999999999, 99999999999, 16777216, 1, 9223372036854775807);"));
  ASSERT_EQ(store.gpu_args.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(store.gpu_args.value(i).correlation, 0u);
    EXPECT_EQ(store.gpu_args.value(i).device, -1);
    EXPECT_EQ(store.gpu_args.value(i).bytes, -1);
  }
  EXPECT_EQ(store.diagnostics.Count("nsys.bad_amount"), 5u);
}

TEST(NsysBadInput, DurationsWithAnAbsurdSumCountAsNone) {
  const TestFolder folder;
  const trace::Store store = ReadExportFile(
      MakeDatabase(folder, "a.sqlite",
                   kNvtx + "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 2000)"
                           " INSERT INTO NVTX_EVENTS SELECT i, i + 2500000000000000, 59, 'a', 1, NULL FROM n;"));
  EXPECT_EQ(store.diagnostics.Count("trace.absurd_total"), 1u);
  for (const auto duration : store.spans.duration) ASSERT_EQ(duration, 0);
}

TEST(NsysBadInput, NamesMayBeMissingBrokenOrEndless) {
  const TestFolder folder;
  const trace::Store store =
      ReadExportFile(MakeDatabase(folder, "a.sqlite",
                                  kStrings + kNvtx +
                                      "INSERT INTO StringIds VALUES (1, CAST(X'61FF62' AS TEXT)), (-7, 'negative'),"
                                      " (9223372036854775807, 'far');"
                                      "INSERT INTO NVTX_EVENTS VALUES (1, 2, 59, NULL, 1, 1), (2, 3, 59, NULL, 1, 2),"
                                      " (3, 4, 59, NULL, 1, NULL), (4, 5, 59, CAST(X'C3' AS TEXT), 1, NULL),"
                                      " (5, 6, 59, NULL, 1, -7), (6, 7, 59, NULL, 1, 9223372036854775807),"
                                      " (7, 8, 59, NULL, NULL, -7),"
                                      " (8, 9, 59, replace(hex(zeroblob(20000)), '00', X'C3A4'), 1, NULL);"));
  EXPECT_EQ(store.spans.duration[SpanNamed(store,
                                           "a\xEF\xBF\xBD"
                                           "b")],
            1);
  EXPECT_EQ(store.spans.duration[SpanNamed(store, "\xEF\xBF\xBD")], 1);
  EXPECT_EQ(store.spans.duration[SpanNamed(store, "string 2")], 1);
  EXPECT_EQ(store.spans.duration[SpanNamed(store, "(no name)")], 1);
  EXPECT_EQ(store.spans.duration[SpanNamed(store, "far")], 1);
  EXPECT_EQ(store.diagnostics.Count("nsys.invalid_utf8"), 2u);
  EXPECT_EQ(store.diagnostics.Count("nsys.no_string"), 1u);
  EXPECT_EQ(store.diagnostics.Count("nsys.no_thread"), 1u);
  EXPECT_EQ(store.diagnostics.Count("nsys.long_name"), 1u);
}

TEST(NsysBadInput, NothingInTheFileIsExecuted) {
  const TestFolder folder;
  const trace::Store store = ReadExportFile(MakeDatabase(
      folder, "a.sqlite",
      kMeta + "CREATE VIEW NVTX_EVENTS AS WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL SELECT start+1 FROM n)"
              " SELECT start, start AS end, 59 AS eventType FROM n;"
              "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (a INTEGER, start INTEGER,"
              " end INTEGER AS (start + length(zeroblob(900000000))), deviceId INTEGER AS (a + 1));"
              "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (a, start) VALUES (1, 2);"));
  EXPECT_EQ(store.spans.size(), 0u);
  EXPECT_EQ(store.diagnostics.Count("nsys.unknown_layout"), 1u);  // a computed end is no end
}

TEST(NsysBadInput, RowNumbersMayBeAnything) {
  const TestFolder folder;
  const trace::Store store = ReadExportFile(MakeDatabase(
      folder, "a.sqlite",
      kNvtx +
          "INSERT INTO NVTX_EVENTS (rowid, start, end, eventType, text) VALUES (-9223372036854775808, 1, 2, 59, 'a'),"
          " (0, 2, 3, 59, 'b'), (9223372036854775807, 3, 4, 59, 'c');"
          "CREATE TABLE OSRT_API (start INTEGER PRIMARY KEY, end INTEGER, globalTid INTEGER) WITHOUT ROWID;"
          "INSERT INTO OSRT_API VALUES (5, 6, 1), (7, 8, 1);"
          "CREATE TABLE CUDNN_EVENTS (start INTEGER, end INTEGER, rowid INTEGER);"
          "INSERT INTO CUDNN_EVENTS VALUES (9, 10, 3), (11, 12, 1);"));
  EXPECT_EQ(store.spans.size(), 7u);
}

TEST(NsysBadInput, ATableThatLacksItsTimesIsALoss) {
  const TestFolder folder;
  const trace::Store store =
      ReadExportFile(MakeDatabase(folder, "a.sqlite",
                                  kMeta + "CREATE TABLE OSRT_API (begin INTEGER); INSERT INTO OSRT_API VALUES (1);"
                                          "INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION_MAJOR', '9');"));
  EXPECT_EQ(store.diagnostics.Count("nsys.unknown_layout"), 1u);
  EXPECT_EQ(store.diagnostics.Count("nsys.new_schema"), 1u);
  EXPECT_EQ(store.diagnostics.Count("nsys.no_gpu_work"), 1u);
  EXPECT_TRUE(store.diagnostics.LostInput());
}

std::string ManyRanges(const TestFolder& folder) {
  return MakeDatabase(folder, "whole.sqlite",
                      kNvtx +
                          "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 40000)"
                          " INSERT INTO NVTX_EVENTS SELECT i*10, i*10+5, 59, 'range', 1, NULL FROM n;");
}

TEST(NsysBadInput, ACutFileIsALossAndNeverACrash) {
  const TestFolder folder;
  const std::string text = FileText(ManyRanges(folder));
  for (const size_t size : {100ul, 511ul, 512ul, 4096ul, 4097ul, 12288ul, text.size() / 3, text.size() / 2,
                            text.size() - 4096, text.size() - 1}) {
    SCOPED_TRACE(size);
    const auto path = folder.Write("cut.sqlite", text.substr(0, size));
    auto read = ReadRun({.paths = {path}, .logs = {}}, {.threads = 2});
    if (!read) {
      EXPECT_NE(read.error().message, "");
      continue;
    }
    EXPECT_TRUE(read->diagnostics.LostInput());
    EXPECT_LE(read->spans.size(), 40000u);
    // What is there is read.
    if (size > text.size() / 4) {
      EXPECT_GT(read->spans.size(), 0u);
    }
    const auto& file = read->files[0];
    EXPECT_EQ(file.records_read, file.spans + file.dropped);
  }
}

TEST(NsysBadInput, FlippedBytesNeverCrash) {
  const TestFolder folder;
  const std::string text = FileText(ManyRanges(folder));
  base::Rng rng(7);
  for (int round = 0; round < 60; ++round) {
    std::string flipped = text;
    const size_t reach = round % 2 == 0 ? text.size() : 16384;  // the front holds the schema and the tree's root
    for (int i = 0; i < 20; ++i) flipped[16 + rng.Below(reach - 16)] = static_cast<char>(rng.Next());
    const auto path = folder.Write("flipped.sqlite", flipped);
    auto read = ReadRun({.paths = {path}, .logs = {}}, {.threads = 2});
    if (!read) continue;
    const auto& file = read->files[0];
    EXPECT_EQ(file.records_read, file.spans + file.instants + file.metadata + file.repaired_away + file.dropped);
    EXPECT_EQ(file.spans, read->spans.size());
  }
}

TEST(NsysBadInput, OtherDatabasesAndCompressedOnesSayWhatToDo) {
  const TestFolder folder;
  const auto other = MakeDatabase(folder, "other.sqlite", "CREATE TABLE t (a); INSERT INTO t VALUES (1);");
  auto read = ReadRun({.paths = {other}, .logs = {}}, {});
  ASSERT_FALSE(read.has_value());
  EXPECT_NE(read.error().Text().find("no export of Nsight Systems"), std::string::npos) << read.error().Text();
  const auto packed = folder.Write("a.sqlite.gz", Gzip(FileText(MakeDatabase(folder, "b.sqlite", kNvtx))));
  auto compressed = ReadRun({.paths = {packed}, .logs = {}}, {});
  ASSERT_FALSE(compressed.has_value());
  EXPECT_NE(compressed.error().Text().find("unpack it first"), std::string::npos) << compressed.error().Text();
  const auto report = folder.Write("a.nsys-rep", std::string(300, '\x02'));
  auto profiler = ReadRun({.paths = {report}, .logs = {}}, {});
  ASSERT_FALSE(profiler.has_value());
  EXPECT_NE(profiler.error().Text().find("nsys export"), std::string::npos) << profiler.error().Text();
}

TEST(NsysBadInput, PathsMayHoldWhatUrisDoNot) {
  const TestFolder folder;
  const auto path = MakeDatabase(folder, "a ?b#%41&mode=rw.sqlite",
                                 kNvtx + "INSERT INTO NVTX_EVENTS VALUES (1, 2, 59, 'a', 1, NULL);");
  EXPECT_EQ(ReadExportFile(path).spans.size(), 1u);
}

TEST(NsysBadInput, TheFileIsNotChangedAndNoJournalIsMade) {
  const TestFolder folder;
  const auto path =
      MakeDatabase(folder, "a.sqlite", kNvtx + "INSERT INTO NVTX_EVENTS VALUES (1, 2, 59, 'a', 1, NULL);");
  const std::string before = FileText(path);
  ReadExportFile(path);
  EXPECT_EQ(FileText(path), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

}  // namespace
}  // namespace teller::ingest
