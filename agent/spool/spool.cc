// SPDX-License-Identifier: Apache-2.0
#include "agent/spool/spool.h"

#include <algorithm>
#include <utility>

namespace flamefleet::agent {
namespace {

// Rows that are evicted before the room is measured again.
constexpr size_t kEvictBatch = 16;
// Of the columns beside the body, and of their share of the index.
constexpr int64_t kRowOverhead = 512;
// One part in so many of a large body is the links between its pages, or more.
constexpr int64_t kPageLossShare = 512;

bool Contains(const std::vector<int64_t>& sorted, int64_t id) {
  return std::ranges::binary_search(sorted, id);
}

void AddTo(std::vector<int64_t>& sorted, int64_t id) {
  sorted.insert(std::ranges::lower_bound(sorted, id), id);
}

bool RemoveFrom(std::vector<int64_t>& sorted, int64_t id) {
  return std::erase(sorted, id) != 0;
}

// Of the columns that every SELECT here has, see spool_file.cc. Into the memory that it has.
void ReadRow(const SqliteStatement& row, SpooledProfile* profile) {
  profile->id = row.Int(0);
  profile->backend = row.Bytes(1);
  profile->errors = static_cast<int>(row.Int(2));
  profile->time_ns = row.Int(3);
  profile->collection.pod_uid = row.Bytes(4);
  profile->collection.container = row.Bytes(5);
  const int64_t type = row.Int(6);  // of a file that may be damaged
  const bool is_type = type >= 0 && type < static_cast<int64_t>(kProfileTypes.size());
  profile->collection.type = is_type ? static_cast<ProfileType>(type) : ProfileType::kCpu;
  profile->bytes = row.Int(7);
  profile->spread_ns = row.Int(8);
  profile->raw_bytes = row.Int(9);
}

}  // namespace

Status Spool::CheckOpen() const {
  return connection_ ? OkStatus() : UnavailableError("the spool has no file");
}

Status Spool::Note(Status status) {
  if (status.code() == StatusCode::kDataLoss) damaged_ = true;
  return status;
}

Status Spool::DeleteLeftovers() {
  while (!leftovers_.empty()) {
    const int64_t id = *leftovers_.begin();
    FF_RETURN_IF_ERROR(Note(Delete(id)));
    RemoveFrom(taken_, id);
    leftovers_.erase(id);
  }
  return OkStatus();
}

template <typename Work>
Status Spool::Transact(Work work) {
  FF_RETURN_IF_ERROR(begin_.Run());
  Status done = work();
  if (done.ok()) done = commit_.Run();
  // Some errors have rolled back already; then this one says so and changes nothing.
  if (!done.ok()) connection_->Execute("ROLLBACK").IgnoreError();
  return done;
}

void Spool::Count(const SpooledProfile& profile, int sign) {
  Backlog& total = totals_[profile.backend];
  total.profiles += sign;
  total.bytes += sign * profile.bytes;
  profiles_ += sign;
  bytes_ += sign * profile.bytes;
}

Status Spool::Insert(SpooledProfile& profile) {
  insert_.BindText(1, profile.backend);
  insert_.BindInt(2, profile.errors);
  insert_.BindInt(3, profile.time_ns);
  insert_.BindText(4, profile.collection.pod_uid);
  insert_.BindText(5, profile.collection.container);
  insert_.BindInt(6, static_cast<int64_t>(profile.collection.type));
  insert_.BindInt(7, profile.spread_ns);
  insert_.BindInt(8, profile.raw_bytes);
  insert_.BindBlob(9, profile.body);
  FF_RETURN_IF_ERROR(insert_.Run());
  profile.id = last_id_ = connection_->LastInsertId();
  profile.bytes = static_cast<int64_t>(profile.body.size());
  return OkStatus();
}

Status Spool::Delete(int64_t id) {
  delete_.BindInt(1, id);
  return delete_.Run();
}

Result<int64_t> Spool::UsedBytes() {
  const auto number = [](SqliteStatement& statement) -> Result<int64_t> {
    FF_ASSIGN_OR_RETURN(const bool row, statement.Step());
    const int64_t value = row ? statement.Int(0) : 0;
    statement.Reset();
    return value;
  };
  FF_ASSIGN_OR_RETURN(const int64_t pages, number(page_count_));
  FF_ASSIGN_OR_RETURN(const int64_t free_pages, number(free_count_));
  return (pages - free_pages) * page_bytes_;
}

// As UsedBytes would count it, or more.
int64_t Spool::RowBytes(const SpooledProfile& profile) const {
  const auto body = static_cast<int64_t>(profile.body.size());
  const int64_t bytes = body + body / kPageLossShare + kRowOverhead;
  return (bytes + page_bytes_ - 1) / page_bytes_ * page_bytes_;
}

Result<int64_t> Spool::MakeRoom(int64_t bytes, std::vector<SpooledProfile>& evicted) {
  for (;;) {
    FF_ASSIGN_OR_RETURN(const int64_t used, UsedBytes());
    const int64_t room = options_.max_bytes - used;
    if (bytes <= room) return room;
    std::vector<SpooledProfile> oldest;
    while (oldest.size() < kEvictBatch) {
      FF_ASSIGN_OR_RETURN(const bool row, oldest_of_all_.Step());
      if (!row) break;
      if (!Contains(taken_, oldest_of_all_.Int(0))) ReadRow(oldest_of_all_, &oldest.emplace_back());
    }
    oldest_of_all_.Reset();
    if (oldest.empty()) return room;  // all of it is being sent
    int64_t freed = 0;
    for (SpooledProfile& profile : oldest) {
      if (bytes <= room + freed) break;
      FF_RETURN_IF_ERROR(Delete(profile.id));
      freed += profile.bytes;
      evicted.push_back(std::move(profile));
    }
  }
}

Result<std::vector<SpooledProfile>> Spool::Append(std::vector<SpooledProfile>& profiles) {
  const MutexLock lock(&mutex_);
  // A file that could not be made before may be made now.
  if (!connection_) FF_RETURN_IF_ERROR(OpenFile());
  DeleteLeftovers().IgnoreError();  // else the next time
  std::vector<SpooledProfile> refused;
  std::vector<SpooledProfile> evicted;
  const auto too_large = [this](const SpooledProfile& profile) {
    return static_cast<int64_t>(profile.body.size()) > options_.max_bytes / 4;
  };
  const Status done = Transact([&]() FF_REQUIRES(mutex_) -> Status {
    int64_t room = 0;  // it is measured when this is used up
    for (SpooledProfile& profile : profiles) {
      if (too_large(profile)) continue;
      const int64_t bytes = RowBytes(profile);
      if (room < bytes) {
        FF_ASSIGN_OR_RETURN(room, MakeRoom(bytes, evicted));
      }
      FF_RETURN_IF_ERROR(Insert(profile));
      room -= bytes;
    }
    return OkStatus();
  });
  FF_RETURN_IF_ERROR(done);
  for (SpooledProfile& profile : profiles) {
    if (too_large(profile)) {
      refused.push_back(std::move(profile));
    } else {
      Count(profile, 1);
    }
  }
  for (SpooledProfile& profile : evicted) {
    Count(profile, -1);
    refused.push_back(std::move(profile));
  }
  return refused;
}

Result<bool> Spool::TakeFirst(SqliteStatement& statement, const std::string& backend,
                              int64_t since_ns, SpooledProfile* profile) {
  FF_RETURN_IF_ERROR(CheckOpen());
  statement.BindText(1, backend);
  statement.BindInt(2, since_ns);
  Result<bool> row = statement.Step();
  while (row.ok() && *row && Contains(taken_, statement.Int(0)))
    row = statement.Step();
  if (row.ok() && *row) {
    ReadRow(statement, profile);
    profile->body = statement.Bytes(10);
    AddTo(taken_, profile->id);
  }
  statement.Reset();
  FF_RETURN_IF_ERROR(Note(row.status()));
  return row;
}

Result<bool> Spool::TakeNewest(const std::string& backend, int64_t since_ns,
                               SpooledProfile* profile) {
  const MutexLock lock(&mutex_);
  return TakeFirst(newest_, backend, since_ns, profile);
}

Result<bool> Spool::TakeOldest(const std::string& backend, SpooledProfile* profile) {
  const MutexLock lock(&mutex_);
  return TakeFirst(oldest_, backend, INT64_MIN, profile);
}

Status Spool::Remove(const SpooledProfile& profile) {
  const MutexLock lock(&mutex_);
  if (!Contains(taken_, profile.id)) return OkStatus();  // of a file that is gone
  Count(profile, -1);
  const Status deleted = Note(Delete(profile.id));
  if (!deleted.ok()) {
    leftovers_.insert(profile.id);
    return deleted;
  }
  RemoveFrom(taken_, profile.id);
  return DeleteLeftovers();
}

Status Spool::Release(const SpooledProfile& profile) {
  const MutexLock lock(&mutex_);
  if (!RemoveFrom(taken_, profile.id)) return NotFoundError("the spool began anew");
  if (profile.errors == 0) return OkStatus();  // it stands there already
  release_.BindInt(1, profile.id);
  release_.BindInt(2, profile.errors);
  return Note(release_.Run());
}

Status Spool::Replace(const SpooledProfile& profile, std::vector<SpooledProfile>& parts) {
  const MutexLock lock(&mutex_);
  if (!Contains(taken_, profile.id)) return NotFoundError("the spool began anew");
  const Status done = Transact([&]() FF_REQUIRES(mutex_) -> Status {
    FF_RETURN_IF_ERROR(Delete(profile.id));
    for (SpooledProfile& part : parts)
      FF_RETURN_IF_ERROR(Insert(part));
    return OkStatus();
  });
  FF_RETURN_IF_ERROR(done);
  RemoveFrom(taken_, profile.id);
  Count(profile, -1);
  for (const SpooledProfile& part : parts)
    Count(part, 1);
  return OkStatus();
}

Result<std::vector<SpooledProfile>> Spool::RemoveOlder(const std::string& backend,
                                                       int64_t before_ns, int limit) {
  const MutexLock lock(&mutex_);
  FF_RETURN_IF_ERROR(CheckOpen());
  std::vector<SpooledProfile> old;
  old_.BindText(1, backend);
  while (static_cast<int>(old.size()) < limit) {
    const Result<bool> row = old_.Step();
    if (!row.ok()) Note(row.status()).IgnoreError();  // what was read goes
    if (!row.ok() || !*row || old_.Int(3) >= before_ns) break;
    if (!Contains(taken_, old_.Int(0))) ReadRow(old_, &old.emplace_back());
  }
  old_.Reset();
  if (old.empty()) return old;
  const Status done = Transact([&]() FF_REQUIRES(mutex_) -> Status {
    for (const SpooledProfile& profile : old)
      FF_RETURN_IF_ERROR(Delete(profile.id));
    return OkStatus();
  });
  FF_RETURN_IF_ERROR(done);
  for (const SpooledProfile& profile : old)
    Count(profile, -1);
  return old;
}

Backlog Spool::BacklogOf(const std::string& backend) {
  const MutexLock lock(&mutex_);
  const auto total = totals_.find(backend);
  if (total == totals_.end() || !connection_) return {};
  Backlog backlog = total->second;
  old_.BindText(1, backend);
  const Result<bool> row = old_.Step();
  if (row.ok() && *row) backlog.oldest_ns = old_.Int(3);
  old_.Reset();
  return backlog;
}

bool Spool::IsDamaged() const {
  const MutexLock lock(&mutex_);
  return damaged_;
}

std::set<std::string> Spool::Backends() const {
  const MutexLock lock(&mutex_);
  std::set<std::string> names;
  for (const auto& [name, total] : totals_) {
    if (total.profiles > 0) names.insert(name);
  }
  return names;
}

}  // namespace flamefleet::agent
