#include "ingest/nsys/nsys.hpp"

#include <algorithm>
#include <set>

#include "ingest/nsys/names.hpp"
#include "ingest/nsys/nsys_test_support.hpp"

namespace teller::ingest {
namespace {

using trace::SpanKind;

constexpr int64_t kStart = 1'780'000'000'000'000'000;

const std::string kStrings =
    "CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);"
    "INSERT INTO StringIds VALUES (1,'gemm<(int)4>'), (2,'cudaLaunchKernel_v7000'), (3,'cuLaunchKernelEx'),"
    " (4,'layer'), (5,'poll'), (6,'main'), (7,'cudaGraphLaunch_v10000'), (8,'Graph node creation'), (9,'gemm');";
const std::string kSession =
    "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);"
    "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1780000000000000000,'','');";
const std::string kNvtx =
    "CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT,"
    " globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER);";
const std::string kKernel =
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,"
    " contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,"
    " demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, graphNodeId INTEGER);";
const std::string kRuntime =
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL,"
    " eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL,"
    " returnValue INTEGER NOT NULL, callchainId INTEGER);";

/// Values of a row as SQL text.
template <class... Values>
std::string Insert(const std::string& table, Values... values) {
  std::string sql = "INSERT INTO " + table + " VALUES (";
  const auto add = [&sql](const auto& value) {
    if constexpr (std::is_integral_v<std::decay_t<decltype(value)>>) {
      sql += std::to_string(value) + ",";
    } else {
      sql += std::string(value) + ",";
    }
  };
  (add(values), ...);
  sql.back() = ')';
  return sql + ";";
}

std::string Range(int64_t start, const std::string& end, const std::string& text, int64_t tid, int type = 59) {
  return Insert("NVTX_EVENTS", start, end, type, "'" + text + "'", tid, "NULL", "NULL", 0);
}

const trace::GpuArgs& GpuArgsOf(const trace::Store& store, uint32_t row) {
  static const trace::GpuArgs kNone;
  const auto* args = store.gpu_args.Find(row);
  EXPECT_NE(args, nullptr);
  return args == nullptr ? kNone : *args;
}

TEST(Nsys, RowsOfANewExportBecomeSpansOfThreadsAndStreams) {
  const TestFolder folder;
  const int64_t tid = GlobalTid(70, 71);
  const int64_t pid = GlobalPid(70);
  const auto path = MakeDatabase(
      folder, "a.sqlite",
      kStrings + kSession + kNvtx + kKernel + kRuntime +
          "CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);" +
          Insert("PROCESSES", pid, 70, "'VLLM::Worker_TP3'") +
          "CREATE TABLE ThreadNames (nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER);" +
          Insert("ThreadNames", 6, 20, tid) + "CREATE TABLE TARGET_INFO_GPU (id INTEGER NOT NULL, name TEXT);" +
          Insert("TARGET_INFO_GPU", 2, "'H200'") +
          "CREATE TABLE TARGET_INFO_SYSTEM_ENV (name TEXT NOT NULL, value TEXT NOT NULL);" +
          Insert("TARGET_INFO_SYSTEM_ENV", "'Hostname'", "'node7'") +
          Range(100, "900", "aten::mm, seq = 4, op_id = 12, sizes = [[2, 3], []]", tid) +
          Insert("NVTX_EVENTS", 50, 950, 59, "NULL", tid, "NULL", 4, 0) +
          Insert("NVTX_EVENTS", 60, "NULL", 34, "'mark'", tid, "NULL", "NULL", 0) +
          Insert("NVTX_EVENTS", 1, "NULL", 75, "'NCCL'", tid, "NULL", "NULL", 1) +
          Insert("NVTX_EVENTS", 110, 120, 59, "'ncclSend'", tid, "NULL", "NULL", 1) +
          Insert("NVTX_EVENTS", 130, 700, 60, "'request'", tid, GlobalTid(70, 72), "NULL", 0) +
          Insert("CUPTI_ACTIVITY_KIND_RUNTIME", 200, 300, 0, tid, 5, 2, 0, "NULL") +
          Insert("CUPTI_ACTIVITY_KIND_RUNTIME", 400, 450, 1, tid, 6, 3, 0, "NULL") +
          Insert("CUPTI_ACTIVITY_KIND_RUNTIME", 199, 301, 67, tid, 5, 2, 0, 1) +
          Insert("CUPTI_ACTIVITY_KIND_KERNEL", 350, 600, 2, 1, 7, 5, pid, 1, 9, "NULL") +
          "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,"
          " streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER,"
          " srcKind INTEGER, dstKind INTEGER, graphNodeId INTEGER);" +
          Insert("CUPTI_ACTIVITY_KIND_MEMCPY", 610, 640, 2, 1, 7, 6, pid, 4096, 1, 1, 2, "NULL") +
          "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,"
          " streamId INTEGER, correlationId INTEGER, globalPid INTEGER, value INTEGER, bytes INTEGER, memKind "
          "INTEGER);" +
          Insert("CUPTI_ACTIVITY_KIND_MEMSET", 650, 660, 2, 1, 7, 0, pid, 0, 8, 2) +
          "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER, end INTEGER, deviceId INTEGER,"
          " contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, syncType INTEGER);" +
          Insert("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", 460, 660, 0, 1, 7, 8, pid, 3) +
          Insert("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", 470, 480, 0, 1, 4294967295, 9, pid, 1) +
          "CREATE TABLE OSRT_API (start INTEGER, end INTEGER, globalTid INTEGER, nameId INTEGER, callchainId "
          "INTEGER);" +
          Insert("OSRT_API", 500, 560, tid, 5, 0) + "CREATE TABLE GPU_METRICS (start INTEGER, value INTEGER);" +
          Insert("GPU_METRICS", 1, 1));
  const trace::Store store = ReadExportFile(path);
  EXPECT_EQ(store.files[0].records_read, 15u);
  EXPECT_EQ(store.files[0].repaired_away, 1u);  // the call that came again for its call chain
  EXPECT_EQ(store.files[0].metadata, 1u);       // the domain
  EXPECT_EQ(store.files[0].dropped, 0u);
  EXPECT_EQ(store.diagnostics.Count("nsys.table_not_used"), 1u);
  EXPECT_FALSE(store.diagnostics.LostInput());

  ASSERT_EQ(store.processes.size(), 1u);
  EXPECT_EQ(store.processes[0].pid, "70");
  EXPECT_EQ(store.processes[0].name, "Worker_TP3");
  EXPECT_EQ(store.processes[0].engine, "vllm");
  EXPECT_EQ(store.processes[0].rank, 3);
  EXPECT_EQ(store.processes[0].host, "node7");

  const uint32_t op = SpanNamed(store, "aten::mm");
  EXPECT_EQ(store.kind(op), SpanKind::kOp);
  EXPECT_EQ(store.spans.begin[op], kStart + 100);
  EXPECT_EQ(store.spans.duration[op], 800);
  ASSERT_NE(store.op_args.Find(op), nullptr);
  EXPECT_EQ(store.text(store.op_args.Find(op)->input_dims), "[[2, 3], []]");
  EXPECT_EQ(store.track_of(op).tid, "71");
  EXPECT_EQ(store.track_of(op).name, "main");
  EXPECT_EQ(store.kind(SpanNamed(store, "layer")), SpanKind::kAnnotation);
  EXPECT_EQ(store.kind(SpanNamed(store, "ncclSend")), SpanKind::kOp);
  EXPECT_NE(store.spans.track[SpanNamed(store, "request")], store.spans.track[op]);
  EXPECT_EQ(store.kind(SpanNamed(store, "poll")), SpanKind::kOther);
  EXPECT_EQ(store.text(store.instants.at(0).name), "mark");

  const uint32_t call = SpanNamed(store, "cudaLaunchKernel");
  EXPECT_EQ(store.kind(call), SpanKind::kRuntime);
  EXPECT_EQ(GpuArgsOf(store, call).correlation, 5u);
  EXPECT_EQ(store.kind(SpanNamed(store, "cuLaunchKernelEx")), SpanKind::kDriver);

  const uint32_t kernel = SpanNamed(store, "gemm<(int)4>");
  EXPECT_EQ(store.kind(kernel), SpanKind::kKernel);
  EXPECT_TRUE(store.track_of(kernel).is_stream);
  EXPECT_EQ(store.track_of(kernel).stream, 7);
  EXPECT_EQ(store.track_of(kernel).tid, "7");
  EXPECT_EQ(store.track_of(kernel).name, "GPU 2 H200");
  EXPECT_EQ(GpuArgsOf(store, kernel).device, 2);
  EXPECT_EQ(GpuArgsOf(store, kernel).graph_node, 0u);
  const uint32_t copy = SpanNamed(store, "Memcpy HtoD (Pinned -> Device)");
  EXPECT_EQ(GpuArgsOf(store, copy).bytes, 4096);
  EXPECT_EQ(GpuArgsOf(store, SpanNamed(store, "Memset (Device)")).bytes, 8);
  // The wait for a stream stands on it, a wait for an event on no stream of its own.
  EXPECT_EQ(store.spans.track[SpanNamed(store, "Stream Sync")], store.spans.track[kernel]);
  EXPECT_EQ(store.track_of(SpanNamed(store, "Event Sync")).stream, -1);
  EXPECT_TRUE(store.track_of(SpanNamed(store, "Event Sync")).is_stream);
}

TEST(Nsys, GraphsInBothModesKeepTheirLaunchAndTheirNodes) {
  const TestFolder folder;
  const int64_t tid = GlobalTid(70, 70);
  const int64_t pid = GlobalPid(70);
  const auto path = MakeDatabase(
      folder, "a.sqlite",
      kStrings + kSession + kKernel + kRuntime +
          Insert("CUPTI_ACTIVITY_KIND_RUNTIME", 10, 20, 0, tid, 5, 7, 0, "NULL") +
          Insert("CUPTI_ACTIVITY_KIND_RUNTIME", 30, 40, 0, tid, 6, 7, 0, "NULL") +
          Insert("CUPTI_ACTIVITY_KIND_KERNEL", 50, 60, 0, 1, 7, 5, pid, 1, 9, (int64_t{3} << 32) | 1) +
          Insert("CUPTI_ACTIVITY_KIND_KERNEL", 60, 70, 0, 1, 7, 5, pid, 1, 9, (int64_t{3} << 32) | 2) +
          "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER, contextId "
          "INTEGER,"
          " streamId INTEGER, correlationId INTEGER, globalPid INTEGER, graphId INTEGER, graphExecId INTEGER);" +
          Insert("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", 80, 99, 0, 1, 7, 6, pid, 4, 9) +
          Insert("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", 0, 0, 0, 1, 7, 6, pid, 4, 9) +
          "CREATE TABLE CUDA_GRAPH_NODE_EVENTS (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER,"
          " nameId INTEGER, graphNodeId INTEGER, originalGraphNodeId INTEGER);" +
          Insert("CUDA_GRAPH_NODE_EVENTS", 1, 2, 77, tid, 8, (int64_t{3} << 32) | 1, 77));
  const trace::Store store = ReadExportFile(path);
  EXPECT_EQ(store.diagnostics.Count("nsys.no_time"), 1u);
  EXPECT_EQ(store.files[0].dropped, 1u);
  const uint32_t graph = SpanNamed(store, "CUDA graph 9");
  EXPECT_EQ(store.kind(graph), SpanKind::kKernel);
  EXPECT_EQ(GpuArgsOf(store, graph).correlation, 6u);
  const uint32_t node = SpanNamed(store, "Graph node creation");
  EXPECT_EQ(GpuArgsOf(store, node).graph_node, (uint64_t{3} << 32) | 1);
  ASSERT_EQ(store.attributes.FindAll(node).size(), 1u);
  EXPECT_EQ(store.text(store.attributes.FindAll(node)[0].value), "77");
  std::set<uint64_t> nodes;
  for (size_t i = 0; i < store.gpu_args.size(); ++i) {
    if (store.kind(store.gpu_args.row(i)) == SpanKind::kKernel && store.gpu_args.value(i).correlation == 5) {
      nodes.insert(store.gpu_args.value(i).graph_node);
    }
  }
  EXPECT_EQ(nodes.size(), 2u);
}

TEST(Nsys, AnExportOf2022IsRead) {
  const TestFolder folder;
  const int64_t tid = GlobalTid(70, 70);
  const auto path = MakeDatabase(
      folder, "a.sqlite",
      kStrings + kSession +
          "CREATE TABLE EXPORT_META_DATA (name TEXT NOT NULL, value TEXT);"
          "INSERT INTO EXPORT_META_DATA VALUES ('EXPORT_SCHEMA_VERSION_MAJOR','2'),('EXPORT_SCHEMA_VERSION_MINOR','9');"
          "CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT);"
          "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER,"
          " contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, shortName INTEGER);" +
          Insert("CUPTI_ACTIVITY_KIND_KERNEL", 5, 9, 0, 1, 7, 3, GlobalPid(70), 9) +
          "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER);" +
          Insert("NVTX_EVENTS", 1, 8, 59, "'step'", tid) + Insert("NVTX_EVENTS", 0, "NULL", 39, "'MPI Rank 6'", tid) +
          "CREATE TABLE COMPOSITE_EVENTS (id INTEGER NOT NULL PRIMARY KEY, start INTEGER, cpu INTEGER, globalTid "
          "INTEGER);" +
          Insert("COMPOSITE_EVENTS", 1, 4, 0, tid) + Insert("COMPOSITE_EVENTS", 2, 6, 0, tid) +
          "CREATE TABLE SAMPLING_CALLCHAINS (id INTEGER NOT NULL, symbol INTEGER NOT NULL, stackDepth INTEGER NOT NULL,"
          " PRIMARY KEY (id, stackDepth));" +
          Insert("SAMPLING_CALLCHAINS", 1, 5, 0) + Insert("SAMPLING_CALLCHAINS", 1, 6, 1));
  const trace::Store store = ReadExportFile(path);
  EXPECT_EQ(store.spans.begin[SpanNamed(store, "gemm")], kStart + 5);
  EXPECT_EQ(store.processes[0].rank, 6);
  EXPECT_EQ(store.track_of(SpanNamed(store, "step")).name, "MPI Rank 6");
  ASSERT_EQ(store.instants.size(), 2u);
  EXPECT_EQ(store.text(store.instants[0].name), "poll");
  EXPECT_EQ(store.diagnostics.Count("nsys.sample_without_frames"), 1u);
  EXPECT_EQ(store.files[0].records_read, 7u);
  EXPECT_EQ(store.files[0].repaired_away, 1u);
  EXPECT_EQ(store.files[0].dropped, 1u);  // the outer frame
}

TEST(Nsys, TimesAreOfTheEpochWhereTheExportTellsIt) {
  const TestFolder folder;
  const int64_t tid = GlobalTid(70, 70);
  const auto relative = MakeDatabase(folder, "a.sqlite", kNvtx + Range(5, "9", "r", tid));
  const trace::Store untold = ReadExportFile(relative);
  EXPECT_EQ(untold.spans.begin[0], 5);
  EXPECT_EQ(untold.diagnostics.Count("nsys.no_epoch"), 1u);
  const auto normalized =
      MakeDatabase(folder, "b.sqlite", kSession + kNvtx + Range(kStart + 5, std::to_string(kStart + 9), "r", tid));
  const trace::Store epoch = ReadExportFile(normalized);
  EXPECT_EQ(epoch.spans.begin[0], kStart + 5);
  EXPECT_EQ(epoch.diagnostics.Count("nsys.no_epoch"), 0u);
}

TEST(Nsys, RangesThatCrossOnAThreadSurviveAndAnOpenOneLasts) {
  const TestFolder folder;
  const int64_t tid = GlobalTid(70, 70);
  const auto path = MakeDatabase(folder, "a.sqlite",
                                 kSession + kNvtx + Range(10, "50", "a", tid, 60) + Range(30, "80", "b", tid, 60) +
                                     Range(40, "NULL", "open", tid) + Range(60, "70", "c", tid));
  const trace::Store store = ReadExportFile(path);
  ASSERT_EQ(store.spans.size(), 4u);
  EXPECT_EQ(store.spans.duration[SpanNamed(store, "a")], 40);
  EXPECT_EQ(store.spans.duration[SpanNamed(store, "b")], 50);
  EXPECT_EQ(store.spans.end(SpanNamed(store, "open")), kStart + 80);
  EXPECT_EQ(store.diagnostics.Count("nsys.open_range"), 1u);
}

/// Rows of several chunks, out of order, of two processes.
std::string ManyRows() {
  return kStrings + kSession + kKernel + kNvtx + kRuntime +
         "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 50000)"
         " INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT (i*7919)%1000003, (i*7919)%1000003 + i%97, i%2, 1, i%3, i,"
         " (281474976710656 + 16777216*(5+i%2)), 1+8*(i%2), 9, NULL FROM n;"
         "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 50000)"
         " INSERT INTO NVTX_EVENTS SELECT (i*7907)%1000003, (i*7907)%1000003 + i%89, 59, 'text ' || (i%13),"
         " (281474976710656 + 16777216*(5+i%2) + i%4), NULL, NULL, 0 FROM n;"
         "DELETE FROM NVTX_EVENTS WHERE rowid % 10 = 3;";
}

TEST(Nsys, SumsAreThoseOfSql) {
  const TestFolder folder;
  const auto path = MakeDatabase(folder, "a.sqlite", ManyRows());
  const Sums ours = SumsOf(ReadExportFile(path));
  Sums theirs;
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  const char* sql =
      "SELECT 'kernel', value, count(*), sum(end-start) FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds ON id ="
      " demangledName GROUP BY 2 UNION ALL SELECT 'nvtx', text, count(*), sum(end-start) FROM NVTX_EVENTS GROUP BY 2";
  const auto row = [](void* sums, int, char** values, char**) {
    (*static_cast<Sums*>(sums))[{values[0], values[1]}] = {std::stoll(values[2]), std::stoll(values[3])};
    return 0;
  };
  ASSERT_EQ(sqlite3_exec(db, sql, row, &theirs, nullptr), SQLITE_OK);
  sqlite3_close(db);
  EXPECT_EQ(ours, theirs);
  EXPECT_EQ(ours.size(), 15u);
}

TEST(Nsys, SameStoreForAnyThreadCount) {
  const TestFolder folder;
  const auto path = MakeDatabase(folder, "a.sqlite", ManyRows());
  const trace::Store one = ReadExportFile(path, 1);
  const trace::Store four = ReadExportFile(path, 4);
  EXPECT_EQ(one.spans.begin, four.spans.begin);
  EXPECT_EQ(one.spans.duration, four.spans.duration);
  EXPECT_EQ(one.spans.name, four.spans.name);
  EXPECT_EQ(one.spans.track, four.spans.track);
  EXPECT_EQ(one.spans.category, four.spans.category);
  ASSERT_EQ(one.gpu_args.size(), four.gpu_args.size());
  for (size_t i = 0; i < one.gpu_args.size(); ++i) {
    ASSERT_EQ(one.gpu_args.row(i), four.gpu_args.row(i));
    ASSERT_EQ(one.gpu_args.value(i).correlation, four.gpu_args.value(i).correlation);
  }
}

TEST(Nsys, ARunMayHoldChromeTracesToo) {
  const TestFolder folder;
  MakeDatabase(folder, "b.sqlite", ManyRows());
  folder.Write(
      "a.json",
      "[" + Event("op", "5", "9", ",\"args\":{\"Input Dims\":[[1,2]],\"External id\":4,\"correlation\":9}") + "]");
  auto both = ReadRun({.paths = {folder.path()}, .logs = {}}, {.threads = 2});
  ASSERT_TRUE(both.has_value());
  const trace::Store alone = ReadExportFile(folder.path() + "/b.sqlite");
  EXPECT_EQ(both->spans.size(), alone.spans.size() + 1);
  Sums sums = SumsOf(*both);
  EXPECT_EQ(sums.erase({"cpu_op", "op"}), 1u);
  EXPECT_EQ(sums, SumsOf(alone));
  const uint32_t op = SpanNamed(*both, "op");
  ASSERT_NE(both->op_args.Find(op), nullptr);
  EXPECT_EQ(both->text(both->op_args.Find(op)->input_dims), "[[1,2]]");
  EXPECT_TRUE(std::is_sorted(both->spans.track.begin(), both->spans.track.end()));
  EXPECT_TRUE(std::is_sorted(both->gpu_args.rows().begin(), both->gpu_args.rows().end()));
  for (uint32_t row = 0; row < both->spans.size(); ++row) {
    if (both->kind(row) == SpanKind::kKernel) {
      ASSERT_NE(both->gpu_args.Find(row), nullptr);
    }
    const auto& track = both->track_of(row);
    ASSERT_TRUE(row >= track.first_span && row < track.first_span + track.span_count);
  }
}

std::string TwoProcesses(int device_of_second) {
  return kStrings + kSession + kKernel +
         Insert("CUPTI_ACTIVITY_KIND_KERNEL", 1, 2, 3, 1, 7, 1, GlobalPid(8), 1, 9, "NULL") +
         Insert("CUPTI_ACTIVITY_KIND_KERNEL", 2, 3, device_of_second, 1, 7, 1, GlobalPid(9), 1, 9, "NULL");
}

TEST(Nsys, RanksComeFromTheOrderOfGpusWhereNothingElseTells) {
  const TestFolder folder;
  const trace::Store store = ReadExportFile(MakeDatabase(folder, "a.sqlite", TwoProcesses(1)));
  ASSERT_EQ(store.processes.size(), 2u);
  EXPECT_EQ(store.processes[0].rank, 1);
  EXPECT_EQ(store.processes[1].rank, 0);
  EXPECT_EQ(store.diagnostics.Count("nsys.rank_inferred"), 1u);
  const trace::Store shared = ReadExportFile(MakeDatabase(folder, "b.sqlite", TwoProcesses(3)));
  EXPECT_FALSE(shared.processes[0].rank.has_value());
  EXPECT_EQ(shared.diagnostics.Count("nsys.rank_inferred"), 0u);
}

TEST(Nsys, TheRankOfOneProcessComesFromItsEnvironmentOrThePath) {
  const TestFolder folder;
  const std::string kernel = kStrings + kSession + kKernel +
                             Insert("CUPTI_ACTIVITY_KIND_KERNEL", 1, 2, 3, 1, 7, 1, GlobalPid(8), 1, 9, "NULL");
  const std::string environment =
      "CREATE TABLE META_DATA_CAPTURE (name TEXT NOT NULL, value TEXT);"
      "INSERT INTO META_DATA_CAPTURE VALUES ('PROCESS_0:ENVIRONMENT_VARIABLE','SLURM_PROCID=9'),"
      " ('PROCESS_0:ENVIRONMENT_VARIABLE','RANK=5'), ('PROCESS_0:ENVIRONMENT_VARIABLE','WORLD_SIZE=8'),"
      " ('PROCESS_0:ENVIRONMENT_VARIABLE','PMI_RANK=x');";
  const trace::Store told = ReadExportFile(MakeDatabase(folder, "rank2.sqlite", kernel + environment));
  EXPECT_EQ(told.processes[0].rank, 5);
  EXPECT_EQ(told.processes[0].world_size, 8);
  EXPECT_EQ(told.files[0].rank, 5);
  const trace::Store named = ReadExportFile(MakeDatabase(folder, "rank3.sqlite", kernel));
  EXPECT_EQ(named.processes[0].rank, 3);
}

TEST(Nsys, PidsOfTwoMachinesStayApart) {
  const TestFolder folder;
  const trace::Store store = ReadExportFile(
      MakeDatabase(folder, "a.sqlite",
                   kStrings + kSession + kKernel +
                       Insert("CUPTI_ACTIVITY_KIND_KERNEL", 1, 2, 0, 1, 7, 1, GlobalPid(8, 1), 1, 9, "NULL") +
                       Insert("CUPTI_ACTIVITY_KIND_KERNEL", 1, 2, 0, 1, 7, 1, GlobalPid(8, 2), 1, 9, "NULL")));
  ASSERT_EQ(store.processes.size(), 2u);
  EXPECT_EQ(store.processes[0].pid, "8");
  EXPECT_EQ(store.processes[1].pid, "8");
}

TEST(Nsys, TextsThatPyTorchWritesAreTakenApart) {
  using nsys::ParseOpText;
  const auto op = ParseOpText("aten::mul, seq = 45328, op_id = 990726");
  ASSERT_TRUE(op.has_value());
  EXPECT_EQ(op->name, "aten::mul");
  EXPECT_EQ(op->sizes, "");
  const auto sized = ParseOpText("f: x, y, op_id = 3, sizes = [[4, 5], [[1], []]], input_op_ids = [(1, 0)]");
  ASSERT_TRUE(sized.has_value());
  EXPECT_EQ(sized->name, "f: x, y");
  EXPECT_EQ(sized->sizes, "[[4, 5], [[1], []]]");
  EXPECT_EQ(ParseOpText("aten::mul, op_id = 7, sizes = [[4, 5")->sizes, "");
  EXPECT_FALSE(ParseOpText("step 4, batch = 3").has_value());
  EXPECT_FALSE(ParseOpText("wait, seq = none").has_value());
  EXPECT_FALSE(ParseOpText(", op_id = 3").has_value());
}

TEST(Nsys, VersionsAreCutOffCalls) {
  EXPECT_EQ(nsys::WithoutVersion("cudaLaunchKernel_v7000"), "cudaLaunchKernel");
  EXPECT_EQ(nsys::WithoutVersion("cudaStreamGetCaptureInfo_v2_v11030"), "cudaStreamGetCaptureInfo_v2");
  EXPECT_EQ(nsys::WithoutVersion("cuMemAlloc_v2"), "cuMemAlloc_v2");
  EXPECT_EQ(nsys::WithoutVersion("_v7000"), "_v7000");
  EXPECT_EQ(nsys::WithoutVersion("cuLaunchKernelEx"), "cuLaunchKernelEx");
}

}  // namespace
}  // namespace teller::ingest
