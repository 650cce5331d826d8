#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <map>
#include <string>
#include <utility>

#include "ingest/kineto/kineto_test_support.hpp"
#include "ingest/run.hpp"

namespace teller::ingest {

/// Parts of a globalTid.
constexpr int64_t GlobalPid(int64_t pid, int64_t machine = 1) {
  return (machine << 48) | (pid << 24);
}
constexpr int64_t GlobalTid(int64_t pid, int64_t tid) {
  return GlobalPid(pid) | tid;
}

/// Makes an SQLite file of SQL text.
inline std::string MakeDatabase(const TestFolder& folder, const std::string& name, const std::string& sql) {
  const std::string path = folder.Write(name, "");
  sqlite3* db = nullptr;
  EXPECT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  char* error = nullptr;
  EXPECT_EQ(sqlite3_exec(db, "PRAGMA synchronous=OFF; PRAGMA journal_mode=MEMORY", nullptr, nullptr, nullptr),
            SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK) << (error == nullptr ? "" : error);
  sqlite3_free(error);
  sqlite3_close(db);
  return path;
}

/// Reads one export and checks conservation and the order of spans.
inline trace::Store ReadExportFile(const std::string& path, unsigned threads = 2) {
  auto read = ReadRun({.paths = {path}, .logs = {}}, {.threads = threads});
  EXPECT_TRUE(read.has_value()) << (read.has_value() ? "" : read.error().Text());
  if (!read.has_value()) return {};
  const auto& file = read->files.front();
  EXPECT_EQ(file.kind, "nsys");
  EXPECT_EQ(file.records_read, file.spans + file.instants + file.counters + file.flows + file.metadata +
                                   file.repaired_away + file.dropped);
  EXPECT_EQ(file.spans, read->spans.size());
  EXPECT_EQ(file.instants, read->instants.size());
  for (size_t row = 1; row < read->spans.size(); ++row) {
    const auto key = [&](size_t r) {
      return std::tuple(read->spans.track[r], read->spans.begin[r], -read->spans.end(r));
    };
    EXPECT_LE(key(row - 1), key(row));
  }
  return std::move(*read);
}

/// Count and total duration by (category, name).
using Sums = std::map<std::pair<std::string, std::string>, std::pair<int64_t, int64_t>>;
inline Sums SumsOf(const trace::Store& store) {
  Sums sums;
  for (size_t row = 0; row < store.spans.size(); ++row) {
    auto& sum = sums[{store.categories[store.spans.category[row]].name, std::string(store.name(row))}];
    ++sum.first;
    sum.second += store.spans.duration[row];
  }
  return sums;
}

/// The row of the only span of this name.
inline uint32_t SpanNamed(const trace::Store& store, std::string_view name) {
  uint32_t found = UINT32_MAX;
  for (uint32_t row = 0; row < store.spans.size(); ++row) {
    if (store.name(row) != name) continue;
    EXPECT_EQ(found, UINT32_MAX) << "two spans named " << name;
    found = row;
  }
  EXPECT_NE(found, UINT32_MAX) << "no span named " << name;
  return found == UINT32_MAX ? 0 : found;
}

}  // namespace teller::ingest
