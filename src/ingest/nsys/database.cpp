#include "ingest/nsys/database.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

namespace teller::ingest::nsys {

namespace {

constexpr int kProgressSteps = 100'000;  // of SQLite's machine, between two looks at the progress: milliseconds
constexpr size_t kMaxTables = 4096;      // a full export has about 100
constexpr size_t kMaxColumns = 512;      // a kernel row has about 40

struct StatementCloser {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, StatementCloser>;

Statement Prepare(sqlite3* handle, const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(handle, sql.c_str(), static_cast<int>(sql.size()), &statement, nullptr);
  return Statement(statement);
}

std::string Quoted(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) {
    if (c == '"') out.push_back('"');
    out.push_back(c);
  }
  return out + "\"";
}

/// A file URI; with `immutable` SQLite neither locks the file nor looks for journals beside it.
std::string Uri(const std::string& path) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out = path.front() == '/' ? "file://" : "file:";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '/' || c == '.' || c == '_' || c == '-') {
      out.push_back(c);
    } else {
      out.push_back('%');
      out.push_back(kHex[byte >> 4]);
      out.push_back(kHex[byte & 15]);
    }
  }
  return out + "?immutable=1";
}

int StopWhenCancelled(void* progress) {
  return static_cast<const base::Progress*>(progress)->cancelled() ? 1 : 0;
}

/// Nothing that stands in the file may run, and nothing may be larger than an export needs.
/// `damaged`: SQLite refuses a file that is shorter than its header says unless its schema may be repaired; nothing is
/// written, as the file is opened to be read only.
void Harden(sqlite3* handle, bool damaged) {
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, damaged ? 0 : 1, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_WRITABLE_SCHEMA, damaged ? 1 : 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, nullptr);
  sqlite3_limit(handle, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_limit(handle, SQLITE_LIMIT_WORKER_THREADS, 0);
  sqlite3_limit(handle, SQLITE_LIMIT_SQL_LENGTH, 1 << 20);
  sqlite3_limit(handle, SQLITE_LIMIT_EXPR_DEPTH, 100);
  sqlite3_exec(handle, "PRAGMA cell_size_check=ON; PRAGMA query_only=ON", nullptr, nullptr, nullptr);
}

bool SameName(std::string_view a, std::string_view b) {
  return a.size() == b.size() && sqlite3_strnicmp(a.data(), b.data(), static_cast<int>(a.size())) == 0;
}

/// "SELECT columns, row number FROM table": columns that the table lacks are null.
std::string SelectText(const Table& table, const Columns& columns) {
  std::string sql = "SELECT ";
  for (const auto& names : columns) {
    const auto name = std::find_if(names.begin(), names.end(), [&table](auto n) { return table.Has(n); });
    sql += (name == names.end() ? "NULL" : Quoted(*name)) + ", ";
  }
  sql += table.row_ids ? "rowid FROM " : "NULL FROM ";
  sql += Quoted(table.name) + " NOT INDEXED";
  if (table.row_ids) sql += " WHERE rowid BETWEEN ?1 AND ?2";
  return sql;
}

}  // namespace

bool Row::IsNull(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

bool Row::IsInteger(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_INTEGER;
}

int64_t Row::Integer(int column) const {
  return sqlite3_column_int64(statement_, column);
}

std::string_view Row::Text(int column) const {
  const unsigned char* text = sqlite3_column_text(statement_, column);
  if (text == nullptr) return {};
  return {reinterpret_cast<const char*>(text), static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}

bool Table::Has(std::string_view column) const {
  return std::any_of(columns.begin(), columns.end(), [column](const auto& own) { return SameName(own, column); });
}

void Database::Closer::operator()(sqlite3* handle) const {
  sqlite3_close_v2(handle);
}

base::Error Database::Failure(std::string_view doing) const {
  const int code = sqlite3_errcode(handle_.get());
  const std::string text = std::string(doing) + ": " + sqlite3_errmsg(handle_.get());
  if (code == SQLITE_INTERRUPT) return {base::Code::kCancelled, "stopped while reading"};
  if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) return {base::Code::kBadFormat, text};
  return {base::Code::kUnreadable, text};
}

base::Result<Database> Database::Open(const std::string& path, const base::Progress* progress) {
  if (path.empty()) return base::Error{base::Code::kNotFound, "no path"};
  auto whole = TryOpen(path, progress, false);
  if (whole) {
    whole->CheckSize(path);
    return whole;
  }
  if (whole.error().code != base::Code::kBadFormat) return whole;
  auto rest = TryOpen(path, progress, true);
  if (!rest || rest->tables_.empty()) return whole;
  rest->damage_ = whole.error().message;
  return rest;
}

void Database::CheckSize(const std::string& path) {
  const Statement statement = Prepare(handle_.get(), "PRAGMA page_size");
  if (statement == nullptr || sqlite3_step(statement.get()) != SQLITE_ROW) return;
  const auto page = static_cast<uintmax_t>(Row(statement.get()).Integer(0));
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(path, error);
  if (!error && page > 0 && size % page != 0) damage_ = "the file ends in the middle of a page";
}

base::Result<Database> Database::TryOpen(const std::string& path, const base::Progress* progress, bool damaged) {
  Database database;
  sqlite3* handle = nullptr;
  const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
  const int code = sqlite3_open_v2(Uri(path).c_str(), &handle, flags, nullptr);
  database.handle_.reset(handle);
  if (code != SQLITE_OK) return base::Error{base::Code::kUnreadable, "cannot be opened as an SQLite database", path};
  Harden(handle, damaged);
  if (progress != nullptr) {
    sqlite3_progress_handler(handle, kProgressSteps, StopWhenCancelled, const_cast<base::Progress*>(progress));
  }
  TELLER_TRY(database.ReadTables());
  return database;
}

base::Status Database::ReadTables() {
  // table_list tells tables from views, virtual and shadow tables, whatever their SQL text claims.
  const Statement list = Prepare(handle_.get(), "PRAGMA main.table_list");
  if (list == nullptr) return Failure("the schema cannot be read");
  int code = SQLITE_OK;
  while ((code = sqlite3_step(list.get())) == SQLITE_ROW && tables_.size() < kMaxTables) {
    const Row row(list.get());
    if (row.Text(0) != "main" || row.Text(2) != "table" || row.Text(1).substr(0, 7) == "sqlite_") continue;
    Table table;
    table.name = row.Text(1);
    table.row_ids = row.Integer(4) == 0;
    const Statement columns = Prepare(handle_.get(), "PRAGMA main.table_xinfo(" + Quoted(table.name) + ")");
    if (columns == nullptr) continue;
    while (sqlite3_step(columns.get()) == SQLITE_ROW && table.columns.size() < kMaxColumns) {
      const Row column(columns.get());
      const std::string_view name = column.Text(1);
      if (SameName(name, "rowid")) table.row_ids = false;  // the name stands for a column now
      if (column.Integer(6) == 0) table.columns.emplace_back(name);
    }
    std::string key = table.name;
    tables_.emplace(std::move(key), std::move(table));
  }
  if (code != SQLITE_DONE && code != SQLITE_ROW) return Failure("the schema cannot be read");
  return {};
}

const Table* Database::Find(std::string_view name) const {
  const auto it = tables_.find(name);
  return it == tables_.end() ? nullptr : &it->second;
}

bool Database::IsEmpty(const Table& table) const {
  const Statement statement = Prepare(handle_.get(), "SELECT 1 FROM " + Quoted(table.name) + " NOT INDEXED LIMIT 1");
  return statement == nullptr || sqlite3_step(statement.get()) == SQLITE_DONE;
}

base::Result<RowRange> Database::Range(const Table& table) const {
  RowRange range;
  if (!table.row_ids) return range;
  for (const bool first : {true, false}) {
    const std::string sql = std::string("SELECT ") + (first ? "min" : "max") + "(rowid) FROM " + Quoted(table.name);
    const Statement statement = Prepare(handle_.get(), sql);
    if (statement == nullptr || sqlite3_step(statement.get()) != SQLITE_ROW) return Failure(table.name);
    const Row row(statement.get());
    if (row.IsNull(0)) return RowRange{1, 0};
    (first ? range.first : range.last) = row.Integer(0);
  }
  return range;
}

base::Status Database::Scan(const Table& table, const Columns& columns, RowRange range, uint64_t max_rows,
                            const std::function<bool(const Row& row, int64_t row_number)>& each) const {
  const Statement statement = Prepare(handle_.get(), SelectText(table, columns));
  if (statement == nullptr) return Failure(table.name);
  if (table.row_ids) {
    sqlite3_bind_int64(statement.get(), 1, range.first);
    sqlite3_bind_int64(statement.get(), 2, range.last);
  }
  const auto number_column = static_cast<int>(columns.size());
  const Row row(statement.get());
  int64_t number = 0;
  for (uint64_t rows = 0;; ++rows) {
    const int code = sqlite3_step(statement.get());
    if (code == SQLITE_DONE) return {};
    if (code != SQLITE_ROW) return Failure(table.name);
    const int64_t previous = number;
    number = table.row_ids ? row.Integer(number_column) : static_cast<int64_t>(rows) + 1;
    // In a sound tree numbers grow. Pages that point at each other would go on for ever.
    if (rows >= max_rows || (rows > 0 && number <= previous)) {
      return base::Error{base::Code::kBadFormat, table.name + ": rows are out of order or come again"};
    }
    if (!each(row, number)) return {};
  }
}

}  // namespace teller::ingest::nsys
