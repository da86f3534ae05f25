// SPDX-License-Identifier: Apache-2.0
// LeaseRecord: what a coordination.k8s.io/v1 Lease says, to and from JSON, and when it is free.
//
// Thread: any; pure. Units: seconds; wall clock of its holder for the times, which nobody compares.
// Errors: kInvalidArgument JSON that is no Lease. A field that is missing or wrong is empty or 0,
// as anything may have been written there.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/status.h"

namespace flamefleet {

struct LeaseRecord {
  std::string holder;  // empty: nobody
  int64_t duration_seconds = 0;
  int64_t transitions = 0;
  std::string acquire_time;
  std::string renew_time;

  friend bool operator==(const LeaseRecord&, const LeaseRecord&) = default;
};

struct LiveLease {
  LeaseRecord record;
  std::string version;  // resourceVersion
};

Result<LiveLease> DecodeLease(const std::string& text);

// The Lease with this record; `version` empty: to be created.
std::string EncodeLease(const std::string& ns, const std::string& name, const LeaseRecord& record,
                        const std::string& version);

// metav1.MicroTime: RFC 3339 with exactly six digits.
std::string FormatMicroTime(int64_t wall_ns);

// True when a record that was last seen to change `unchanged_for` ago may be taken over. Its own
// duration counts, not ours; one without a duration is judged by `fallback`.
bool IsFree(const LeaseRecord& record, std::chrono::nanoseconds unchanged_for,
            std::chrono::nanoseconds fallback);

}  // namespace flamefleet
