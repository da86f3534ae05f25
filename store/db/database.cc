// SPDX-License-Identifier: Apache-2.0
#include "store/db/database.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <filesystem>
#include <map>

#include "base/log.h"
#include "base/thread.h"
#include "store/db/counters.h"

namespace flamefleet::store {
namespace {

constexpr size_t kMaxBatchBytes = 32 << 20;  // of one round of the writer
constexpr int64_t kHousekeepingPeriodNanos = 10 * kNanosPerSecond;
constexpr std::chrono::seconds kWriterWakeUp{1};
constexpr int kMaxDeletions = 20;  // of a twentieth each, per housekeeping

int64_t DayNumber(int64_t time_ns) {
  return time_ns / kNanosPerDay;
}

// The files of days that were set aside, the oldest day first, and their size.
std::map<std::filesystem::path, int64_t> SetAsideFiles(const std::string& directory) {
  std::map<std::filesystem::path, int64_t> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (entry.path().filename().string().find(Day::kSetAsideMark) == std::string::npos) continue;
    const uintmax_t size = entry.file_size(error);
    if (!error) files[entry.path()] = static_cast<int64_t>(size);
  }
  return files;
}

}  // namespace

struct Database::Request {
  const std::vector<NewProfile>* profiles = nullptr;
  size_t bytes = 0;
  Status status;  // the first error
  bool done = false;

  void Fail(const Status& error) {
    if (status.ok()) status = error;
  }
};

Database::Database(const DatabaseOptions& options, const Clock* clock, Metrics* metrics)
    : options_(options),
      clock_(clock),
      counters_(std::make_unique<Counters>(metrics, options.tenant)) {}

Result<std::unique_ptr<Database>> Database::Open(const DatabaseOptions& options, const Clock* clock,
                                                 Metrics* metrics) {
  std::error_code error;
  std::filesystem::create_directories(options.directory, error);
  if (error) return ErrnoError(error.value(), "create " + options.directory);
  std::unique_ptr<Database> database(new Database(options, clock, metrics));
  FF_ASSIGN_OR_RETURN(database->lock_file_,
                      OpenFile(options.directory + "/lock", O_RDWR | O_CREAT, 0600));
  if (::flock(database->lock_file_.get(), LOCK_EX | LOCK_NB) != 0) {
    return AlreadyExistsError("open " + options.directory + ": another flamefleet-store uses it");
  }
  FF_RETURN_IF_ERROR(database->OpenExisting());
  database->HouseKeeping();
  Database* const self = database.get();
  self->writer_ =
      StartThread("ff-store-write", [self](const std::stop_token&) { self->WriteLoop(); });
  return database;
}

Database::~Database() {
  {
    const MutexLock lock(&mutex_);
    stopping_ = true;
    work_.SignalAll();
  }
  if (writer_.joinable()) writer_.join();
}

Status Database::OpenExisting() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(options_.directory, error)) {
    const int64_t number = Day::NumberOfFileName(entry.path().filename().string());
    if (number < 0) continue;
    FF_RETURN_IF_ERROR(OpenForWriting(number).status());
  }
  if (error) return ErrnoError(error.value(), "list " + options_.directory);
  return OkStatus();
}

Status Database::Append(const std::vector<NewProfile>& profiles) {
  Request request{.profiles = &profiles};
  for (const NewProfile& profile : profiles)
    request.bytes += profile.pprof.size();
  const MutexLock lock(&mutex_);
  if (stopping_) return UnavailableError("the store is shutting down");
  if (pending_bytes_ + request.bytes > kMaxPendingBytes) {
    return UnavailableError("the disk does not keep up: " + std::to_string(pending_bytes_) +
                            " bytes wait to be written");
  }
  pending_bytes_ += request.bytes;
  queue_.push_back(&request);
  work_.Signal();
  while (!request.done)
    done_.Wait(&mutex_);
  return request.status;
}

void Database::WriteLoop() {
  for (;;) {
    std::vector<Request*> batch;
    size_t batch_bytes = 0;
    {
      const MutexLock lock(&mutex_);
      if (queue_.empty() && !stopping_ && packable_.empty()) WaitFor(work_, mutex_, kWriterWakeUp);
      if (queue_.empty() && stopping_) return;
      while (!queue_.empty() && (batch.empty() || batch_bytes < kMaxBatchBytes)) {
        batch.push_back(queue_.front());
        batch_bytes += queue_.front()->bytes;
        queue_.pop_front();
      }
    }
    if (!batch.empty()) {
      WriteBatch(batch);
      const MutexLock lock(&mutex_);
      pending_bytes_ -= batch_bytes;
      for (Request* request : batch)
        request->done = true;
      done_.SignalAll();
    }
    PackSome();
    HouseKeeping();
  }
}

void Database::WriteBatch(const std::vector<Request*>& batch) {
  struct OfDay {
    std::vector<Request*> owners;  // of each profile
    std::vector<const NewProfile*> profiles;
  };
  std::map<int64_t, OfDay> by_day;
  for (Request* request : batch) {
    for (const NewProfile& profile : *request->profiles) {
      OfDay& of_day = by_day[DayNumber(profile.time_ns)];
      of_day.owners.push_back(request);
      of_day.profiles.push_back(&profile);
    }
  }
  for (const auto& [number, of_day] : by_day)
    WriteDay(number, of_day.owners, of_day.profiles);
}

void Database::WriteDay(int64_t number, const std::vector<Request*>& owners,
                        const std::vector<const NewProfile*>& profiles) {
  const int64_t start_ns = clock_->MonotonicNanos();
  const Result<std::shared_ptr<Day>> day = OpenForWriting(number);
  const Result<std::vector<Day::Outcome>> outcomes =
      day.ok() ? (*day)->Append(profiles) : Result<std::vector<Day::Outcome>>(day.status());
  if (!outcomes.ok()) {
    counters_->commit_errors.Increment();
    if (!failing_) {
      Log(LogLevel::kError, "profiles cannot be written; their clients are told to retry",
          {{"error", outcomes.status()}});
    }
    failing_ = true;
    for (Request* owner : owners)
      owner->Fail(outcomes.status());
    if (day.ok() && outcomes.status().code() == StatusCode::kDataLoss) {
      SetAside(*day, outcomes.status());
    }
    return;
  }
  if (failing_) Log(LogLevel::kInfo, "profiles can be written again");
  failing_ = false;
  counters_->commit_seconds.Observe(static_cast<double>(clock_->MonotonicNanos() - start_ns) /
                                    kNanosPerSecond);
  for (size_t i = 0; i < outcomes->size(); ++i) {
    const Day::Outcome& outcome = (*outcomes)[i];
    if (!outcome.status.ok()) {
      owners[i]->Fail(outcome.status);
    } else {
      (outcome.duplicate ? counters_->duplicates : counters_->stored).Increment();
    }
  }
}

Result<std::shared_ptr<Day>> Database::OpenForWriting(int64_t number) {
  {
    const MutexLock lock(&mutex_);
    if (const auto it = days_.find(number); it != days_.end()) return it->second;
  }
  Result<std::shared_ptr<Day>> day = Day::Open(options_.directory, number);
  if (day.status().code() == StatusCode::kDataLoss) {
    SetAside(Day::Closed(options_.directory, number), day.status());
    day = Day::Open(options_.directory, number);
  }
  FF_RETURN_IF_ERROR(day.status());
  const MutexLock lock(&mutex_);
  days_[number] = *day;
  counters_->days.Set(static_cast<double>(days_.size()));
  return *day;
}

Database::Days Database::DaysIn(const TimeRange& range) const {
  const MutexLock lock(&mutex_);
  return Days(days_.lower_bound(DayNumber(range.from_ns)),
              days_.upper_bound(DayNumber(range.until_ns)));
}

Status Database::ForEachDay(const TimeRange& range,
                            const std::function<Status(const Day&)>& select) {
  for (const auto& [number, day] : DaysIn(range)) {
    const Status status = select(*day);
    if (status.code() == StatusCode::kDataLoss) {
      const MutexLock lock(&mutex_);
      damaged_.emplace_back(day, status);
      work_.Signal();
      continue;
    }
    FF_RETURN_IF_ERROR(status);
  }
  return OkStatus();
}

Status Database::Select(const Selector& selector, const TimeRange& range,
                        const PartVisitor& visitor) {
  return ForEachDay(range, [&](const Day& day) {
    size_t damaged = 0;
    const Status status = day.Select(selector, range, visitor, &damaged);
    if (damaged > 0) {
      counters_->damaged_profiles.Increment(static_cast<double>(damaged));
      Log(LogLevel::kError, "damaged profiles were left out of an answer",
          {{"path", day.path()}, {"profiles", damaged}});
    }
    return status;
  });
}

Status Database::SelectSeries(const Selector& selector, const TimeRange& range,
                              const SeriesVisitor& visitor) {
  const SelectionTime time(*clock_);
  return ForEachDay(
      range, [&](const Day& day) { return day.SelectSeries(selector, range, time, visitor); });
}

Status Database::SelectTotals(const Selector& selector, const TimeRange& range,
                              const TotalVisitor& visitor) {
  const SelectionTime time(*clock_);
  return ForEachDay(
      range, [&](const Day& day) { return day.SelectTotals(selector, range, time, visitor); });
}

Status Database::SelectNewestTotals(const Selector& selector, const TimeRange& range,
                                    const TotalVisitor& visitor) {
  const SelectionTime time(*clock_);
  return ForEachDay(range, [&](const Day& day) {
    return day.SelectNewestTotals(selector, range, time, visitor);
  });
}

void Database::PackSome() {
  if (packable_.empty()) return;
  const auto [day, what] = packable_.front();
  packable_.pop_front();
  // It may have been removed or set aside since.
  const Days days = DaysIn({day->number() * kNanosPerDay, day->number() * kNanosPerDay});
  if (days.empty() || days.begin()->second != day) return;
  const Result<Day::PackOutcome> packed = day->PackHour(what, *clock_);
  if (packed.ok()) {
    counters_->packed.Increment(static_cast<double>(packed->profiles));
    if (packed->more) packable_.emplace_front(day, what);
    return;
  }
  // What could not be packed stays as it is; the next housekeeping finds it again.
  packable_.clear();
  counters_->pack_errors.Increment();
  if (packed.status().code() == StatusCode::kDataLoss) {
    SetAside(day, packed.status());
  } else if (!failing_) {
    failing_ = true;
    Log(LogLevel::kError, "stored profiles cannot be packed; they stay as they are",
        {{"path", day->path()}, {"error", packed.status()}});
  }
}

void Database::FindPackable() {
  packable_.clear();
  for (const auto& [number, day] : DaysIn({0, INT64_MAX})) {
    const Result<std::vector<Day::SeriesHour>> found = day->FindPackable(clock_->WallNanos());
    if (!found.ok()) continue;  // what writes to that day says so
    for (const Day::SeriesHour& what : *found)
      packable_.emplace_back(day, what);
  }
}

void Database::RemoveOldDays(int64_t monotonic_ns) {
  const int64_t wall_ns = clock_->WallNanos();
  const int64_t oldest_kept = DayNumber(wall_ns - options_.retention_ns);
  const Days all = DaysIn({0, INT64_MAX});
  const bool all_too_old = !all.empty() && all.rbegin()->first < oldest_kept;
  if (clock_trust_.Look(wall_ns, monotonic_ns, all_too_old)) {
    Log(LogLevel::kWarn, "the clock has jumped ahead; for an hour no day is removed by age",
        {{"now", FormatRfc3339(wall_ns)}});
  }
  if (!clock_trust_.Believed(monotonic_ns)) return;
  for (const auto& [number, day] : all) {
    if (number < oldest_kept) RemoveDay(number, &counters_->removed_by_age);
  }
}

void Database::HouseKeeping() {
  std::vector<std::pair<std::shared_ptr<Day>, Status>> damaged;
  {
    const MutexLock lock(&mutex_);
    damaged.swap(damaged_);
  }
  for (const auto& [day, error] : damaged)
    SetAside(day, error);

  const int64_t now = clock_->MonotonicNanos();
  if (now < next_housekeeping_ns_) return;
  next_housekeeping_ns_ = now + kHousekeepingPeriodNanos;
  FindPackable();
  RemoveOldDays(now);
  int deletions = 0;
  while (MeasureDays() > options_.max_bytes) {
    const auto damaged_files = SetAsideFiles(options_.directory);
    std::error_code error;
    if (!damaged_files.empty() && std::filesystem::remove(damaged_files.begin()->first, error)) {
      Log(LogLevel::kWarn, "removed a damaged day that was set aside, for the room that it takes",
          {{"path", damaged_files.begin()->first.string()}});
      continue;
    }
    const Days all = DaysIn({0, INT64_MAX});
    if (all.size() > 1) {
      RemoveDay(all.begin()->first, &counters_->removed_by_size);
      continue;
    }
    if (all.empty() || ++deletions > kMaxDeletions) return;
    if (const Status deleted = all.begin()->second->DeleteOldest(); !deleted.ok()) {
      if (deleted.code() == StatusCode::kUnavailable) return;  // a query reads; the next time
      Log(LogLevel::kError, "the oldest profiles could not be deleted", {{"error", deleted}});
      return;
    }
  }
}

int64_t Database::MeasureDays() {
  int64_t bytes = 0;
  for (const auto& [number, day] : DaysIn({0, INT64_MAX})) {
    const Result<int64_t> of_day = day->Bytes();
    if (of_day.ok()) bytes += *of_day;
  }
  for (const auto& [path, size] : SetAsideFiles(options_.directory))
    bytes += size;
  counters_->bytes.Set(static_cast<double>(bytes));
  return bytes;
}

void Database::RemoveDay(int64_t number, CounterMetric* counter) {
  std::shared_ptr<Day> day;
  {
    const MutexLock lock(&mutex_);
    day = std::move(days_[number]);
    days_.erase(number);
    counters_->days.Set(static_cast<double>(days_.size()));
  }
  day->RemoveFiles();
  counter->Increment();
  Log(LogLevel::kInfo, "removed a day", {{"path", day->path()}});
}

void Database::SetAside(const std::shared_ptr<Day>& day, const Status& error) {
  {
    const MutexLock lock(&mutex_);
    const auto it = days_.find(day->number());
    if (it != days_.end()) {
      if (it->second != day) return;  // set aside already
      days_.erase(it);
    }
    counters_->days.Set(static_cast<double>(days_.size()));
  }
  const std::string new_path = day->SetAside(clock_->WallNanos());
  counters_->damaged.Increment();
  Log(LogLevel::kError,
      "a day is damaged and was set aside; try the sqlite3 command .recover on it",
      {{"path", new_path}, {"error", error}});
}

}  // namespace flamefleet::store
