// SPDX-License-Identifier: Apache-2.0
// Spool: the profiles that wait for their backends, in one SQLite file, so that they survive the
// agent: a crash, a kill, an update of its pod.
//
//   profile (id, backend, errors, time_ns, spread_ns, pod_uid, container, type, raw_bytes, body)
//   body: a PushRequest
//
// Appended is committed: it outlives the process. It outlives a power cut once SQLite has synced
// its log, which it does every few MiB (WAL, synchronous = NORMAL); what is lost then is the
// newest, whole, and never makes the rest unreadable.
//
// Thread: any; internally locked. A profile that was taken is not handed out again, and not
// evicted,
//         until it is removed, replaced or released.
// Bounds: max_bytes of the file's used pages; beyond, the oldest of all backends go. One profile
//         takes at most a quarter of it.
// Errors: Open: kAlreadyExists another agent has the spool open. Otherwise those of
// SqliteConnection;
//         after an error nothing has changed. kDataLoss: StartOver.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/types.h"
#include "base/fd.h"
#include "base/mutex.h"
#include "base/sqlite.h"
#include "base/status.h"

namespace flamefleet::agent {

struct SpoolOptions {
  std::string directory;  // made when it is missing; empty: in memory, gone with the process
  int64_t max_bytes = 16 << 20;
};

struct SpooledProfile {
  int64_t id = 0;  // rises in the order of arrival; given by Append
  CollectionKey collection;
  std::string backend;
  int64_t time_ns = 0;          // of the profile, wall clock
  int64_t spread_ns = 1 << 20;  // times from time_ns on that no other profile of its series has
  int errors = 0;               // of the backend that may be the profile's fault
  int64_t raw_bytes = 0;        // of the profile, uncompressed
  std::string body;             // PushRequest; a retry sends the same bytes
  int64_t bytes = 0;            // of the body, also where it is left out
};

// What waits for a backend, those being sent included.
struct Backlog {
  int64_t profiles = 0;
  int64_t bytes = 0;      // of bodies
  int64_t oldest_ns = 0;  // time of the oldest; 0: none
};

class Spool {
 public:
  static constexpr const char* kFileName = "spool.db";

  // A damaged file is deleted, which `damaged` tells, if it is not null.
  static Result<std::unique_ptr<Spool>> Open(const SpoolOptions& options, bool* damaged = nullptr);

  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  // Keeps them all, in one transaction, and gives them ids. Hands back (without bodies) what had no
  // place: older ones, or one of these that is too large by itself.
  Result<std::vector<SpooledProfile>> Append(std::vector<SpooledProfile>& profiles);

  // The newest of a backend that is not older than `since_ns`; false: there is none. What `profile`
  // has already gives its memory.
  Result<bool> TakeNewest(const std::string& backend, int64_t since_ns, SpooledProfile* profile);
  // The oldest of a backend; those with errors come last.
  Result<bool> TakeOldest(const std::string& backend, SpooledProfile* profile);

  // What becomes of a taken profile. One that cannot be deleted now counts as removed, is not
  // handed out again, and is deleted later. kNotFound: StartOver lost it meanwhile.
  Status Remove(const SpooledProfile& profile);
  Status Release(const SpooledProfile& profile);  // with its `errors`
  // Others come in its place, in one transaction.
  Status Replace(const SpooledProfile& profile, std::vector<SpooledProfile>& parts);

  // Removes those older than `before_ns`, at most `limit`, and hands them back without bodies.
  Result<std::vector<SpooledProfile>> RemoveOlder(const std::string& backend, int64_t before_ns,
                                                  int limit);
  // Whether reading or changing the file has met damage.
  bool IsDamaged() const;
  // Deletes a file that turned out to be damaged and begins anew. `lost`: profiles that were in it,
  // without those that are taken. After an error there is no spool until Append can make one.
  Status StartOver(int64_t* lost);

  Backlog BacklogOf(const std::string& backend);
  std::set<std::string> Backends() const;
  // These two do not wait for the disk.
  int64_t Profiles() const { return profiles_; }
  int64_t Bytes() const { return bytes_; }
  bool survives() const { return !options_.directory.empty(); }

 private:
  explicit Spool(SpoolOptions options) : options_(std::move(options)) {}

  Status CheckOpen() const FF_REQUIRES(mutex_);
  Status OpenFile() FF_REQUIRES(mutex_);
  Status PrepareFile() FF_REQUIRES(mutex_);
  void CloseFile() FF_REQUIRES(mutex_);
  void DeleteFiles() FF_REQUIRES(mutex_);
  Status LoadTotals() FF_REQUIRES(mutex_);
  template <typename Work>
  Status Transact(Work work) FF_REQUIRES(mutex_);
  Status Insert(SpooledProfile& profile) FF_REQUIRES(mutex_);
  Status Delete(int64_t id) FF_REQUIRES(mutex_);
  int64_t RowBytes(const SpooledProfile& profile) const FF_REQUIRES(mutex_);
  // What is free then: less than `bytes` only when all that is left is being sent.
  Result<int64_t> MakeRoom(int64_t bytes, std::vector<SpooledProfile>& evicted) FF_REQUIRES(mutex_);
  Result<int64_t> UsedBytes() FF_REQUIRES(mutex_);
  Result<bool> TakeFirst(SqliteStatement& statement, const std::string& backend, int64_t since_ns,
                         SpooledProfile* profile) FF_REQUIRES(mutex_);
  // Remembers damage.
  Status Note(Status status) FF_REQUIRES(mutex_);
  Status DeleteLeftovers() FF_REQUIRES(mutex_);
  void Count(const SpooledProfile& profile, int sign) FF_REQUIRES(mutex_);

  const SpoolOptions options_;
  UniqueFd lock_file_;

  mutable Mutex mutex_;
  std::optional<SqliteConnection> connection_ FF_GUARDED_BY(mutex_);
  SqliteStatement begin_ FF_GUARDED_BY(mutex_);
  SqliteStatement commit_ FF_GUARDED_BY(mutex_);
  SqliteStatement insert_ FF_GUARDED_BY(mutex_);
  SqliteStatement delete_ FF_GUARDED_BY(mutex_);
  SqliteStatement release_ FF_GUARDED_BY(mutex_);
  SqliteStatement newest_ FF_GUARDED_BY(mutex_);
  SqliteStatement oldest_ FF_GUARDED_BY(mutex_);
  SqliteStatement old_ FF_GUARDED_BY(mutex_);
  SqliteStatement oldest_of_all_ FF_GUARDED_BY(mutex_);
  SqliteStatement page_count_ FF_GUARDED_BY(mutex_);
  SqliteStatement free_count_ FF_GUARDED_BY(mutex_);
  int64_t page_bytes_ FF_GUARDED_BY(mutex_) = 0;
  int64_t last_id_ FF_GUARDED_BY(mutex_) = 0;          // of all files
  std::vector<int64_t> taken_ FF_GUARDED_BY(mutex_);   // sorted; it keeps its memory
  std::set<int64_t> leftovers_ FF_GUARDED_BY(mutex_);  // of taken_: to be deleted
  bool damaged_ FF_GUARDED_BY(mutex_) = false;
  std::map<std::string, Backlog> totals_ FF_GUARDED_BY(mutex_);  // oldest_ns is not kept
  std::atomic<int64_t> profiles_ = 0;                            // of totals_, all
  std::atomic<int64_t> bytes_ = 0;
};

}  // namespace flamefleet::agent
