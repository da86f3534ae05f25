// SPDX-License-Identifier: Apache-2.0
#include "store/db/check.h"

#include <map>

#include "base/pprof/profile.h"
#include "base/sqlite.h"
#include "store/db/digest.h"
#include "store/db/pack.h"
#include "store/db/schema.h"
#include "store/db/symbols.h"

namespace flamefleet::store {
namespace {

constexpr size_t kMaxProblems = 100;  // of one day: the rest is as bad

class DayCheck {
 public:
  explicit DayCheck(SqliteConnection* connection) : connection_(connection) {}

  Result<DayReport> Run() {
    FF_RETURN_IF_ERROR(CheckStructure());
    if (!report_.problems.empty()) return std::move(report_);
    FF_ASSIGN_OR_RETURN(report_.series, Count("SELECT count(*) FROM series"));
    FF_ASSIGN_OR_RETURN(report_.profiles, Count("SELECT count(*) FROM profile"));
    FF_ASSIGN_OR_RETURN(report_.packed, Count("SELECT count(*) FROM profile WHERE pack_id > 0"));
    FF_RETURN_IF_ERROR(CheckPlaces());
    FF_RETURN_IF_ERROR(CheckOriginals());
    FF_RETURN_IF_ERROR(ReadSymbols());
    FF_RETURN_IF_ERROR(CheckPacks());
    return std::move(report_);
  }

 private:
  void Problem(const std::string& text) {
    if (report_.problems.size() < kMaxProblems) report_.problems.push_back(text);
  }

  Result<size_t> Count(const char* sql) {
    FF_ASSIGN_OR_RETURN(const int64_t count, connection_->QueryInt(sql));
    return static_cast<size_t>(count);
  }

  Status CheckStructure() {
    FF_ASSIGN_OR_RETURN(const int64_t version, connection_->QueryInt("PRAGMA user_version"));
    if (version < kOldestSchemaVersion || version > kSchemaVersion) {
      Problem("schema version " + std::to_string(version) + ", not " +
              std::to_string(kOldestSchemaVersion) + " to " + std::to_string(kSchemaVersion));
      return OkStatus();
    }
    FF_ASSIGN_OR_RETURN(SqliteStatement rows, connection_->Prepare("PRAGMA integrity_check"));
    for (;;) {
      FF_ASSIGN_OR_RETURN(const bool row, rows.Step());
      if (!row) return OkStatus();
      if (rows.Bytes(0) != "ok") Problem("SQLite: " + std::string(rows.Bytes(0)));
    }
  }

  Status CheckPlaces() {
    FF_ASSIGN_OR_RETURN(
        const size_t misplaced,
        Count("SELECT count(*) FROM profile LEFT JOIN original ON profile_id = profile.id "
              "WHERE coalesce(pack_id, 0) = 0 AND profile_id IS NULL OR "
              "pack_id > 0 AND profile_id IS NOT NULL"));
    if (misplaced > 0) {
      Problem(std::to_string(misplaced) + " profiles are in no place, or in two");
    }
    FF_ASSIGN_OR_RETURN(
        const size_t miscounted,
        Count("SELECT count(*) FROM pack WHERE profiles != "
              "(SELECT count(*) FROM profile WHERE pack_id = pack.id AND "
              "series_id = pack.series_id AND time_ns BETWEEN first_ns AND last_ns)"));
    if (miscounted > 0) Problem(std::to_string(miscounted) + " packs hold other profiles");
    return OkStatus();
  }

  Status CheckOriginals() {
    FF_ASSIGN_OR_RETURN(
        SqliteStatement rows,
        connection_->Prepare("SELECT id, digest, pprof FROM original JOIN profile ON "
                             "id = profile_id"));
    pprof::Profile profile;
    for (;;) {
      FF_ASSIGN_OR_RETURN(const bool row, rows.Step());
      if (!row) return OkStatus();
      const std::string name = "profile " + std::to_string(rows.Int(0));
      if (Digest(rows.Bytes(2)) != rows.Bytes(1)) {
        Problem(name + ": its bytes have changed");
      } else if (const Status read = pprof::Decode(rows.Bytes(2), pprof::DecodeLimits{}, &profile);
                 !read.ok()) {
        Problem(name + ": " + ErrorMessage(read));
      }
    }
  }

  Status ReadSymbols() {
    FF_ASSIGN_OR_RETURN(SqliteStatement rows,
                        connection_->Prepare("SELECT DISTINCT series_id, generation FROM symbols"));
    for (;;) {
      FF_ASSIGN_OR_RETURN(const bool row, rows.Step());
      if (!row) return OkStatus();
      size_t& stacks = stacks_[{rows.Int(0), rows.Int(1)}];
      const Status read = VisitSymbols(connection_, rows.Int(0), rows.Int(1),
                                       [&](uint32_t, const pprof::Profile* symbols) {
                                         stacks += symbols->samples.size();
                                         return OkStatus();
                                       });
      if (!read.ok()) {
        Problem("series " + std::to_string(rows.Int(0)) + ": " + ErrorMessage(read));
      }
    }
  }

  Status CheckPacks() {
    FF_ASSIGN_OR_RETURN(SqliteStatement rows,
                        connection_->Prepare(
                            "SELECT id, series_id, generation, profiles, total, detail FROM pack"));
    for (;;) {
      FF_ASSIGN_OR_RETURN(const bool row, rows.Step());
      if (!row) return OkStatus();
      const size_t stacks = stacks_[{rows.Int(1), rows.Int(2)}];
      CheckPack("total of pack " + std::to_string(rows.Int(0)), rows.Bytes(4), 1, stacks);
      CheckPack("pack " + std::to_string(rows.Int(0)), rows.Bytes(5),
                static_cast<size_t>(rows.Int(3)), stacks);
    }
  }

  void CheckPack(const std::string& name, std::string_view bytes, size_t profiles, size_t stacks) {
    const Result<Pack> pack = DecodePack(bytes);
    if (!pack.ok()) return Problem(name + ": " + ErrorMessage(pack.status()));
    if (pack->profiles.size() != profiles) Problem(name + " has another number of profiles");
    for (const PackedProfile& profile : pack->profiles) {
      if (!profile.stacks.empty() && profile.stacks.back() >= stacks) {
        return Problem(name + " names stacks that there are not");
      }
    }
  }

  SqliteConnection* const connection_;
  DayReport report_;
  std::map<std::pair<int64_t, int64_t>, size_t> stacks_;  // by series and generation
};

}  // namespace

Result<DayReport> CheckDay(const std::string& path) {
  FF_ASSIGN_OR_RETURN(SqliteConnection connection,
                      SqliteConnection::Open(path, SqliteConnection::Mode::kReadOnly));
  FF_RETURN_IF_ERROR(connection.Execute("BEGIN"));
  return DayCheck(&connection).Run();
}

}  // namespace flamefleet::store
