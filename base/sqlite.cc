// SPDX-License-Identifier: Apache-2.0
#include "base/sqlite.h"

#include <sqlite3.h>

#include <cerrno>

namespace flamefleet {
namespace {

constexpr int kBusyTimeoutMillis = 5000;

Status SqliteError(sqlite3* db, int code, const std::string& operation) {
  const char* const file = db == nullptr ? nullptr : sqlite3_db_filename(db, "main");
  const int system_error = db == nullptr ? 0 : sqlite3_system_errno(db);
  std::string message = "sqlite " + operation;
  if (file != nullptr && *file != '\0') message += std::string(" ") + file;
  message += std::string(": ") + (db == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(db));
  switch (code & 0xff) {
    case SQLITE_FULL:
      return ResourceExhaustedError(message);
    case SQLITE_IOERR:
      if (system_error == ENOSPC || system_error == EDQUOT) {
        return ResourceExhaustedError(message + ": disk full");
      }
      return InternalError(message);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return DataLossError(message);
    case SQLITE_CANTOPEN:
      if (system_error == ENOSPC || system_error == EDQUOT) {
        return ResourceExhaustedError(message + ": disk full");
      }
      return system_error == ENOENT ? NotFoundError(message) : UnavailableError(message);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_READONLY:
      return UnavailableError(message);
    default:
      return InternalError(message);
  }
}

}  // namespace

void SqliteStatement::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

void SqliteStatement::BindInt(int parameter, int64_t value) {
  FF_CHECK(sqlite3_bind_int64(statement_.get(), parameter, value) == SQLITE_OK);
}

void SqliteStatement::BindText(int parameter, std::string_view value) {
  FF_CHECK(sqlite3_bind_text64(statement_.get(), parameter, value.data(), value.size(),
                               SQLITE_STATIC, SQLITE_UTF8) == SQLITE_OK);
}

void SqliteStatement::BindBlob(int parameter, std::string_view value) {
  FF_CHECK(sqlite3_bind_blob64(statement_.get(), parameter, value.data(), value.size(),
                               SQLITE_STATIC) == SQLITE_OK);
}

Result<bool> SqliteStatement::Step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) {
    sqlite3_reset(statement_.get());
    return false;
  }
  const Status error = SqliteError(sqlite3_db_handle(statement_.get()), code, "step");
  sqlite3_reset(statement_.get());
  return error;
}

Status SqliteStatement::Run() {
  Result<bool> row = Step();
  while (row.ok() && *row)
    row = Step();
  sqlite3_clear_bindings(statement_.get());
  return row.status();
}

void SqliteStatement::Reset() {
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
}

int64_t SqliteStatement::Int(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

std::string_view SqliteStatement::Bytes(int column) const {
  const void* const data = sqlite3_column_blob(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return {static_cast<const char*>(data), static_cast<size_t>(size)};
}

void SqliteConnection::Close::operator()(sqlite3* db) const {
  sqlite3_close_v2(db);
}

Result<SqliteConnection> SqliteConnection::Open(const std::string& path, Mode mode) {
  sqlite3* raw = nullptr;
  const int flags =
      mode == Mode::kReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  const int code = sqlite3_open_v2(path.c_str(), &raw, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  SqliteConnection connection(raw);
  if (code != SQLITE_OK) return SqliteError(raw, code, "open");
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_busy_timeout(raw, kBusyTimeoutMillis);
  if (mode == Mode::kReadOnly) {
    // Only a writer may fold the WAL into the database and delete it: see Day::Retire.
    sqlite3_db_config(raw, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  }
  return connection;
}

Status SqliteConnection::Execute(const char* sql) {
  const int code = sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? OkStatus() : SqliteError(db_.get(), code, sql);
}

Status SqliteConnection::TruncateWal() {
  sqlite3_busy_timeout(db_.get(), 0);
  const int code =
      sqlite3_wal_checkpoint_v2(db_.get(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  sqlite3_busy_timeout(db_.get(), kBusyTimeoutMillis);
  return code == SQLITE_OK ? OkStatus() : SqliteError(db_.get(), code, "checkpoint");
}

Result<SqliteStatement> SqliteConnection::Prepare(const char* sql) {
  sqlite3_stmt* raw = nullptr;
  const int code = sqlite3_prepare_v2(db_.get(), sql, -1, &raw, nullptr);
  SqliteStatement statement;
  statement.statement_.reset(raw);
  if (code != SQLITE_OK) return SqliteError(db_.get(), code, "prepare");
  return statement;
}

Result<int64_t> SqliteConnection::QueryInt(const char* sql) {
  FF_ASSIGN_OR_RETURN(SqliteStatement statement, Prepare(sql));
  FF_ASSIGN_OR_RETURN(const bool row, statement.Step());
  if (!row) return InternalError(std::string("sqlite: no row: ") + sql);
  return statement.Int(0);
}

int64_t SqliteConnection::Changes() const {
  return sqlite3_changes(db_.get());
}

int64_t SqliteConnection::LastInsertId() const {
  return sqlite3_last_insert_rowid(db_.get());
}

}  // namespace flamefleet
