// SPDX-License-Identifier: Apache-2.0
// SqliteConnection and SqliteStatement: SQLite with owners and Status.
//
// Thread: none of their own; a connection and its statements belong to one thread at a time.
// Errors: kResourceExhausted the disk is full, kDataLoss the file is damaged or no database,
//         kNotFound it does not exist, kUnavailable locked or read-only, else kInternal. A message
//         names operation, file and SQLite's text.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

struct sqlite3;
struct sqlite3_stmt;

namespace flamefleet {

class SqliteStatement {
 public:
  SqliteStatement() = default;

  // Parameters count from 1, columns from 0. Texts must outlive the next Step.
  void BindInt(int parameter, int64_t value);
  void BindText(int parameter, std::string_view value);
  void BindBlob(int parameter, std::string_view value);

  // True: there is a row; false: done, and reset for the next use.
  Result<bool> Step();
  // For statements without rows: Step to the end, then forget the bindings.
  Status Run();
  void Reset();

  int64_t Int(int column) const;
  std::string_view Bytes(int column) const;  // text or blob, valid until the next Step

 private:
  friend class SqliteConnection;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class SqliteConnection {
 public:
  enum class Mode { kReadOnly, kReadWriteCreate };
  static Result<SqliteConnection> Open(const std::string& path, Mode mode);

  Status Execute(const char* sql);
  Result<SqliteStatement> Prepare(const char* sql);
  // The one number of the first row: for pragmas.
  Result<int64_t> QueryInt(const char* sql);
  // Rows that the last INSERT or DELETE changed.
  int64_t Changes() const;
  int64_t LastInsertId() const;

  // Folds the WAL into the database and empties it, without waiting for anybody. kUnavailable:
  // somebody reads what is in it.
  Status TruncateWal();

 private:
  struct Close {
    void operator()(sqlite3* db) const;
  };
  explicit SqliteConnection(sqlite3* db) : db_(db) {}
  std::unique_ptr<sqlite3, Close> db_;
};

}  // namespace flamefleet
