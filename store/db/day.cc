// SPDX-License-Identifier: Apache-2.0
#include "store/db/day.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "store/db/digest.h"
#include "store/db/schema.h"

namespace flamefleet::store {
namespace {

constexpr char kSuffix[] = ".db";
constexpr std::array<const char*, 3> kFileSuffixes = {"", "-wal", "-shm"};

// FULL: the WAL is synced at each commit, which is what "acknowledged" means. The WAL file is cut
// back after a large batch.
// auto_vacuum: what packing frees goes back to the disk.
constexpr char kPragmas[] =
    "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; "
    "PRAGMA journal_size_limit = 16777216; "
    "PRAGMA foreign_keys = ON;";
constexpr char kSchema[] = R"(
  BEGIN;
  CREATE TABLE series (id INTEGER PRIMARY KEY, labels TEXT NOT NULL UNIQUE);
  CREATE TABLE profile (
    id INTEGER PRIMARY KEY,
    series_id INTEGER NOT NULL REFERENCES series (id),
    time_ns INTEGER NOT NULL,
    digest BLOB NOT NULL,
    pack_id INTEGER,
    duration_ns INTEGER NOT NULL DEFAULT 0
  );
  CREATE UNIQUE INDEX profile_identity ON profile (series_id, time_ns, digest);
  CREATE INDEX profile_to_pack ON profile (series_id, time_ns) WHERE pack_id IS NULL;
  CREATE TABLE sample_type (
    id INTEGER PRIMARY KEY,
    type TEXT NOT NULL,
    unit TEXT NOT NULL,
    period_type TEXT NOT NULL,
    period_unit TEXT NOT NULL,
    UNIQUE (type, unit, period_type, period_unit)
  );
  CREATE TABLE total (
    profile_id INTEGER NOT NULL REFERENCES profile (id) ON DELETE CASCADE,
    sample_type_id INTEGER NOT NULL REFERENCES sample_type (id),
    is_default INTEGER NOT NULL,
    value INTEGER NOT NULL,
    PRIMARY KEY (profile_id, sample_type_id)
  ) WITHOUT ROWID;
  CREATE TABLE original (
    profile_id INTEGER PRIMARY KEY REFERENCES profile (id) ON DELETE CASCADE,
    pprof BLOB NOT NULL
  );
  CREATE TABLE symbols (
    series_id INTEGER NOT NULL REFERENCES series (id),
    generation INTEGER NOT NULL,
    first_stack INTEGER NOT NULL,
    pprof BLOB NOT NULL,
    UNIQUE (series_id, generation, first_stack)
  );
  CREATE TABLE pack (
    id INTEGER PRIMARY KEY,
    series_id INTEGER NOT NULL REFERENCES series (id),
    first_ns INTEGER NOT NULL,
    last_ns INTEGER NOT NULL,
    profiles INTEGER NOT NULL,
    sample_types TEXT NOT NULL,
    generation INTEGER NOT NULL,
    total BLOB NOT NULL,
    detail BLOB NOT NULL
  );
  CREATE INDEX pack_time ON pack (series_id, first_ns);
  PRAGMA user_version = 4;
  COMMIT;)";

// kMigrations[i] turns a file of version kOldestSchemaVersion + i into one of the next.
constexpr std::array kMigrations = {
    "BEGIN IMMEDIATE; ALTER TABLE profile ADD COLUMN duration_ns INTEGER NOT NULL DEFAULT 0; "
    "PRAGMA user_version = 4; COMMIT;",
};
static_assert(kOldestSchemaVersion + kMigrations.size() == kSchemaVersion);

std::string EncodeLabels(const Labels& labels) {
  return nlohmann::json(labels).dump();
}

Result<Labels> DecodeLabels(std::string_view text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return DataLossError("labels of a series are not a JSON object");
  Labels labels;
  for (const auto& [name, value] : json.items()) {
    if (!value.is_string()) return DataLossError("a label of a series is not a text");
    labels.emplace(name, value.get<std::string>());
  }
  return labels;
}

int64_t FileBytes(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_size : 0;
}

}  // namespace

std::string Day::FileName(int64_t number) {
  const std::chrono::year_month_day date{std::chrono::sys_days{std::chrono::days{number}}};
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02u%s", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), kSuffix);
  return text.data();
}

int64_t Day::NumberOfFileName(const std::string& name) {
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  if (std::sscanf(name.c_str(), "%4d-%2u-%2u", &year, &month, &day) != 3) return -1;
  const std::chrono::year_month_day date{std::chrono::year{year}, std::chrono::month{month},
                                         std::chrono::day{day}};
  if (!date.ok()) return -1;
  const int64_t number = std::chrono::sys_days{date}.time_since_epoch().count();
  return FileName(number) == name ? number : -1;
}

std::shared_ptr<Day> Day::Closed(const std::string& directory, int64_t number) {
  return std::shared_ptr<Day>(new Day(directory + "/" + FileName(number), number));
}

Result<std::shared_ptr<Day>> Day::Open(const std::string& directory, int64_t number) {
  std::shared_ptr<Day> day = Closed(directory, number);
  FF_RETURN_IF_ERROR(day->Init());
  return day;
}

Status Day::Init() {
  FF_ASSIGN_OR_RETURN(connection_,
                      SqliteConnection::Open(path_, SqliteConnection::Mode::kReadWriteCreate));
  FF_RETURN_IF_ERROR(connection_->Execute(kPragmas));
  FF_ASSIGN_OR_RETURN(const int64_t version, connection_->QueryInt("PRAGMA user_version"));
  if (version > kSchemaVersion) {
    return FailedPreconditionError("open " + path_ + ": schema version " + std::to_string(version) +
                                   " was written by a newer flamefleet-store; this one knows " +
                                   std::to_string(kSchemaVersion));
  }
  if (version != 0 && version < kOldestSchemaVersion) {
    return FailedPreconditionError("open " + path_ + ": schema version " + std::to_string(version) +
                                   " is of a development version, before the first release; "
                                   "remove the file");
  }
  if (version == 0) {
    const Status created = connection_->Execute(kSchema);
    // A table that is there already: the file is a database of something else, or damaged.
    if (created.code() == StatusCode::kInternal) return DataLossError(ErrorMessage(created));
    FF_RETURN_IF_ERROR(created);
  } else {
    for (int64_t from = version; from < kSchemaVersion; ++from) {
      FF_RETURN_IF_ERROR(
          connection_->Execute(kMigrations[static_cast<size_t>(from - kOldestSchemaVersion)]));
    }
  }
  FF_ASSIGN_OR_RETURN(insert_series_,
                      connection_->Prepare("INSERT INTO series (labels) VALUES (?1)"));
  FF_ASSIGN_OR_RETURN(insert_profile_,
                      connection_->Prepare(
                          "INSERT OR IGNORE INTO profile (series_id, time_ns, digest, duration_ns) "
                          "VALUES (?1, ?2, ?3, ?4)"));
  FF_ASSIGN_OR_RETURN(
      insert_original_,
      connection_->Prepare("INSERT INTO original (profile_id, pprof) VALUES (?1, ?2)"));
  // Known types are few: a lookup per profile and type is one B-tree page.
  FF_ASSIGN_OR_RETURN(insert_sample_type_,
                      connection_->Prepare("INSERT OR IGNORE INTO sample_type "
                                           "(type, unit, period_type, period_unit) "
                                           "VALUES (?1, ?2, ?3, ?4)"));
  FF_ASSIGN_OR_RETURN(
      insert_total_,
      connection_->Prepare(
          "INSERT OR IGNORE INTO total SELECT ?5, id, ?6, ?7 FROM sample_type "
          "WHERE type = ?1 AND unit = ?2 AND period_type = ?3 AND period_unit = ?4"));
  return LoadSeries();
}

Status Day::LoadSeries() {
  FF_ASSIGN_OR_RETURN(SqliteStatement statement,
                      connection_->Prepare("SELECT id, labels FROM series"));
  const MutexLock lock(&mutex_);
  for (;;) {
    FF_ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return OkStatus();
    Result<Labels> labels = DecodeLabels(statement.Bytes(1));
    if (!labels.ok()) return Annotate(labels.status(), path_);
    series_.emplace(*std::move(labels), statement.Int(0));
  }
}

Result<std::vector<Day::Outcome>> Day::Append(const std::vector<const NewProfile*>& profiles) {
  SeriesIds new_series;
  std::vector<Outcome> outcomes;
  FF_RETURN_IF_ERROR(connection_->Execute("BEGIN IMMEDIATE"));
  Status stored = Insert(profiles, &new_series, &outcomes);
  if (stored.ok()) stored = connection_->Execute("COMMIT");
  if (!stored.ok()) {
    // Some errors have rolled back already; then this one says so and changes nothing.
    connection_->Execute("ROLLBACK").IgnoreError();
    return stored;
  }
  const MutexLock lock(&mutex_);
  series_.merge(new_series);
  return outcomes;
}

Status Day::Insert(const std::vector<const NewProfile*>& profiles, SeriesIds* new_series,
                   std::vector<Outcome>* outcomes) {
  for (const NewProfile* profile : profiles) {
    Outcome& outcome = outcomes->emplace_back();
    FF_ASSIGN_OR_RETURN(const int64_t series, FindOrInsertSeries(profile->labels, new_series));
    if (series == 0) {
      outcome.status = FailedPreconditionError(
          "the day has " + std::to_string(kMaxSeriesPerDay) +
          " series (label sets), the most this store keeps; use fewer distinct label values");
      continue;
    }
    const std::string digest = Digest(profile->pprof);
    insert_profile_.BindInt(1, series);
    insert_profile_.BindInt(2, profile->time_ns);
    insert_profile_.BindBlob(3, digest);
    insert_profile_.BindInt(4, profile->duration_ns);
    FF_RETURN_IF_ERROR(insert_profile_.Run());
    outcome.duplicate = connection_->Changes() == 0;
    if (outcome.duplicate) continue;
    const int64_t id = connection_->LastInsertId();
    insert_original_.BindInt(1, id);
    insert_original_.BindBlob(2, profile->pprof);
    FF_RETURN_IF_ERROR(insert_original_.Run());
    FF_RETURN_IF_ERROR(InsertTotals(id, profile->totals));
  }
  return OkStatus();
}

Status Day::InsertTotals(int64_t profile, const std::vector<Total>& totals) {
  for (const Total& total : totals) {
    for (SqliteStatement* statement : {&insert_sample_type_, &insert_total_}) {
      statement->BindText(1, total.type.type);
      statement->BindText(2, total.type.unit);
      statement->BindText(3, total.type.period_type);
      statement->BindText(4, total.type.period_unit);
    }
    insert_total_.BindInt(5, profile);
    insert_total_.BindInt(6, total.is_default ? 1 : 0);
    insert_total_.BindInt(7, total.value);
    FF_RETURN_IF_ERROR(insert_sample_type_.Run());
    FF_RETURN_IF_ERROR(insert_total_.Run());
  }
  return OkStatus();
}

Result<int64_t> Day::FindOrInsertSeries(const Labels& labels, SeriesIds* new_series) {
  {
    const MutexLock lock(&mutex_);
    if (const auto known = series_.find(labels); known != series_.end()) return known->second;
    if (const auto known = new_series->find(labels); known != new_series->end()) {
      return known->second;
    }
    if (series_.size() + new_series->size() >= kMaxSeriesPerDay) return 0;
  }
  const std::string text = EncodeLabels(labels);
  insert_series_.BindText(1, text);
  FF_RETURN_IF_ERROR(insert_series_.Run());
  const int64_t id = connection_->LastInsertId();
  new_series->emplace(labels, id);
  return id;
}

Result<int64_t> Day::Bytes() {
  FF_ASSIGN_OR_RETURN(const int64_t page_bytes, connection_->QueryInt("PRAGMA page_size"));
  FF_ASSIGN_OR_RETURN(const int64_t free_pages, connection_->QueryInt("PRAGMA freelist_count"));
  int64_t bytes = 0;
  for (const char* suffix : kFileSuffixes)
    bytes += FileBytes(path_ + suffix);
  return std::max<int64_t>(0, bytes - free_pages * page_bytes);
}

Status Day::DeleteOldest() {
  // While somebody reads, a deletion would only make the WAL longer.
  FF_RETURN_IF_ERROR(connection_->TruncateWal());
  FF_RETURN_IF_ERROR(connection_->Execute(R"(
    BEGIN;
    CREATE TEMP TABLE goes AS SELECT time_ns AS until_ns FROM profile ORDER BY time_ns
      LIMIT 1 OFFSET (SELECT count(*) / 20 FROM profile);
    DELETE FROM profile WHERE time_ns <= (SELECT until_ns FROM goes)
      AND id IN (SELECT profile_id FROM original);
    DELETE FROM profile WHERE pack_id IN
      (SELECT id FROM pack WHERE first_ns <= (SELECT until_ns FROM goes));
    DELETE FROM pack WHERE first_ns <= (SELECT until_ns FROM goes);
    DELETE FROM symbols WHERE NOT EXISTS (SELECT 1 FROM pack
      WHERE pack.series_id = symbols.series_id AND pack.generation = symbols.generation);
    DROP TABLE goes;
    COMMIT;)"));
  // Without it the deletion itself, in the WAL, takes more room than it frees.
  return connection_->TruncateWal();
}

void Day::Retire(const std::function<void(const std::string& path)>& action) {
  insert_series_ = {};
  insert_profile_ = {};
  insert_original_ = {};
  insert_sample_type_ = {};
  insert_total_ = {};
  connection_.reset();
  // Snapshots that are open hold descriptors and do not care for names; none is being opened now.
  const MutexLock lock(&mutex_);
  retired_ = true;
  for (const char* suffix : kFileSuffixes)
    action(path_ + suffix);
}

void Day::RemoveFiles() {
  Retire([](const std::string& path) { ::unlink(path.c_str()); });
}

std::string Day::SetAside(int64_t now_ns) {
  const std::string suffix = kSetAsideMark + std::to_string(now_ns / 1'000'000'000);
  const std::string new_path = path_ + suffix;
  // sqlite3 finds the WAL of x at x-wal.
  Retire([&](const std::string& path) {
    ::rename(path.c_str(), (new_path + path.substr(path_.size())).c_str());
  });
  return new_path;
}

}  // namespace flamefleet::store
