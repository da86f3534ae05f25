// SPDX-License-Identifier: Apache-2.0
#include "agent/push/lane.h"

#include <algorithm>
#include <utility>

#include "agent/push/split_push.h"
#include "base/log.h"
#include "base/reasons.h"
#include "base/thread.h"

namespace flamefleet::agent {
namespace {

// Part of a back-off that is random.
constexpr double kJitter = 0.5;
// How long a sender leaves a spool alone that cannot be read.
constexpr std::chrono::seconds kSpoolPause{5};
// Profiles that are swept in one transaction.
constexpr int kSweepBatch = 256;
// Beside the push itself: the spool's disk may be slow.
constexpr std::chrono::minutes kSettleLimit{2};

}  // namespace

Lane::Lane(std::string name, const LaneOptions& options, Spool& spool, DeliveryLedger& ledger,
           Progress& progress, const Clock& clock, std::function<void()> settled)
    : name_(std::move(name)),
      options_(options),
      spool_(spool),
      ledger_(ledger),
      progress_(progress),
      clock_(clock),
      settled_(std::move(settled)),
      circuit_(options.first_backoff, options.max_backoff, kJitter),
      backlog_(options.backlog_per_second) {
  for (int i = 0; i < kSenders; ++i) {
    senders_.push_back(
        StartThread("ff-push-" + std::to_string(i),
                    [this](const std::stop_token& stop) { SendUntilStopped(stop); }));
  }
}

Lane::~Lane() {
  Stop();
}

void Lane::Stop() {
  for (std::jthread& sender : senders_)
    sender.request_stop();
  senders_.clear();
}

Status Lane::Configure(const BackendConfig& config) {
  const MutexLock lock(&mutex_);
  if (config == config_) return OkStatus();
  config_ = config;
  client_ = nullptr;
  bytes_ = TokenBucket(config.bytes_per_second);
  circuit_.Reset();
  SetTrouble(nullptr);
  Status status = OkStatus();
  if (config.hold) {
    SetTrouble(std::make_shared<Trouble>(
        Trouble{reasons::kBackendUnauthorized,
                "the operator does not know the credentials of the backend yet"}));
  } else if (auto client = PushClient::Create(config, options_.push_timeout); client.ok()) {
    client_ = *std::move(client);
  } else {
    status = Annotate(client.status(), "backend " + config.name);
    SetTrouble(std::make_shared<Trouble>(
        Trouble{reasons::kBackendUnreachable, ErrorMessage(client.status())}));
  }
  ++wakes_;
  changed_.SignalAll();
  return status;
}

void Lane::Wake() {
  const MutexLock lock(&mutex_);
  ++wakes_;
  changed_.SignalAll();
}

std::shared_ptr<const Lane::Trouble> Lane::trouble() const {
  const MutexLock lock(&trouble_mutex_);
  return trouble_;
}

void Lane::SetTrouble(std::shared_ptr<const Trouble> trouble) {
  const MutexLock lock(&trouble_mutex_);
  trouble_ = std::move(trouble);
}

void Lane::Sweep() {
  int64_t window_ns = 0;
  {
    const MutexLock lock(&mutex_);
    window_ns = config_.ingestion_window_ns;
  }
  if (window_ns == 0) return;
  const auto old = spool_.RemoveOlder(name_, clock_.WallNanos() - window_ns, kSweepBatch);
  if (!old.ok() || old->empty()) return;
  ledger_.Dropped(*old, reasons::kExpired, "it waited longer than the backend's ingestion window");
  settled_();
}

void Lane::SendUntilStopped(const std::stop_token& stop) {
  Job job;  // one for all, for its memory
  while (NextJob(stop, &job)) {
    const Progress::Work work(progress_, options_.push_timeout + kSettleLimit);
    Send(job, stop);
    job.client = nullptr;
    if (job.profile.body.capacity() > kMaxKeptBuffer) job.profile.body = {};
  }
}

// The earliest time at which something may be taken.
SteadyTime Lane::MayTake(SteadyTime now) const {
  if (client_ == nullptr) return SteadyTime::max();
  const SteadyTime next = std::max(circuit_.NextSend(under_way_), bytes_.NextTake());
  return std::max({next, spool_rest_, now});
}

// The fresh ones first. `next`: when to look again if there is nothing.
Result<bool> Lane::Take(SteadyTime now, SteadyTime* next, SpooledProfile* profile) {
  *next = SteadyTime::max();
  const int64_t fresh_since_ns = clock_.WallNanos() - options_.fresh_ns;
  FF_ASSIGN_OR_RETURN(const bool fresh, spool_.TakeNewest(name_, fresh_since_ns, profile));
  if (fresh) return true;
  if (backlog_.NextTake() > now) {
    *next = backlog_.NextTake();
    return false;
  }
  FF_ASSIGN_OR_RETURN(const bool old, spool_.TakeOldest(name_, profile));
  if (old) backlog_.Take(now, 1);
  return old;
}

bool Lane::NextJob(const std::stop_token& stop, Job* job) {
  const std::stop_callback wake(stop, [this] { Wake(); });
  const MutexLock lock(&mutex_);
  while (!stop.stop_requested()) {
    const SteadyTime now = std::chrono::steady_clock::now();
    SteadyTime next = MayTake(now);
    if (next <= now) {
      const Result<bool> taken = Take(now, &next, &job->profile);
      if (taken.ok() && *taken) {
        bytes_.Take(now, job->profile.raw_bytes);
        ++under_way_;
        job->client = client_;
        job->begun = now;
        return true;
      }
      if (!taken.ok()) next = now + kSpoolPause;  // the writer says so in the log
    }
    if (next == SteadyTime::max()) {
      changed_.Wait(&mutex_);
    } else {
      WaitFor(changed_, mutex_, next - now);
    }
  }
  return false;
}

void Lane::Send(Job& job, const std::stop_token& stop) {
  int64_t window_ns = 0;
  int64_t max_bytes = 0;
  {
    const MutexLock lock(&mutex_);
    window_ns = config_.ingestion_window_ns;
    max_bytes = config_.max_profile_bytes;
  }
  Outcome outcome;
  if (window_ns != 0 && job.profile.time_ns < clock_.WallNanos() - window_ns) {
    outcome = {.kind = Outcome::Kind::kDrop,
               .reason = reasons::kExpired,
               .message = "it waited longer than the backend's ingestion window"};
  } else if (max_bytes != 0 && job.profile.raw_bytes > max_bytes) {
    outcome = {.kind = Outcome::Kind::kSplit,
               .reason = reasons::kProfileTooLarge,
               .message = "it is larger than the backend's maxProfileSize"};
  } else {
    outcome = job.client->Push(job.profile, stop);
    ledger_.Answered(std::chrono::steady_clock::now() - job.begun);
    if (stop.stop_requested() && outcome.kind != Outcome::Kind::kDelivered) {
      Release(job.profile);
      return;
    }
    NoteAnswer(job, outcome);
  }
  if (outcome.may_be_profile) ++job.profile.errors;
  Settle(job, outcome);
  const MutexLock lock(&mutex_);
  --under_way_;
  changed_.SignalAll();
}

void Lane::Settle(const Job& job, const Outcome& outcome) {
  const SpooledProfile& profile = job.profile;
  switch (outcome.kind) {
    case Outcome::Kind::kRetry:
      Release(profile);
      ledger_.Retried();
      ledger_.Delayed(profile.collection, outcome.reason, outcome.message);
      return;
    case Outcome::Kind::kSplit:
      Split(profile, outcome);
      return;
    case Outcome::Kind::kDrop:
      Drop(profile, outcome.reason, outcome.message);
      return;
    case Outcome::Kind::kDelivered:
      spool_.Remove(profile).IgnoreError();  // at worst it is sent again after a restart
      ledger_.Delivered(profile);
      settled_();
      return;
  }
}

void Lane::Split(const SpooledProfile& profile, const Outcome& outcome) {
  auto parts = SplitPush(profile);
  if (!parts.ok()) {
    Drop(profile, reasons::kProfileTooLarge, outcome.message + "; " + ErrorMessage(parts.status()));
    return;
  }
  const Status replaced = spool_.Replace(profile, *parts);
  if (replaced.ok()) {
    ledger_.Split(parts->size());
    settled_();
  } else {
    NoteSpool(replaced);
    Release(profile);
  }
}

void Lane::Release(const SpooledProfile& profile) {
  const Status released = spool_.Release(profile);  // without its count at worst
  if (released.code() == StatusCode::kNotFound) {
    ledger_.Dropped(profile, reasons::kSpoolDamaged, ErrorMessage(released));
    settled_();
  } else {
    NoteSpool(released);
  }
}

void Lane::NoteSpool(const Status& status) {
  if (status.ok()) return;
  const MutexLock lock(&mutex_);
  spool_rest_ = std::chrono::steady_clock::now() + kSpoolPause;
}

void Lane::Drop(const SpooledProfile& profile, std::string_view reason,
                const std::string& message) {
  spool_.Remove(profile).IgnoreError();
  ledger_.Dropped(profile, reason, message);
  settled_();
}

// What the answer says of the backend.
void Lane::NoteAnswer(const Job& job, const Outcome& outcome) {
  const MutexLock lock(&mutex_);
  if (client_ != job.client) return;  // of the settings before
  if (!outcome.back_off) {
    SetTrouble(nullptr);
    if (circuit_.Succeed()) {
      Log(LogLevel::kInfo, "backend takes profiles again", {{"backend", name_}});
    }
    return;
  }
  SetTrouble(std::make_shared<Trouble>(Trouble{outcome.reason, outcome.message}));
  if (circuit_.Fail(job.begun, std::chrono::steady_clock::now(), outcome.retry_after)) {
    Log(LogLevel::kWarn, "backend does not take profiles, will try again",
        {{"backend", name_}, {"endpoint", config_.endpoint}, {"error", outcome.message}});
  }
}

}  // namespace flamefleet::agent
