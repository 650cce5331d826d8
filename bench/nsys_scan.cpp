// The yardstick of the reader of Nsight Systems exports: a bare scan of the same columns of the same tables with
// SQLite's C interface, one thread, numbers summed and texts touched. The file is in the system's cache; opening it
// counts. Usage: bench_nsys_scan FILE [REPEATS]

#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "ingest/nsys/database.hpp"
#include "ingest/nsys/schema.hpp"

namespace {

namespace nsys = teller::ingest::nsys;

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The texts of the statements, as the reader would ask.
std::vector<std::string> Statements(const char* path) {
  std::vector<std::string> out;
  const auto database = nsys::Database::Open(path, nullptr);
  if (!database) return out;
  for (const auto& event : nsys::EventTables()) {
    const nsys::Table* table = database->Find(event.name);
    if (table == nullptr) continue;
    std::string sql = "SELECT ";
    for (const auto& names : nsys::ColumnsOf(event.shape)) {
      const auto name = std::find_if(names.begin(), names.end(), [table](auto n) { return table->Has(n); });
      if (name == names.end()) continue;
      sql += (sql.size() > 7 ? ", \"" : "\"") + std::string(*name) + "\"";
    }
    out.push_back(sql + " FROM " + table->name);
  }
  return out;
}

uint64_t Scan(const char* path, const std::vector<std::string>& statements, uint64_t& sum) {
  sqlite3* db = nullptr;
  const std::string uri = std::string("file:") + path + "?immutable=1";
  if (sqlite3_open_v2(uri.c_str(), &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr) !=
      SQLITE_OK) {
    return 0;
  }
  uint64_t rows = 0;
  for (const auto& sql : statements) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(db, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) return 0;
    const int columns = sqlite3_column_count(statement);
    for (; sqlite3_step(statement) == SQLITE_ROW; ++rows) {
      for (int i = 0; i < columns; ++i) {
        if (sqlite3_column_type(statement, i) == SQLITE_TEXT) {
          const auto* text = sqlite3_column_text(statement, i);
          sum += static_cast<uint64_t>(text[0] + sqlite3_column_bytes(statement, i));
        } else {
          sum += static_cast<uint64_t>(sqlite3_column_int64(statement, i));
        }
      }
    }
    sqlite3_finalize(statement);
  }
  sqlite3_close(db);
  return rows;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench_nsys_scan FILE [REPEATS]\n");
    return 2;
  }
  const int repeats = argc > 2 ? std::atoi(argv[2]) : 3;
  const auto statements = Statements(argv[1]);
  std::vector<double> times;
  uint64_t rows = 0;
  uint64_t sum = 0;
  for (int i = 0; i <= repeats; ++i) {  // the first round warms the cache and does not count
    const double start = Seconds();
    rows = Scan(argv[1], statements, sum);
    if (i > 0) times.push_back(Seconds() - start);
  }
  if (rows == 0 || times.empty()) return 2;
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  std::printf("scan rows %llu seconds %.4f rows/s %.0f check %llu\n", static_cast<unsigned long long>(rows), median,
              static_cast<double>(rows) / median, static_cast<unsigned long long>(sum));
  return 0;
}
