// SPDX-License-Identifier: Apache-2.0
// ScrapeJob: one pprof endpoint of one pod that is pulled again and again.
//
// Units: nanoseconds where not said.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "agent/types.h"
#include "base/http/fetch.h"
#include "base/status.h"

namespace flamefleet::agent {

struct ScrapeJob {
  CollectionKey key;
  std::string address;  // pod IP
  uint16_t port = 0;
  std::string path;
  std::optional<FetchTls> tls;                    // absent: plain HTTP
  std::map<std::string, std::string> parameters;  // of the query, not encoded
  std::chrono::milliseconds interval{15'000};
  std::chrono::milliseconds timeout{10'000};
  std::string backend;
  Labels labels;

  friend bool operator==(const ScrapeJob&, const ScrapeJob&) = default;
};

// Whether both read the same thing: deltas go on from one to the other.
bool SameEndpoint(const ScrapeJob& a, const ScrapeJob& b);

// Where else the profile may be served when nothing is at job.path: Go had no allocs before 1.11,
// and other languages have heap alone.
std::optional<std::string> FallbackPath(const ScrapeJob& job);

// godeltaprof's endpoints (delta_heap, delta_mutex, delta_block) serve what happened since they
// were asked last.
bool ServesDeltas(const ScrapeJob& job);

// The time a CPU profile covers: the interval less a second, at least one.
std::chrono::seconds CpuSeconds(const ScrapeJob& job);

// The request of the job: query built from the parameters ("seconds" is ours for cpu), the timeout
// of a CPU profile counted from its end. `at_fallback`: at its FallbackPath, which it has.
FetchOptions FetchOptionsOf(const ScrapeJob& job, bool at_fallback = false);

// When the first scrape is due after the job came, spread over the interval by the job's identity.
std::chrono::milliseconds FirstDelay(const ScrapeJob& job);

// The target that a redirect asks for, on the same scheme, host and port; else nothing: what is on
// this node is not asked in the name of a pod.
std::optional<std::string> RedirectTarget(const FetchOptions& asked, const FetchResponse& answer);

// Why a scrape gave no profile.
struct ScrapeFailure {
  std::string_view reason;  // of base/reasons.h
  std::string message;
  bool is_absent = false;  // the program does not serve this type
};
// How long a job rests, beside its interval, after so many such failures in a row: a type that is
// absent is looked for seldom, and a CPU that somebody else profiles is left to them for longer and
// longer.
constexpr std::chrono::minutes kMaxRest{5};
std::chrono::milliseconds RestAfter(const ScrapeFailure& failure, int failures,
                                    std::chrono::milliseconds interval);

ScrapeFailure FailureOfFetch(const Status& status);
ScrapeFailure FailureOfAnswer(const FetchResponse& response);  // its status is not 200
ScrapeFailure FailureOfDecode(const Status& status);

}  // namespace flamefleet::agent
