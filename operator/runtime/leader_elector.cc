// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/leader_elector.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/hex.h"
#include "base/log.h"
#include "base/thread.h"

namespace flamefleet {
namespace {

constexpr int kReleaseTries = 3;

std::string Seconds(std::chrono::nanoseconds duration) {
  return std::to_string(std::chrono::duration<double>(duration).count()) + " s";
}

}  // namespace

Status CheckLeaseOptions(const LeaseOptions& options) {
  if (options.lease_duration < std::chrono::seconds(1) ||
      options.lease_duration % std::chrono::seconds(1) != std::chrono::nanoseconds(0)) {
    return InvalidArgumentError("lease duration: want whole seconds, at least one");
  }
  if (options.renew_deadline >= options.lease_duration) {
    return InvalidArgumentError("renew deadline: want less than the lease duration, " +
                                Seconds(options.lease_duration));
  }
  if (options.retry_period.count() <= 0 ||
      options.retry_period * LeaderElector::kJitter >= options.renew_deadline) {
    return InvalidArgumentError("retry period: want less than the renew deadline over 1.2, " +
                                Seconds(options.renew_deadline));
  }
  return OkStatus();
}

std::string NewIdentity() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  std::random_device random;
  std::array<char, 8> bytes{};
  std::ranges::generate(bytes, [&] { return static_cast<char>(random()); });
  return std::string(host.data()) + "_" + ToHex({bytes.data(), bytes.size()});
}

LeaderElector::LeaderElector(RestClient& client, LeaseOptions options, const Clock& clock,
                             Metrics& metrics)
    : client_(client),
      options_(std::move(options)),
      clock_(clock),
      master_(metrics.Gauge("leader_election_master_status", "1 while this process leads.",
                            {{"name", options_.name}})),
      slow_path_(metrics.Counter("leader_election_slowpath_total",
                                 "Renewals for which the lease had to be read first.",
                                 {{"name", options_.name}})) {}

Status LeaderElector::Run(const std::stop_token& stop, const Lead& lead) {
  while (Acquire(stop)) {
    std::stop_source over;
    const std::stop_callback on_stop(stop, [&over] { over.request_stop(); });
    master_.Set(1);
    Status led;
    {
      const std::jthread renew =
          StartThread("lease", [this, &over](const std::stop_token& done) { Renew(done, over); });
      led = lead(over.get_token());
    }
    master_.Set(0);
    const bool held = leading();
    leads_until_ns_ = 0;
    if (held) Release();
    if (!led.ok()) return led;
  }
  return OkStatus();
}

Status LeaderElector::MayWrite() const {
  if (leading()) return OkStatus();
  return AbortedError("this process does not lead; " +
                      (holder().empty() ? "nobody does" : holder() + " holds the lease"));
}

std::string LeaderElector::holder() const {
  MutexLock lock(&mutex_);
  return holder_;
}

bool LeaderElector::Acquire(const std::stop_token& stop) {
  std::uniform_real_distribution<double> longer(1.0, 1.0 + kJitter);
  std::string waited_for;
  while (!stop.stop_requested()) {
    const Status held = TryHold(stop);
    if (held.ok()) {
      Log(LogLevel::kInfo, "leading",
          {{"lease", options_.name},
           {"identity", options_.identity},
           {"transitions", seen_.record.transitions}});
      reported_.clear();
      return true;
    }
    if (held.code() != StatusCode::kFailedPrecondition) {
      Report(held);
    } else if (std::exchange(waited_for, holder()) != holder()) {
      Log(LogLevel::kInfo, "standing by", {{"lease", options_.name}, {"holder", holder()}});
    }
    WaitForStop(stop, std::chrono::duration_cast<std::chrono::nanoseconds>(options_.retry_period *
                                                                           longer(random_)));
  }
  return false;
}

void LeaderElector::Renew(const std::stop_token& done, std::stop_source& over) {
  while (!WaitForStop(done, options_.retry_period)) {
    // Once the term is over it stays over, even if nobody else wanted the lease.
    const Status held = leading() ? TryHold(done) : DeadlineExceededError("renew deadline is over");
    if (held.ok()) {
      reported_.clear();
      continue;
    }
    if (done.stop_requested()) return;
    if (held.code() != StatusCode::kFailedPrecondition && leading()) {
      Report(held);
      continue;
    }
    leads_until_ns_ = 0;
    Log(LogLevel::kError, "no longer leading",
        {{"lease", options_.name}, {"holder", holder()}, {"error", held}});
    over.request_stop();
    return;
  }
}

Status LeaderElector::TryHold(const std::stop_token& stop) {
  // The holder renews without reading first.
  if (leading() && seen_.record.holder == options_.identity) {
    if (const Status renewed = Hold(stop); renewed.ok()) return renewed;
    slow_path_.Increment();
  }
  FF_RETURN_IF_ERROR(Read(stop));
  const std::chrono::nanoseconds unchanged_for(clock_.MonotonicNanos() - seen_since_ns_);
  if (seen_.record.holder != options_.identity &&
      !IsFree(seen_.record, unchanged_for, options_.lease_duration)) {
    return FailedPreconditionError("lease " + options_.name + ": held by " + seen_.record.holder);
  }
  return Hold(stop);
}

Status LeaderElector::Read(const std::stop_token& stop) {
  const Result<std::string> text = client_.Get(kLeases, options_.ns, options_.name, stop);
  if (text.status().code() == StatusCode::kNotFound) {
    // Whoever deleted it did not stop its holder: the record that we saw counts until it expires.
    seen_.version.clear();
    return OkStatus();
  }
  FF_RETURN_IF_ERROR(text.status());
  FF_ASSIGN_OR_RETURN(const LiveLease live, DecodeLease(*text));
  Observe(live);
  return OkStatus();
}

Status LeaderElector::Hold(const std::stop_token& stop) {
  const int64_t sent_ns = clock_.MonotonicNanos();
  FF_RETURN_IF_ERROR(Write(OwnRecord(), stop));
  leads_until_ns_ = sent_ns + options_.renew_deadline.count();
  return OkStatus();
}

Status LeaderElector::Write(const LeaseRecord& record, const std::stop_token& stop) {
  const std::string body = EncodeLease(options_.ns, options_.name, record, seen_.version);
  const Result<std::string> text =
      seen_.version.empty()
          ? client_.CreateObject(kLeases, options_.ns, options_.name, body, stop)
          : client_.ReplaceObject(kLeases, options_.ns, options_.name, body, stop);
  FF_RETURN_IF_ERROR(text.status());
  FF_ASSIGN_OR_RETURN(const LiveLease live, DecodeLease(*text));
  Observe(live);
  return OkStatus();
}

LeaseRecord LeaderElector::OwnRecord() const {
  LeaseRecord record = seen_.record;
  const std::string now = FormatMicroTime(clock_.WallNanos());
  if (record.holder != options_.identity) {
    record.holder = options_.identity;
    record.acquire_time = now;
    ++record.transitions;
  }
  record.duration_seconds =
      std::chrono::duration_cast<std::chrono::seconds>(options_.lease_duration).count();
  record.renew_time = now;
  return record;
}

void LeaderElector::Observe(const LiveLease& lease) {
  if (lease.record != seen_.record) {
    seen_since_ns_ = clock_.MonotonicNanos();
    MutexLock lock(&mutex_);
    holder_ = lease.record.holder;
  }
  seen_ = lease;
}

void LeaderElector::Release() {
  Status released;
  for (int tries = 0; tries < kReleaseTries; ++tries) {
    LeaseRecord free = seen_.record;
    free.holder.clear();
    free.duration_seconds = 1;
    free.renew_time = free.acquire_time = FormatMicroTime(clock_.WallNanos());
    released = Write(free, {});
    if (released.ok()) {
      Log(LogLevel::kInfo, "lease given back", {{"lease", options_.name}});
      return;
    }
    // Somebody touched it: whose is it now?
    if (!Read({}).ok() || seen_.version.empty() || seen_.record.holder != options_.identity) break;
  }
  Log(LogLevel::kWarn, "lease not given back: the next leader waits until it has expired",
      {{"lease", options_.name}, {"error", released}});
}

// Logged when it becomes another failure than before, not per try.
void LeaderElector::Report(const Status& status) {
  if (std::exchange(reported_, ErrorMessage(status)) == ErrorMessage(status)) return;
  Log(LogLevel::kWarn, "lease not held", {{"lease", options_.name}, {"error", status}});
}

}  // namespace flamefleet
