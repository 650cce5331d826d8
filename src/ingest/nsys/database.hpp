#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.hpp"
#include "base/status.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace teller::ingest::nsys {

/// A row that a Scan stands on. Columns count from 0 in the order in which they were asked for; a column that the table
/// lacks is null.
class Row {
 public:
  explicit Row(sqlite3_stmt* statement) : statement_(statement) {}
  bool IsNull(int column) const;
  /// 0 where null; other types are converted ("12", 1.5).
  int64_t Integer(int column) const;
  /// True when a number is stored. `value` is what Integer gave: the type, which costs a call, is asked of 0 only.
  bool Told(int column, int64_t value) const { return value != 0 || IsInteger(column); }
  /// Bytes as stored (they may not be UTF-8), valid until the next row. Empty where null.
  std::string_view Text(int column) const;

 private:
  bool IsInteger(int column) const;

  sqlite3_stmt* statement_;
};

/// What a table looks like.
struct Table {
  std::string name;
  std::vector<std::string> columns;  ///< stored ones; computed columns are left out
  bool row_ids = true;               ///< rows can be asked for by their number

  bool Has(std::string_view column) const;
};

/// The columns to read of a table; for each the names it has had, newest first.
using Columns = std::vector<std::vector<std::string_view>>;

/// Row numbers to read, both ends included.
struct RowRange {
  int64_t first = INT64_MIN;
  int64_t last = INT64_MAX;
};

/// An SQLite file, opened to be read only, as it lies there: no journal is played back, nothing in it is executed
/// (views, triggers and virtual tables are not seen, computed columns are not read, unsafe functions are off). Threads:
/// confined; several may be open on one file.
class Database {
 public:
  /// Errors: kUnreadable, kBadFormat (no database, or its schema cannot be read).
  static base::Result<Database> Open(const std::string& path, const base::Progress* progress);

  Database(Database&&) noexcept = default;
  Database& operator=(Database&&) noexcept = default;

  /// Why the file is damaged as a whole (shorter than it claims, say); empty when it is not. What is there can be read.
  const std::string& damage() const { return damage_; }
  const std::map<std::string, Table, std::less<>>& tables() const { return tables_; }
  const Table* Find(std::string_view name) const;
  bool IsEmpty(const Table& table) const;
  /// The smallest and the largest row number; nothing (first > last) when there are no rows. Everything for a table
  /// without row numbers.
  base::Result<RowRange> Range(const Table& table) const;

  /// Calls `each` for the rows of a range in the order of their numbers, up to `max_rows`; it returns false to stop.
  /// `row_number` is the stored number, or counts where there are none.
  /// Errors: kBadFormat (damaged; the rows before were given), kCancelled, kUnreadable.
  base::Status Scan(const Table& table, const Columns& columns, RowRange range, uint64_t max_rows,
                    const std::function<bool(const Row& row, int64_t row_number)>& each) const;

 private:
  Database() = default;
  struct Closer {
    void operator()(sqlite3* handle) const;
  };
  static base::Result<Database> TryOpen(const std::string& path, const base::Progress* progress, bool damaged);
  base::Status ReadTables();
  void CheckSize(const std::string& path);
  base::Error Failure(std::string_view doing) const;

  std::unique_ptr<sqlite3, Closer> handle_;
  std::map<std::string, Table, std::less<>> tables_;
  std::string damage_;
};

}  // namespace teller::ingest::nsys
