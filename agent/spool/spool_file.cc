// SPDX-License-Identifier: Apache-2.0
// The file of a Spool: its form, and how it is opened, made and given up.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "agent/spool/spool.h"

namespace flamefleet::agent {
namespace {

constexpr int64_t kSchemaVersion = 1;
// The log is cut back after a large batch. Debian's SQLite overwrites what is deleted unless it is
// told not to: twice the writing, for profiles that lay there in plain before.
constexpr char kPragmas[] =
    "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA journal_size_limit = 4194304;"
    "PRAGMA cache_size = -1024; PRAGMA secure_delete = OFF;";
constexpr char kSchema[] = R"(
  BEGIN;
  CREATE TABLE profile (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    backend TEXT NOT NULL,
    errors INTEGER NOT NULL,
    time_ns INTEGER NOT NULL,
    spread_ns INTEGER NOT NULL,
    pod_uid TEXT NOT NULL,
    container TEXT NOT NULL,
    type INTEGER NOT NULL,
    raw_bytes INTEGER NOT NULL,
    body BLOB NOT NULL
  );
  CREATE INDEX profile_order ON profile (backend, errors, id);
  PRAGMA user_version = 1;
  COMMIT;)";
constexpr std::array<const char*, 3> kFileSuffixes = {"", "-wal", "-shm"};

// Columns of every SELECT here, before the body where it is wanted.
#define FF_COLUMNS \
  "id, backend, errors, time_ns, pod_uid, container, type, length(body), spread_ns, raw_bytes"

std::string PathOf(const SpoolOptions& options) {
  return options.directory.empty() ? ":memory:" : options.directory + "/" + Spool::kFileName;
}

Result<UniqueFd> LockDirectory(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return UnavailableError("create " + directory + ": " + error.message());
  const std::string path = directory + "/lock";
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file.ok()) return ErrnoError(errno, "open " + path);
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return file;
  if (errno == EWOULDBLOCK) {
    return AlreadyExistsError("lock " + path + ": another agent of this node has the spool");
  }
  return ErrnoError(errno, "lock " + path);
}

}  // namespace

Result<std::unique_ptr<Spool>> Spool::Open(const SpoolOptions& options, bool* damaged) {
  std::unique_ptr<Spool> spool(new Spool(options));
  if (spool->survives()) {
    FF_ASSIGN_OR_RETURN(spool->lock_file_, LockDirectory(options.directory));
  }
  const MutexLock lock(&spool->mutex_);
  Status opened = spool->OpenFile();
  const bool is_damaged = opened.code() == StatusCode::kDataLoss;
  if (damaged != nullptr) *damaged = is_damaged;
  if (is_damaged) {
    spool->DeleteFiles();
    opened = spool->OpenFile();
  }
  FF_RETURN_IF_ERROR(opened);
  return spool;
}

Status Spool::StartOver(int64_t* lost) {
  const MutexLock lock(&mutex_);
  *lost = -static_cast<int64_t>(taken_.size() - leftovers_.size());
  for (const auto& [name, total] : totals_)
    *lost += total.profiles;
  DeleteFiles();
  return OpenFile();
}

void Spool::CloseFile() {
  for (SqliteStatement* statement :
       {&begin_, &commit_, &insert_, &delete_, &release_, &newest_, &oldest_, &old_,
        &oldest_of_all_, &page_count_, &free_count_}) {
    *statement = {};
  }
  connection_.reset();
}

void Spool::DeleteFiles() {
  CloseFile();
  totals_.clear();
  profiles_ = 0;
  bytes_ = 0;
  taken_.clear();
  leftovers_.clear();
  damaged_ = false;
  for (const char* suffix : kFileSuffixes)
    ::unlink((PathOf(options_) + suffix).c_str());
}

Status Spool::OpenFile() {
  const Status opened = PrepareFile();
  if (!opened.ok()) CloseFile();
  return opened;
}

Status Spool::PrepareFile() {
  FF_ASSIGN_OR_RETURN(connection_, SqliteConnection::Open(
                                       PathOf(options_), SqliteConnection::Mode::kReadWriteCreate));
  SqliteConnection& db = *connection_;
  FF_RETURN_IF_ERROR(db.Execute(kPragmas));
  FF_ASSIGN_OR_RETURN(const int64_t version, db.QueryInt("PRAGMA user_version"));
  if (version == 0) {
    const Status created = db.Execute(kSchema);
    // A table that is there already: the file is a database of something else.
    if (created.code() == StatusCode::kInternal) return DataLossError(ErrorMessage(created));
    FF_RETURN_IF_ERROR(created);
    // Ids are never used twice: a profile of the file before may still be on its way.
    const std::string sequence =
        "INSERT INTO sqlite_sequence VALUES ('profile', " + std::to_string(last_id_) + ")";
    FF_RETURN_IF_ERROR(db.Execute(sequence.c_str()));
  } else if (version != kSchemaVersion) {
    return DataLossError("open " + PathOf(options_) + ": schema version " +
                         std::to_string(version) + " is of another flamefleet-agent");
  }
  FF_RETURN_IF_ERROR(
      db.Execute("CREATE INDEX IF NOT EXISTS profile_time ON profile (backend, time_ns)"));
  FF_ASSIGN_OR_RETURN(page_bytes_, db.QueryInt("PRAGMA page_size"));
  FF_ASSIGN_OR_RETURN(begin_, db.Prepare("BEGIN IMMEDIATE"));
  FF_ASSIGN_OR_RETURN(commit_, db.Prepare("COMMIT"));
  FF_ASSIGN_OR_RETURN(insert_, db.Prepare("INSERT INTO profile (backend, errors, time_ns, pod_uid, "
                                          "container, type, spread_ns, raw_bytes, body) "
                                          "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"));
  FF_ASSIGN_OR_RETURN(delete_, db.Prepare("DELETE FROM profile WHERE id = ?1"));
  FF_ASSIGN_OR_RETURN(release_, db.Prepare("UPDATE profile SET errors = ?2 WHERE id = ?1"));
  // A plus keeps a column from choosing the index: the order comes from the other.
  FF_ASSIGN_OR_RETURN(newest_, db.Prepare("SELECT " FF_COLUMNS ", body FROM profile WHERE "
                                          "backend = ?1 AND +errors = 0 AND time_ns >= ?2 "
                                          "ORDER BY time_ns DESC, id DESC"));
  FF_ASSIGN_OR_RETURN(oldest_, db.Prepare("SELECT " FF_COLUMNS ", body FROM profile WHERE "
                                          "backend = ?1 AND +time_ns >= ?2 ORDER BY errors, id"));
  FF_ASSIGN_OR_RETURN(old_, db.Prepare("SELECT " FF_COLUMNS " FROM profile WHERE backend = ?1 "
                                       "ORDER BY time_ns, id"));
  FF_ASSIGN_OR_RETURN(oldest_of_all_, db.Prepare("SELECT " FF_COLUMNS " FROM profile ORDER BY id"));
  FF_ASSIGN_OR_RETURN(page_count_, db.Prepare("PRAGMA page_count"));
  FF_ASSIGN_OR_RETURN(free_count_, db.Prepare("PRAGMA freelist_count"));
  return LoadTotals();
}

Status Spool::LoadTotals() {
  totals_.clear();
  profiles_ = 0;
  bytes_ = 0;
  FF_ASSIGN_OR_RETURN(
      SqliteStatement rows,
      connection_->Prepare("SELECT backend, count(*), sum(length(body)) FROM profile GROUP BY 1"));
  for (;;) {
    FF_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) return OkStatus();
    totals_[std::string(rows.Bytes(0))] = {.profiles = rows.Int(1), .bytes = rows.Int(2)};
    profiles_ += rows.Int(1);
    bytes_ += rows.Int(2);
  }
}

}  // namespace flamefleet::agent
