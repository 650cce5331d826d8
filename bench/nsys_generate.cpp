// Writes an SQLite export of Nsight Systems with about the wanted number of event rows: two processes that run the
// layers of a model, with NVTX ranges (as PyTorch writes them, and registered ones), CUDA calls, kernels, copies,
// synchronizations and waits in the OS. Same arguments, same file. Source of the layout: schema 3.25
// (docs/reference/nsys.md). Usage: bench_nsys_generate FILE ROWS

#include <sqlite3.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/rng.hpp"

namespace {

constexpr int kProcesses = 2;
constexpr int kOpsPerLayer = 12;
constexpr int kLayers = 32;
constexpr int64_t kFirstString = 1000;
constexpr int kKernelNames = 60;

[[noreturn]] void Fail(sqlite3* db, const char* what) {
  std::fprintf(stderr, "%s: %s\n", what, sqlite3_errmsg(db));
  std::exit(2);
}

class Writer {
 public:
  Writer(const char* path, uint64_t rows) : rows_(rows) {
    if (sqlite3_open(path, &db_) != SQLITE_OK) Fail(db_, "open");
    Run("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF");
    Run("CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);"
        "CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);"
        "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);"
        "CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT "
        "NULL,"
        " contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER,"
        " globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER,"
        " launchType INTEGER, cacheConfig INTEGER, registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL,"
        " gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL,"
        " blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL,"
        " localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER NOT NULL, gridId INTEGER NOT NULL,"
        " sharedMemoryExecuted INTEGER, graphNodeId INTEGER);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT "
        "NULL,"
        " contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,"
        " bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, srcKind INTEGER, dstKind INTEGER, graphNodeId INTEGER);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL,"
        " eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL,"
        " returnValue INTEGER NOT NULL, callchainId INTEGER);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER NOT NULL, end INTEGER NOT NULL,"
        " deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER,"
        " globalPid INTEGER, syncType INTEGER NOT NULL, eventId INTEGER NOT NULL);"
        "CREATE TABLE OSRT_API (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,"
        " globalTid INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, nestingLevel INTEGER,"
        " callchainId INTEGER NOT NULL);"
        "CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER,"
        " category INTEGER, color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER,"
        " domainId INTEGER, uint64Value INTEGER, int64Value INTEGER, doubleValue REAL);"
        "INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION_MAJOR','3'), ('EXPORT_SCHEMA_VERSION_MINOR','25');"
        "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1780000000000000000, '', '');"
        "BEGIN");
    kernel_ = Prepare(
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES"
        " (?1,?2,?3,1,0,?4,?5,?6,?7,?7,?7,1,1,32,108,1,1,256,1,1,0,16384,0,0,?5,32768,?8)");
    copy_ = Prepare("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?1,?2,?3,1,?4,?5,?6,?7,8,2,2,NULL)");
    call_ = Prepare("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?1,?2,0,?3,?4,?5,0,NULL)");
    sync_ = Prepare("INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (?1,?2,0,1,?3,?4,?5,3,4294967295)");
    wait_ = Prepare("INSERT INTO OSRT_API VALUES (?1,?2,27,?3,?4,0,0,0)");
    range_ = Prepare("INSERT INTO NVTX_EVENTS VALUES (?1,?2,59,NULL,NULL,NULL,?3,?4,NULL,?5,?6,NULL,NULL,NULL)");
    WriteStrings();
  }

  void Write() {
    std::vector<int64_t> now(kProcesses, 1'000'000);
    while (written_ < rows_) {
      for (int p = 0; p < kProcesses; ++p) now[p] = Step(p, now[p]);
    }
    Run("COMMIT");
    sqlite3_stmt* all[] = {kernel_, copy_, call_, sync_, wait_, range_};
    for (auto* statement : all) sqlite3_finalize(statement);
    sqlite3_close(db_);
  }

 private:
  void Run(const char* sql) {
    if (sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) Fail(db_, sql);
  }
  sqlite3_stmt* Prepare(const char* sql) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(db_, sql, -1, &statement, nullptr) != SQLITE_OK) Fail(db_, sql);
    return statement;
  }
  template <class... Values>
  void Insert(sqlite3_stmt* statement, Values... values) {
    int at = 0;
    (Bind(statement, ++at, values), ...);
    if (sqlite3_step(statement) != SQLITE_DONE) Fail(db_, "insert");
    sqlite3_reset(statement);
    ++written_;
  }
  static void Bind(sqlite3_stmt* statement, int at, int64_t value) { sqlite3_bind_int64(statement, at, value); }
  static void Bind(sqlite3_stmt* statement, int at, const std::string& value) {
    sqlite3_bind_text(statement, at, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT);
  }
  static void Bind(sqlite3_stmt* statement, int at, std::nullptr_t) { sqlite3_bind_null(statement, at); }

  void WriteStrings() {
    sqlite3_stmt* insert = Prepare("INSERT INTO StringIds VALUES (?1, ?2)");
    const auto add = [&](int64_t id, const std::string& text) {
      Insert(insert, id, text);
      --written_;
    };
    add(1, "cudaLaunchKernel_v7000");
    add(2, "cudaMemcpyAsync_v3020");
    add(3, "cudaStreamSynchronize_v3020");
    add(4, "pthread_cond_timedwait");
    for (int i = 0; i < kLayers; ++i) add(100 + i, "model.layers." + std::to_string(i));
    for (int i = 0; i < kKernelNames; ++i) {
      add(kFirstString + i, "void at::native::vectorized_elementwise_kernel<" + std::to_string(i) +
                                ", at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char *, 3ul>>(int, T2, T3)");
    }
    sqlite3_finalize(insert);
    for (int p = 0; p < kProcesses; ++p) {
      Run(("INSERT INTO PROCESSES VALUES (" + std::to_string(Pid(p)) + ", " + std::to_string(500 + p) +
           ", 'VLLM::Worker_TP" + std::to_string(p) + "')")
              .c_str());
    }
  }

  static int64_t Pid(int p) { return (int64_t{0x1000000} + 500 + p) << 24; }
  static int64_t Tid(int p) { return Pid(p) + 500 + p; }

  /// One forward pass of a process; returns when it ends.
  int64_t Step(int p, int64_t begin) {
    static constexpr const char* kOps[] = {
        "aten::mm",      "aten::add",        "aten::rms_norm", "aten::silu",
        "aten::reshape", "aten::copy_",      "aten::mul",      "vllm::rotary_embedding",
        "aten::linear",  "vllm::all_reduce", "aten::to",       "aten::index_select"};
    int64_t now = begin + 5'000;
    int64_t gpu = begin + 20'000;
    const int64_t pid = Pid(p);
    const int64_t tid = Tid(p);
    for (int layer = 0; layer < kLayers; ++layer) {
      const int64_t layer_begin = now;
      for (int op = 0; op < kOpsPerLayer; ++op) {
        const int64_t op_begin = now;
        const int64_t correlation = ++correlation_[p];
        const bool copies = op == 5;
        now += 700 + Noise(300);
        Insert(call_, now, now + 2'500, tid, correlation, int64_t{copies ? 2 : 1});
        now += 3'000;
        gpu = std::max(gpu, now) + 1'200;
        const int64_t length = 4'000 + Noise(3'000);
        if (copies) {
          Insert(copy_, gpu, gpu + length, int64_t{p}, int64_t{7}, correlation, pid, int64_t{1 << 20});
        } else {
          const int64_t name = kFirstString + (layer * kOpsPerLayer + op) % kKernelNames;
          Insert(kernel_, gpu, gpu + length, int64_t{p}, int64_t{7}, correlation, pid, name, nullptr);
        }
        gpu += length;
        now += 500;
        ++op_;
        Insert(range_, op_begin, now, std::string(kOps[op]) + ", op_id = " + std::to_string(op_), tid, nullptr,
               int64_t{0});
      }
      Insert(range_, layer_begin, now, nullptr, tid, int64_t{100 + layer}, int64_t{0});
    }
    const int64_t correlation = ++correlation_[p];
    Insert(call_, now, gpu, tid, correlation, int64_t{3});
    Insert(sync_, now + 100, gpu, int64_t{7}, correlation, pid);
    for (int i = 0; i < 20; ++i) Insert(wait_, begin + i * 9'000, begin + i * 9'000 + 8'000, tid + 1, int64_t{4});
    now = gpu + 50'000;
    Insert(range_, begin, now,
           std::string("execute_context_0(0)_generation_") + std::to_string(8 + Noise(8)) + "(" + "16" + ")", tid,
           nullptr, int64_t{0});
    return now + 20'000;
  }

  int64_t Noise(int64_t below) { return static_cast<int64_t>(rng_.Next() % static_cast<uint64_t>(below)); }

  sqlite3* db_ = nullptr;
  sqlite3_stmt *kernel_, *copy_, *call_, *sync_, *wait_, *range_;
  uint64_t rows_;
  uint64_t written_ = 0;
  int64_t correlation_[kProcesses] = {};
  int64_t op_ = 0;
  teller::base::Rng rng_{1};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: bench_nsys_generate FILE ROWS\n");
    return 2;
  }
  std::remove(argv[1]);
  Writer(argv[1], std::strtoull(argv[2], nullptr, 10)).Write();
  return 0;
}
