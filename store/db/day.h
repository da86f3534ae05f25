// SPDX-License-Identifier: Apache-2.0
// Day: the profiles of one UTC day in one SQLite file, DIR/2026-11-29.db. docs/store.md describes
// its schema.
//
// A profile is stored as its sender wrote it, and packed soon after: its stacks go to the symbols
// of its series, each distinct one once, its values into the Pack of its hour, which also holds the
// sum of all its profiles, so that a merge over a day reads little. One transaction does both and
// removes the original.
//
// A profile is unique by series, time and digest, so a retry is stored once. Every file is complete
// in itself, so retention removes files.
//
// Thread: Append, FindPackable, PackHour, Bytes, DeleteOldest, RemoveFiles and SetAside from the
//         writer; Select... from any thread, at the same time (each opens a connection of its own:
//         WAL readers never wait for the writer).
// Bounds: kMaxSeriesPerDay series, whose labels are in memory; the symbols of a series start anew
//         when they take kMaxSymbolsBytes of memory.
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

#include "base/clock.h"
#include "base/mutex.h"
#include "base/pprof/profile.h"
#include "base/sqlite.h"
#include "base/status.h"
#include "store/db/selection_time.h"
#include "store/match/labels.h"
#include "store/match/selector.h"
#include "store/match/time_range.h"

namespace flamefleet::store {

constexpr int64_t kNanosPerDay = int64_t{86'400} * 1'000'000'000;
constexpr int64_t kNanosPerHour = kNanosPerDay / 24;
constexpr size_t kMaxSeriesPerDay = 100'000;
constexpr size_t kMaxSymbolsBytes = 32 << 20;
// Profiles of a series and hour are packed when so many wait, or when the hour is over for this
// long.
constexpr int64_t kPackProfiles = 40;
constexpr int64_t kPackAfterNs = int64_t{5} * 60 * 1'000'000'000;

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
  int64_t duration_ns = 0;  // 0: of one moment, or not known
};

// A part of a selection: one profile, the sum of several, or the header or the samples of such a
// sum. The sum of all parts is that of the selected profiles.
struct SelectedPart {
  const Labels& labels;
  size_t profiles;          // that were not in a part before
  pprof::Profile* profile;  // the visitor may change it
  size_t held_bytes;        // memory that the selection takes now
};
// An error ends the selection and becomes its result.
using PartVisitor = std::function<Status(const SelectedPart&)>;

// One sample type of one profile.
struct ProfileTotal {
  const Labels& labels;
  int64_t time_ns = 0;
  int64_t duration_ns = 0;
  Total total;
};
// Called for each profile of a selection and each of its sample types that is asked for; those of a
// series in the order of their times. An error ends the selection and becomes its result.
using TotalVisitor = std::function<Status(const ProfileTotal&)>;
using SeriesVisitor = std::function<Status(const Labels&)>;

class Day {
 public:
  // Opens or creates the file of day `number` (days since 1970). kDataLoss: the file is damaged;
  // kFailedPrecondition: it was written by a newer version.
  static Result<std::shared_ptr<Day>> Open(const std::string& directory, int64_t number);
  // Not opened, nothing in it: for SetAside of a file that cannot be opened.
  static std::shared_ptr<Day> Closed(const std::string& directory, int64_t number);
  // In the names of files that were set aside.
  static constexpr char kSetAsideMark[] = ".corrupt-";
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

  struct SeriesHour {
    int64_t series = 0;
    int64_t hour = 0;  // since 1970
  };
  // What there is to pack.
  Result<std::vector<SeriesHour>> FindPackable(int64_t now_ns);
  struct PackOutcome {
    size_t profiles = 0;
    bool more = false;  // are left
  };
  // Packs the oldest profiles of that hour, in one transaction, of which `clock` makes a short one.
  Result<PackOutcome> PackHour(const SeriesHour& what, const Clock& clock);

  // On disk, without what a deletion has freed inside of the file.
  Result<int64_t> Bytes();
  // Deletes the oldest twentieth of the profiles, at least one; of packed ones whole packs.
  Status DeleteOldest();

  // Deletes the files. Selections that run go on, later ones find nothing; nothing may be appended
  // any more.
  void RemoveFiles();
  // As RemoveFiles, but renames them to *.corrupt-<unix seconds>; the new path of the database.
  std::string SetAside(int64_t now_ns);

  // Profiles whose bytes on disk have changed are not visited, and counted in `damaged`.
  Status Select(const Selector& selector, const TimeRange& range, const PartVisitor& visitor,
                size_t* damaged) const;
  // The label sets that have a profile in the range.
  Status SelectSeries(const Selector& selector, const TimeRange& range, const SelectionTime& time,
                      const SeriesVisitor& visitor) const;
  // The totals of the sample type of the selector, of the default one where it names none.
  Status SelectTotals(const Selector& selector, const TimeRange& range, const SelectionTime& time,
                      const TotalVisitor& visitor) const;
  // The totals, of all sample types, of the newest profile of each series.
  Status SelectNewestTotals(const Selector& selector, const TimeRange& range,
                            const SelectionTime& time, const TotalVisitor& visitor) const;

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
  // Of series_, whose elements stay where they are.
  std::vector<const SeriesIds::value_type*> MatchingSeries(const Selector& selector) const;
  Status VisitTotals(const char* sql, const Selector& selector, const TimeRange& range,
                     const SelectionTime& time, const TotalVisitor& visitor) const;
  // Closes the writer's connection, then calls `action` with the path of each file.
  void Retire(const std::function<void(const std::string& path)>& action);

  const std::string path_;
  const int64_t number_;

  // Of the writer.
  std::optional<SqliteConnection> connection_;
  SqliteStatement insert_series_;
  SqliteStatement insert_profile_;
  SqliteStatement insert_original_;
  SqliteStatement insert_sample_type_;
  SqliteStatement insert_total_;

  mutable Mutex mutex_;
  SeriesIds series_ FF_GUARDED_BY(mutex_);      // it only grows
  bool retired_ FF_GUARDED_BY(mutex_) = false;  // the files are gone, or on their way
};

}  // namespace flamefleet::store
