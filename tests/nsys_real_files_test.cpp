#include <gtest/gtest.h>
#include <sqlite3.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ingest/run.hpp"
#include "tests/real_files.hpp"
#include "tree/launch.hpp"

namespace teller {
namespace {

/// Answers of SQL, the independent reading.
class Sql {
 public:
  explicit Sql(const std::string& path) {
    const std::string uri = "file:" + path + "?immutable=1";
    EXPECT_EQ(sqlite3_open_v2(uri.c_str(), &db_, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr), SQLITE_OK);
  }
  Sql(const Sql&) = delete;
  Sql& operator=(const Sql&) = delete;
  ~Sql() { sqlite3_close(db_); }

  std::vector<std::vector<std::string>> Rows(const std::string& sql) const {
    std::vector<std::vector<std::string>> rows;
    const auto add = [](void* into, int n, char** values, char**) {
      auto& row = static_cast<std::vector<std::vector<std::string>>*>(into)->emplace_back();
      for (int i = 0; i < n; ++i) row.emplace_back(values[i] == nullptr ? "" : values[i]);
      return 0;
    };
    EXPECT_EQ(sqlite3_exec(db_, sql.c_str(), add, &rows, nullptr), SQLITE_OK) << sqlite3_errmsg(db_);
    return rows;
  }
  bool Has(const std::string& table) const {
    return !Rows("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '" + table + "'").empty();
  }
  /// 0 for a table that was not recorded.
  int64_t Count(const std::string& table, const std::string& where = "1") const {
    return Has(table) ? std::stoll(Rows("SELECT count(*) FROM " + table + " WHERE " + where)[0][0]) : 0;
  }

 private:
  sqlite3* db_ = nullptr;
};

const std::vector<std::string> kFiles = {"nsys2022.2_saxpy_mpi", "nsys2025.5_cudagraph_smoke",
                                         "nsys2026.2_fastvideo_mfu_before", "nsys2026.2_fastvideo_mfu_after"};

void ForEachFile(const std::function<void(trace::Store& store, const Sql& sql)>& check) {
  for (const auto& name : kFiles) {
    SCOPED_TRACE(name);
    const std::string path = RealFiles() + "/traces/nsys/" + name + ".sqlite";
    auto store = ingest::ReadRun({.paths = {path}, .logs = {}}, {});
    ASSERT_TRUE(store.has_value()) << store.error().Text();
    check(*store, Sql(path));
  }
}

std::map<std::string, int64_t> CountCategories(const trace::Store& store) {
  std::map<std::string, int64_t> counts;
  for (size_t row = 0; row < store.spans.size(); ++row) ++counts[store.categories[store.spans.category[row]].name];
  return counts;
}

TEST(NsysRealFiles, EveryTableIsConserved) {
  TELLER_NEED_REAL_FILES();
  ForEachFile([](trace::Store& store, const Sql& sql) {
    auto counts = CountCategories(store);
    const auto& file = store.files[0];
    EXPECT_EQ(file.kind, "nsys");
    EXPECT_EQ(file.records_read, file.spans + file.instants + file.metadata + file.repaired_away + file.dropped);
    EXPECT_EQ(file.spans, store.spans.size());
    EXPECT_FALSE(store.diagnostics.LostInput());
    EXPECT_EQ(counts["kernel"], sql.Count("CUPTI_ACTIVITY_KIND_KERNEL"));
    EXPECT_EQ(counts["gpu_memcpy"], sql.Count("CUPTI_ACTIVITY_KIND_MEMCPY"));
    EXPECT_EQ(counts["gpu_memset"], sql.Count("CUPTI_ACTIVITY_KIND_MEMSET"));
    EXPECT_EQ(counts["cuda_graph"], sql.Count("CUPTI_ACTIVITY_KIND_GRAPH_TRACE"));
    EXPECT_EQ(counts["cuda_sync"], sql.Count("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"));
    EXPECT_EQ(counts["osrt"], sql.Count("OSRT_API"));
    EXPECT_EQ(counts["cuda_graph_making"], sql.Count("CUDA_GRAPH_EVENTS"));
    EXPECT_EQ(counts["cuda_driver"], sql.Count("CUPTI_ACTIVITY_KIND_RUNTIME", "eventClass = 1"));
    EXPECT_EQ(counts["cuda_runtime"], sql.Count("CUPTI_ACTIVITY_KIND_RUNTIME", "eventClass = 0"));
    EXPECT_EQ(counts["nvtx"] + counts["nvtx_op"] + counts["nvtx_library"],
              sql.Count("NVTX_EVENTS", "eventType IN (59, 60)"));
    EXPECT_EQ(counts["overhead"], sql.Count("PROFILER_OVERHEAD") + sql.Count("CUPTI_ACTIVITY_KIND_OVERHEAD"));
    EXPECT_EQ(static_cast<int64_t>(file.instants), sql.Count("COMPOSITE_EVENTS"));
    EXPECT_EQ(static_cast<int64_t>(file.metadata), sql.Count("NVTX_EVENTS", "eventType NOT IN (59, 60, 34)"));
  });
}

TEST(NsysRealFiles, KernelsSumUpAsInSql) {
  TELLER_NEED_REAL_FILES();
  ForEachFile([](trace::Store& store, const Sql& sql) {
    std::map<std::string, std::pair<int64_t, int64_t>> ours, theirs;
    for (size_t row = 0; row < store.spans.size(); ++row) {
      if (store.categories[store.spans.category[row]].name != "kernel") continue;
      auto& sum = ours[std::string(store.name(row))];
      ++sum.first;
      sum.second += store.spans.duration[row];
    }
    for (const auto& row : sql.Rows("SELECT value, count(*), sum(end - start) FROM CUPTI_ACTIVITY_KIND_KERNEL"
                                    " JOIN StringIds ON id = demangledName GROUP BY 1")) {
      theirs[row[0]] = {std::stoll(row[1]), std::stoll(row[2])};
    }
    EXPECT_EQ(ours, theirs);
    EXPECT_FALSE(ours.empty());
  });
}

TEST(NsysRealFiles, WorkIsLinkedWhereSqlFindsALaunch) {
  TELLER_NEED_REAL_FILES();
  ForEachFile([](trace::Store& store, const Sql& sql) {
    trace::Trees trees;
    tree::LinkLaunches(store, trees);
    int64_t linked = 0;
    for (const char* table : {"KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE"}) {
      linked += sql.Count(std::string("CUPTI_ACTIVITY_KIND_") + table,
                          "(globalPid >> 24, correlationId) IN"
                          " (SELECT globalTid >> 24, correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME)");
    }
    EXPECT_EQ(static_cast<int64_t>(trees.gpu_work_linked), linked);
    EXPECT_GT(linked, 0);
  });
}

TEST(NsysRealFiles, TimesAreThoseOfTheEpoch) {
  TELLER_NEED_REAL_FILES();
  ForEachFile([](trace::Store& store, const Sql& sql) {
    const int64_t start = std::stoll(sql.Rows("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME")[0][0]);
    const int64_t first = std::stoll(sql.Rows("SELECT min(start) FROM CUPTI_ACTIVITY_KIND_KERNEL")[0][0]);
    int64_t earliest = INT64_MAX;
    for (size_t row = 0; row < store.spans.size(); ++row) {
      if (store.categories[store.spans.category[row]].name == "kernel") {
        earliest = std::min(earliest, store.spans.begin[row]);
      }
    }
    EXPECT_EQ(earliest, start + first);
  });
}

}  // namespace
}  // namespace teller
