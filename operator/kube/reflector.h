// SPDX-License-Identifier: Apache-2.0
// Reflector: keeps a sink equal to what the API server has of one kind, by list and watch.
//
// A list without a resourceVersion, in pages (never older than what we saw before), then one watch
// from its version. A watch that ends is opened again at the last version seen, bookmarks included;
// a version that the server no longer has means a new list. What was not in a new list is deleted
// from the sink only when that list is complete.
//
// Thread: Run on one thread, which is also the one that calls the sink; synced() from any.
// Bounds: pages of page_size objects, of which one is in memory at a time; waits of Backoff up to
// kMaxBackoff or what the server asks for; a watch that is silent for idle_timeout is dead.
// Errors: none; each failure is counted, logged when it begins, and tried again. An object that the
// sink cannot read is skipped and counted; its name is logged once.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <stop_token>
#include <string>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/status.h"
#include "operator/kube/object_sink.h"
#include "operator/kube/rest_client.h"

namespace flamefleet {

struct ReflectorOptions {
  Resource resource;
  std::string ns;              // empty: of the cluster
  std::string label_selector;  // empty: all
  int page_size = 500;
  // Seconds that one watch lasts at the server: at random between this and a quarter more.
  std::chrono::seconds watch_timeout{300};
  // A watch that is silent for so long is dead: the server sends a bookmark about once a minute.
  std::chrono::seconds idle_timeout{150};
};

class Reflector {
 public:
  static constexpr std::chrono::milliseconds kFirstBackoff{800};
  static constexpr std::chrono::milliseconds kMaxBackoff{30'000};
  static constexpr std::chrono::seconds kPageTimeout{60};
  // A watch that ends sooner without an event was refused in disguise.
  static constexpr std::chrono::seconds kShortestWatch{1};

  // References outlive this object.
  Reflector(RestClient& client, ReflectorOptions options, ObjectSink& sink, const Clock& clock,
            Metrics& metrics);

  void Run(const std::stop_token& stop);
  // The sink has been filled once.
  bool synced() const { return synced_; }

 private:
  struct Outcome {
    Status status;                             // why it did not go well: back off, then go on
    bool relist = false;                       // with a new list instead of a watch
    std::chrono::milliseconds retry_after{0};  // what the server asked for
  };

  Outcome List(const std::stop_token& stop);
  RestClient::StreamResult ListPage(const std::string& continue_token, const std::stop_token& stop,
                                    std::string& envelope);
  Outcome Watch(const std::stop_token& stop);
  Outcome FailureOf(const RestClient::StreamResult& result) const;
  Status HandleEvent(std::string_view text, Outcome& ended);
  void SkipUnreadable(const nlohmann::json& object, const Status& why);
  void Report(const Status& status);
  std::string Query(const std::string& parameters) const;

  RestClient& client_;
  const ReflectorOptions options_;
  ObjectSink& sink_;
  const Clock& clock_;
  Backoff backoff_{kFirstBackoff, kMaxBackoff, /*jitter=*/1.0};
  std::string version_;                    // resourceVersion that the next watch starts from
  StatusCode reported_ = StatusCode::kOk;  // of the failure that was logged last
  std::set<std::string> unreadable_;       // names that were logged, at most kMaxUnreadableNames
  int64_t events_ = 0;                     // of the watch in progress
  std::atomic<bool> synced_ = false;
  CounterMetric lists_, watches_, failures_, unreadable_objects_;
};

}  // namespace flamefleet
