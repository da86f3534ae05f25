// SPDX-License-Identifier: Apache-2.0
// Day: the profiles of one UTC day in one SQLite file, DIR/2026-11-29.db.
//
//   series      (id, labels)                            labels: a JSON object with sorted keys
//   profile     (id, series_id, time_ns, digest, pprof) pprof: what the client sent, plain or gzip
//                                                       digest: start of its SHA-256, 16 bytes
//   sample_type (id, type, unit, period_type, period_unit)
//   total       (profile_id, sample_type_id, is_default, value)  value: sum over the profile, so
//                                                       that a chart over time reads no pprof
//
// A profile is unique by series, time and digest, so a retry is stored once. Every file is complete
// in itself, so retention removes files.
//
// Thread: Append, Bytes, DeleteOldest, RemoveFiles and SetAside from the writer; Select...
//         from any thread, at the same time (each opens a connection of its own: WAL
//         readers never wait for the writer).
// Bounds: kMaxSeriesPerDay series, whose labels are in memory.
// Errors: see SqliteConnection; kDataLoss: set the file aside.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/sqlite.h"
#include "base/status.h"
#include "store/match/labels.h"
#include "store/match/selector.h"
#include "store/match/time_range.h"

namespace flamefleet::store {

constexpr int64_t kNanosPerDay = int64_t{86'400} * 1'000'000'000;
constexpr size_t kMaxSeriesPerDay = 100'000;

// The sum of one sample type over a profile.
struct Total {
  SampleType type;
  bool is_default = false;  // what a person wants to see first; of one type per profile
  int64_t value = 0;
};

struct NewProfile {
  Labels labels;
  int64_t time_ns = 0;
  std::string pprof;  // valid, plain or gzip
  std::vector<Total> totals;
};

// Called for each profile of a selection; an error ends the selection and becomes its result.
using ProfileVisitor =
    std::function<Status(const Labels& labels, int64_t time_ns, std::string_view pprof)>;

// Called for each profile of a selection and each of its sample types that is asked for.
using TotalVisitor = std::function<void(const Labels& labels, int64_t time_ns, const Total& total)>;

class Day {
 public:
  // Opens or creates the file of day `number` (days since 1970). kDataLoss: the file is damaged;
  // kFailedPrecondition: it was written by a newer version.
  static Result<std::shared_ptr<Day>> Open(const std::string& directory, int64_t number);
  // Not opened, nothing in it: for SetAside of a file that cannot be opened.
  static std::shared_ptr<Day> Closed(const std::string& directory, int64_t number);
  // "2026-11-29.db" and back; -1 for any other name.
  static std::string FileName(int64_t number);
  static int64_t NumberOfFileName(const std::string& name);

  Day(const Day&) = delete;
  Day& operator=(const Day&) = delete;

  int64_t number() const { return number_; }
  const std::string& path() const { return path_; }

  struct Outcome {
    Status status;  // kFailedPrecondition: kMaxSeriesPerDay is reached; the others are stored
    bool duplicate = false;  // was there already
  };
  // Stores all in one transaction: on disk when it returns. An error means that none is stored.
  Result<std::vector<Outcome>> Append(const std::vector<const NewProfile*>& profiles);

  // On disk, without what a deletion has freed inside of the file.
  Result<int64_t> Bytes();
  // Deletes the oldest twentieth of the profiles, at least one.
  Status DeleteOldest();

  // Deletes the files. Selections that run go on, later ones find nothing; nothing may be appended
  // any more.
  void RemoveFiles();
  // As RemoveFiles, but renames them to *.corrupt-<unix seconds>; the new path of the database.
  std::string SetAside(int64_t now_ns);

  // A profile whose bytes are no longer those of its digest is not visited, and counted in
  // `damaged`.
  Status Select(const Selector& selector, const TimeRange& range, const ProfileVisitor& visitor,
                size_t* damaged) const;
  // The label sets that have a profile in the range.
  Status SelectSeries(const Selector& selector, const TimeRange& range,
                      const std::function<void(const Labels&)>& visitor) const;
  // The totals of the sample type of the selector, of the default one where it names none.
  Status SelectTotals(const Selector& selector, const TimeRange& range,
                      const TotalVisitor& visitor) const;
  // The totals, of all sample types, of the newest profile of each series.
  Status SelectNewestTotals(const Selector& selector, const TimeRange& range,
                            const TotalVisitor& visitor) const;

 private:
  using SeriesIds = std::map<Labels, int64_t>;

  Day(std::string path, int64_t number) : path_(std::move(path)), number_(number) {}
  Status Init();
  Status LoadSeries();
  Status Insert(const std::vector<const NewProfile*>& profiles, SeriesIds* new_series,
                std::vector<Outcome>* outcomes);
  Status InsertTotals(int64_t profile, const std::vector<Total>& totals);
  // 0 when there may be no further series.
  Result<int64_t> FindOrInsertSeries(const Labels& labels, SeriesIds* new_series);
  // A connection with a snapshot begun; none when the files are gone.
  Result<std::optional<SqliteConnection>> OpenSnapshot() const;
  std::vector<std::pair<int64_t, Labels>> MatchingSeries(const Selector& selector) const;
  Status VisitTotals(const char* sql, const Selector& selector, const TimeRange& range,
                     const TotalVisitor& visitor) const;
  // Closes the writer's connection, then calls `action` with the path of each file.
  void Retire(const std::function<void(const std::string& path)>& action);

  const std::string path_;
  const int64_t number_;

  // Of the writer.
  std::optional<SqliteConnection> connection_;
  SqliteStatement insert_series_;
  SqliteStatement insert_profile_;
  SqliteStatement insert_sample_type_;
  SqliteStatement insert_total_;

  mutable Mutex mutex_;
  SeriesIds series_ FF_GUARDED_BY(mutex_);
  bool retired_ FF_GUARDED_BY(mutex_) = false;  // the files are gone, or on their way
};

}  // namespace flamefleet::store
