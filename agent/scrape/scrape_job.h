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

// The time a CPU profile covers: the interval less a second, at least one.
std::chrono::seconds CpuSeconds(const ScrapeJob& job);

// The request of the job: query built from the parameters ("seconds" is ours for cpu), the timeout
// of a CPU profile counted from its end.
FetchOptions FetchOptionsOf(const ScrapeJob& job);

// When the first scrape is due after the job came, spread over the interval by the job's identity.
std::chrono::milliseconds FirstDelay(const ScrapeJob& job);

// Why a scrape gave no profile.
struct ScrapeFailure {
  std::string_view reason;  // of base/reasons.h
  std::string message;
};
ScrapeFailure FailureOfFetch(const Status& status);
ScrapeFailure FailureOfAnswer(const FetchResponse& response);  // its status is not 200
ScrapeFailure FailureOfDecode(const Status& status);

}  // namespace flamefleet::agent
