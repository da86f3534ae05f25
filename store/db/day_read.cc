// SPDX-License-Identifier: Apache-2.0
// What reads a day, but profiles: see day_select.cc.
#include <map>

#include "store/db/day.h"

namespace flamefleet::store {
namespace {

using SampleTypes = std::map<int64_t, SampleType>;

Result<SampleTypes> ReadSampleTypes(SqliteConnection* connection) {
  FF_ASSIGN_OR_RETURN(
      SqliteStatement rows,
      connection->Prepare("SELECT id, type, unit, period_type, period_unit FROM sample_type"));
  SampleTypes types;
  for (;;) {
    FF_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) return types;
    types[rows.Int(0)] = {.type = std::string(rows.Bytes(1)),
                          .unit = std::string(rows.Bytes(2)),
                          .period_type = std::string(rows.Bytes(3)),
                          .period_unit = std::string(rows.Bytes(4))};
  }
}

}  // namespace

Result<std::optional<SqliteConnection>> Day::OpenSnapshot() const {
  const MutexLock lock(&mutex_);
  if (retired_) return std::optional<SqliteConnection>();
  FF_ASSIGN_OR_RETURN(SqliteConnection connection,
                      SqliteConnection::Open(path_, SqliteConnection::Mode::kReadOnly));
  FF_RETURN_IF_ERROR(connection.Execute("BEGIN; SELECT count(*) FROM sqlite_schema;"));
  return std::optional<SqliteConnection>(std::move(connection));
}

std::vector<const Day::SeriesIds::value_type*> Day::MatchingSeries(const Selector& selector) const {
  std::vector<const SeriesIds::value_type*> matching;
  const MutexLock lock(&mutex_);
  for (const SeriesIds::value_type& series : series_) {
    if (selector.Matches(series.first)) matching.push_back(&series);
  }
  return matching;
}

Status Day::SelectSeries(const Selector& selector, const TimeRange& range,
                         const SelectionTime& time, const SeriesVisitor& visitor) const {
  FF_ASSIGN_OR_RETURN(std::optional<SqliteConnection> snapshot, OpenSnapshot());
  if (!snapshot) return OkStatus();
  FF_ASSIGN_OR_RETURN(SqliteStatement exists,
                      snapshot->Prepare("SELECT EXISTS (SELECT 1 FROM profile WHERE series_id = ?1 "
                                        "AND time_ns BETWEEN ?2 AND ?3)"));
  for (const SeriesIds::value_type* const series : MatchingSeries(selector)) {
    FF_RETURN_IF_ERROR(time.Check());
    exists.BindInt(1, series->second);
    exists.BindInt(2, range.from_ns);
    exists.BindInt(3, range.until_ns);
    FF_ASSIGN_OR_RETURN(const bool row, exists.Step());
    if (row && exists.Int(0) != 0) FF_RETURN_IF_ERROR(visitor(series->first));
    exists.Reset();
  }
  return OkStatus();
}

// `sql` gives time_ns, duration_ns, sample_type_id, is_default, value for series ?1 from ?2 until
// ?3.
Status Day::VisitTotals(const char* sql, const Selector& selector, const TimeRange& range,
                        const SelectionTime& time, const TotalVisitor& visitor) const {
  FF_ASSIGN_OR_RETURN(std::optional<SqliteConnection> snapshot, OpenSnapshot());
  if (!snapshot) return OkStatus();
  FF_ASSIGN_OR_RETURN(const SampleTypes types, ReadSampleTypes(&*snapshot));
  FF_ASSIGN_OR_RETURN(SqliteStatement totals, snapshot->Prepare(sql));
  for (const SeriesIds::value_type* const series : MatchingSeries(selector)) {
    FF_RETURN_IF_ERROR(time.Check());
    totals.BindInt(1, series->second);
    totals.BindInt(2, range.from_ns);
    totals.BindInt(3, range.until_ns);
    for (;;) {
      FF_ASSIGN_OR_RETURN(const bool row, totals.Step());
      if (!row) break;
      const auto type = types.find(totals.Int(2));
      if (type == types.end()) return DataLossError(path_ + ": a total has no sample type");
      FF_RETURN_IF_ERROR(visitor(
          {.labels = series->first,
           .time_ns = totals.Int(0),
           .duration_ns = totals.Int(1),
           .total = {
               .type = type->second, .is_default = totals.Int(3) != 0, .value = totals.Int(4)}}));
    }
  }
  return OkStatus();
}

Status Day::SelectTotals(const Selector& selector, const TimeRange& range,
                         const SelectionTime& time, const TotalVisitor& visitor) const {
  const auto wanted = [&](const ProfileTotal& found) {
    const bool fits = selector.sample_type.type.empty()
                          ? found.total.is_default
                          : selector.sample_type.Matches(found.total.type);
    return fits ? visitor(found) : OkStatus();
  };
  return VisitTotals(
      "SELECT time_ns, duration_ns, sample_type_id, is_default, value FROM profile "
      "JOIN total ON profile_id = profile.id "
      "WHERE series_id = ?1 AND time_ns BETWEEN ?2 AND ?3 ORDER BY time_ns",
      selector, range, time, wanted);
}

Status Day::SelectNewestTotals(const Selector& selector, const TimeRange& range,
                               const SelectionTime& time, const TotalVisitor& visitor) const {
  return VisitTotals(
      "SELECT time_ns, duration_ns, sample_type_id, is_default, value FROM "
      "(SELECT id, time_ns, duration_ns FROM profile WHERE series_id = ?1 AND time_ns BETWEEN ?2 "
      "AND ?3 "
      "ORDER BY time_ns DESC LIMIT 1) AS newest JOIN total ON profile_id = newest.id",
      selector, range, time, visitor);
}

}  // namespace flamefleet::store
