// SPDX-License-Identifier: Apache-2.0
// LeaderElector: at most one of several processes leads, by a Lease of the API server, with the
// rules of client-go so that both can share one lease.
//
// Whether the holder of the lease is alive is judged by this process's own monotonic time since it
// last saw the record change, never by the times written in it: clocks of machines differ. The
// holder itself stops leading renew_deadline after it sent its last successful renewal, which is
// before anybody else may take over. There is no fencing: what passes MayWrite is on its way, so
// writes must be idempotent, and MayWrite is asked right before each of them
// (RestClientOptions::may_write). A process that was frozen finds its term over when it asks.
//
// Thread: Run from one thread; leading, holder and MayWrite from any. One thread inside, `lease`,
// while it leads. Units: monotonic time of the clock.
// Bounds: lease_duration > renew_deadline > retry_period * kJitter; tries come retry_period apart,
// up to kJitter times longer while another one leads.
// Errors: a failed try is logged when it begins to fail, and tried again.
// Source: client-go tools/leaderelection.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <random>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "base/status.h"
#include "operator/kube/rest_client.h"
#include "operator/runtime/lease_record.h"

namespace flamefleet {

struct LeaseOptions {
  std::string ns;
  std::string name;
  std::string identity;  // of this process, never of another one: see NewIdentity
  std::chrono::nanoseconds lease_duration = std::chrono::seconds(15);
  std::chrono::nanoseconds renew_deadline = std::chrono::seconds(10);
  std::chrono::nanoseconds retry_period = std::chrono::seconds(2);
};

// kInvalidArgument when the durations do not fit each other.
Status CheckLeaseOptions(const LeaseOptions& options);
// "<host name>_<random>"
std::string NewIdentity();

class LeaderElector {
 public:
  static constexpr double kJitter = 1.2;

  // References outlive this object. `client` is for it alone, so that nothing else delays a
  // renewal: with one try, and a timeout of at most half of renew_deadline.
  LeaderElector(RestClient& client, LeaseOptions options, const Clock& clock, Metrics& metrics);

  // Leads: returns soon after its token is stopped, which happens when the term is over or `stop`
  // is requested.
  using Lead = std::function<Status(const std::stop_token& term_over)>;
  // Waits for the lease and leads, again and again until `stop` is requested or `lead` fails by
  // itself. The lease is given back when `lead` has returned.
  Status Run(const std::stop_token& stop, const Lead& lead);

  bool leading() const { return clock_.MonotonicNanos() < leads_until_ns_; }
  // kAborted when this process does not lead now.
  Status MayWrite() const;
  // Who was last seen to hold the lease; empty: nobody.
  std::string holder() const;

 private:
  // One try to get or to keep the lease; kFailedPrecondition: another one holds it.
  Status TryHold(const std::stop_token& stop);
  Status Read(const std::stop_token& stop);
  // Writes our record over the one seen; OK: we lead from when it was sent.
  Status Hold(const std::stop_token& stop);
  Status Write(const LeaseRecord& record, const std::stop_token& stop);
  LeaseRecord OwnRecord() const;
  void Observe(const LiveLease& lease);
  bool Acquire(const std::stop_token& stop);
  // Until `done`; requests `over` when the lease could not be renewed in time.
  void Renew(const std::stop_token& done, std::stop_source& over);
  void Release();
  void Report(const Status& status);

  RestClient& client_;
  const LeaseOptions options_;
  const Clock& clock_;
  std::minstd_rand random_{std::random_device{}()};

  // Of Run and, while it leads, of `lease`.
  LiveLease seen_;             // as last read or written; without a version: there is none
  int64_t seen_since_ns_ = 0;  // when its record was first seen
  std::string reported_;       // the failure that was logged last

  std::atomic<int64_t> leads_until_ns_ = 0;
  mutable Mutex mutex_;
  std::string holder_ FF_GUARDED_BY(mutex_);
  GaugeMetric master_;
  CounterMetric slow_path_;
};

}  // namespace flamefleet
