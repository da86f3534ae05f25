// SPDX-License-Identifier: Apache-2.0
#include "agent/push/pusher.h"

#include <set>
#include <utility>

#include "agent/push/push_request.h"
#include "agent/push/split_push.h"
#include "base/log.h"
#include "base/reasons.h"
#include "base/thread.h"

namespace flamefleet::agent {
namespace {

// Of one transaction, on a disk that is slow.
constexpr std::chrono::minutes kStoreLimit{2};
// How often lanes are looked through for what is too old.
constexpr std::chrono::seconds kSweepInterval{10};
// How long the spool is left alone after it could not be written.
constexpr std::chrono::seconds kSpoolPause{1};
// Profiles of a removed backend that go in one transaction.
constexpr int kRemoveBatch = 1000;

std::unique_ptr<Spool> OrInMemory(std::unique_ptr<Spool> spool) {
  if (spool != nullptr) return spool;
  auto memory = Spool::Open({});
  FF_CHECK(memory.ok());
  return *std::move(memory);
}

}  // namespace

Pusher::Pusher(const LaneOptions& options, std::unique_ptr<Spool> spool, Metrics* metrics,
               DeliveryObserver* observer)
    : options_(options),
      clock_(SystemClock()),
      ledger_(metrics, observer),
      spool_(OrInMemory(std::move(spool))) {
  ledger_.Recovered(spool_->Profiles());
  Settled();
  writer_ =
      StartThread("ff-spool", [this](const std::stop_token& stop) { StoreUntilStopped(stop); });
}

Pusher::~Pusher() {
  writer_.request_stop();
  writer_.join();  // what was pending is in the spool
  std::map<std::string, std::shared_ptr<Lane>> lanes;
  {
    const MutexLock lock(&mutex_);
    lanes.swap(lanes_);
  }
  lanes.clear();
  if (!spool_->survives()) ledger_.Lost(spool_->Profiles(), reasons::kAgentStopped);
  if (!spool_->survives()) ledger_.ShowWaiting(0, 0);
}

Status Pusher::SetBackends(const std::vector<BackendConfig>& backends) {
  Status status = OkStatus();
  std::set<std::string> gone = spool_->Backends();
  std::vector<std::shared_ptr<Lane>> stopped;  // joined without the lock
  std::vector<std::pair<std::shared_ptr<Lane>, const BackendConfig*>> changed;
  {
    const MutexLock lock(&mutex_);
    std::map<std::string, std::shared_ptr<Lane>> wanted;
    for (const BackendConfig& config : backends) {
      std::shared_ptr<Lane>& lane = wanted[config.name];
      if (const auto known = lanes_.find(config.name); known != lanes_.end()) {
        lane = known->second;
      } else {
        lane = std::make_shared<Lane>(config.name, options_, *spool_, ledger_, push_progress_,
                                      clock_, [this] { Settled(); });
      }
      changed.emplace_back(lane, &config);
    }
    for (auto& [name, lane] : lanes_) {
      if (wanted.contains(name)) continue;
      gone.insert(name);
      stopped.push_back(std::move(lane));
    }
    for (const auto& [name, lane] : wanted)
      gone.erase(name);
    lanes_ = std::move(wanted);
  }
  for (const auto& [lane, config] : changed) {
    if (const Status configured = lane->Configure(*config); !configured.ok()) status = configured;
  }
  for (const auto& lane : stopped)
    lane->Stop();  // the writer may have it too just now
  for (const std::string& name : gone)
    RemoveBackend(name);
  return status;
}

void Pusher::RemoveBackend(const std::string& name) {
  for (;;) {
    const auto removed = spool_->RemoveOlder(name, INT64_MAX, kRemoveBatch);
    if (!removed.ok() || removed->empty()) break;
    ledger_.Dropped(*removed, reasons::kNoBackend, "the backend was removed");
  }
  Settled();
}

void Pusher::Push(const FinishedProfile& profile) {
  ledger_.Produced(1);
  SpooledProfile spooled = TakeSpare();
  spooled.collection = profile.collection;
  spooled.backend = profile.backend;
  spooled.time_ns = profile.time_ns;
  spooled.raw_bytes = UncompressedBytes(profile.pprof);
  EncodePushRequest(profile, &spooled.body);
  spooled.bytes = static_cast<int64_t>(spooled.body.size());
  std::vector<SpooledProfile> full;
  std::shared_ptr<Lane> lane;
  {
    const MutexLock lock(&mutex_);
    if (const auto known = lanes_.find(profile.backend); known != lanes_.end()) {
      lane = known->second;
      pending_bytes_ += spooled.bytes;
      pending_.push_back(std::move(spooled));
      while (pending_bytes_ > kMaxPendingBytes) {
        pending_bytes_ -= pending_.front().bytes;
        full.push_back(std::move(pending_.front()));
        pending_.erase(pending_.begin());
      }
      changed_.SignalAll();
    }
  }
  if (lane == nullptr) {
    ledger_.Dropped(spooled, reasons::kNoBackend,
                    "backend '" + profile.backend + "' is not known to this agent");
    return;
  }
  ledger_.Dropped(full, reasons::kQueueFull, "the disk of the spool does not keep up");
  if (const auto trouble = lane->trouble())
    ledger_.Delayed(profile.collection, trouble->reason, trouble->message);
  Settled();
}

// One whose strings have memory, if there is one.
SpooledProfile Pusher::TakeSpare() {
  const MutexLock lock(&mutex_);
  if (spare_.empty()) return {};
  SpooledProfile spare = std::move(spare_.back());
  spare_.pop_back();
  return spare;
}

// Of what the spool has taken. It empties `batch`.
void Pusher::KeepSpare(std::vector<SpooledProfile>& batch) {
  for (SpooledProfile& profile : batch) {
    if (spare_.size() == kMaxSpare) break;
    if (profile.body.capacity() <= kMaxKeptBuffer) spare_.push_back(std::move(profile));
  }
  batch.clear();
}

// All that came; nothing when the time for a sweep has come, or at the end.
void Pusher::AwaitPending(const std::stop_token& stop, std::vector<SpooledProfile>* batch) {
  const std::stop_callback wake(stop, [this] {
    const MutexLock lock(&mutex_);
    changed_.SignalAll();
  });
  const MutexLock lock(&mutex_);
  if (pending_.empty() && !stop.stop_requested()) WaitFor(changed_, mutex_, kSweepInterval);
  pending_.swap(*batch);
  pending_bytes_ = 0;
  storing_ = static_cast<int64_t>(batch->size());
}

void Pusher::StoreUntilStopped(const std::stop_token& stop) {
  auto next_sweep = std::chrono::steady_clock::now() + kSweepInterval;
  std::vector<SpooledProfile> batch;
  Lanes lanes;
  for (;;) {
    AwaitPending(stop, &batch);
    if (spool_->IsDamaged()) StartOver(DataLossError("read the spool: its file is damaged"));
    while (!batch.empty() && !Store(batch)) {
      if (!WaitForStop(stop, kSpoolPause)) continue;
      ledger_.Dropped(batch, reasons::kAgentStopped, "the spool could not be written");
      batch.clear();
    }
    {
      const MutexLock lock(&mutex_);
      KeepSpare(batch);
      storing_ = 0;
      if (stop.stop_requested() && pending_.empty()) return;
    }
    ForEachLane(lanes, &Lane::Wake);
    Settled();
    if (std::chrono::steady_clock::now() < next_sweep) continue;
    ForEachLane(lanes, &Lane::Sweep);
    next_sweep = std::chrono::steady_clock::now() + kSweepInterval;
  }
}

bool Pusher::Store(std::vector<SpooledProfile>& batch) {
  const Progress::Work work(spool_progress_, kStoreLimit);
  const auto refused = spool_->Append(batch);
  if (refused.ok()) {
    if (std::exchange(spool_failing_, false)) Log(LogLevel::kInfo, "spool works again", {});
    ledger_.Dropped(*refused, reasons::kQueueFull, "the spool is full");
    return true;
  }
  if (refused.status().code() == StatusCode::kDataLoss) {
    StartOver(refused.status());
    return false;
  }
  if (!std::exchange(spool_failing_, true)) {
    Log(LogLevel::kError, "spool cannot be written, profiles wait in memory",
        {{"error", refused.status()}});
  }
  return false;
}

void Pusher::StartOver(const Status& why) {
  Log(LogLevel::kError, "spool is damaged, beginning a new one", {{"error", why}});
  int64_t lost = 0;
  const Status begun = spool_->StartOver(&lost);
  ledger_.Lost(lost, reasons::kSpoolDamaged);
  if (!begun.ok()) Log(LogLevel::kError, "no new spool yet", {{"error", begun}});
}

// Calls `action` of each lane without the lock: it may wait for the disk. `lanes` is for its
// memory.
void Pusher::ForEachLane(Lanes& lanes, void (Lane::*action)()) {
  {
    const MutexLock lock(&mutex_);
    for (const auto& [name, lane] : lanes_)
      lanes.push_back(lane);
  }
  for (const auto& lane : lanes)
    ((*lane).*action)();
  lanes.clear();
}

void Pusher::Settled() {
  const MutexLock show(&show_mutex_);
  const MutexLock lock(&mutex_);
  const auto pending = static_cast<int64_t>(pending_.size());
  ledger_.ShowWaiting(spool_->Profiles() + pending + storing_, spool_->Bytes() + pending_bytes_);
  changed_.SignalAll();
}

bool Pusher::Drain(std::chrono::nanoseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const MutexLock lock(&mutex_);
  while (!pending_.empty() || storing_ > 0 || spool_->Profiles() > 0) {
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left <= left.zero()) return false;
    WaitFor(changed_, mutex_, left);
  }
  return true;
}

Status Pusher::CheckProgress() const {
  FF_RETURN_IF_ERROR(spool_progress_.Check());
  return push_progress_.Check();
}

std::map<std::string, Backlog> Pusher::Backlogs() {
  const int64_t fresh_since_ns = clock_.WallNanos() - options_.fresh_ns;
  std::map<std::string, Backlog> backlogs;
  for (const std::string& name : spool_->Backends()) {
    const Backlog backlog = spool_->BacklogOf(name);
    if (backlog.profiles > 0 && backlog.oldest_ns < fresh_since_ns) backlogs[name] = backlog;
  }
  return backlogs;
}

}  // namespace flamefleet::agent
