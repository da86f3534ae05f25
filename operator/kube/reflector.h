// SPDX-License-Identifier: Apache-2.0
// Reflector: keeps a sink equal to what the API server has of one kind, by list and watch.
//
// Where the server can, one watch that begins with the list (WatchList); else a list in pages, then
// a watch from its version. Both lists are the server's newest state, never a cache's that may be
// older than what we saw. A watch that ends is opened again at the last version seen, bookmarks
// included. A new list is asked for when the server no longer has that version, has not seen it
// yet, or says nothing in two watches.
//
// Thread: Run on one thread, which is also the one that calls the sink; synced() and seen_version()
// from any.
// Bounds: one object is in memory at a time; waits of Backoff up to kMaxBackoff or what the server
// asks for; a watch that is silent for idle_timeout is dead.
// Errors: none; each failure is counted, logged when it begins, and tried again. An object that the
// sink cannot read is skipped and counted; its name is logged once.
// Source:
// https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "base/status.h"
#include "operator/kube/object_sink.h"
#include "operator/kube/rest_client.h"
#include "operator/kube/stream_parser.h"

namespace flamefleet {

struct ReflectorOptions {
  Resource resource;
  std::string ns;              // empty: of the cluster
  std::string label_selector;  // empty: all
  std::string field_selector;  // empty: all
  bool metadata_only = false;  // the sink needs nothing else of the objects
  int page_size = 500;
  // Seconds that one watch lasts at the server: at random between this and a quarter more.
  std::chrono::seconds watch_timeout{300};
  // A watch that is silent for so long is dead: the server sends a bookmark about once a minute.
  std::chrono::seconds idle_timeout{150};
  // The wait after the first failure in a row.
  std::chrono::milliseconds first_backoff{800};
};

class Reflector {
 public:
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
  // The version up to which the sink has seen everything; empty before the first list.
  std::string seen_version() const {
    MutexLock lock(&mutex_);
    return seen_;
  }
  const Resource& resource() const { return options_.resource; }

 private:
  struct Outcome {
    Status status;                             // why it did not go well: back off, then go on
    bool relist = false;                       // with a new list instead of a watch
    std::chrono::milliseconds retry_after{0};  // what the server asked for
  };

  // By WatchList or in pages.
  Outcome Fill(const std::stop_token& stop);
  Outcome List(const std::stop_token& stop);
  RestClient::StreamResult ListPage(const std::stop_token& stop);
  // `filling`: it begins with the list.
  Outcome Watch(bool filling, const std::stop_token& stop);
  Outcome EndOfWatch(const RestClient::StreamResult& result, std::chrono::nanoseconds lasted);
  Outcome EndOfFilling(const RestClient::StreamResult& result);
  Outcome FailureOf(const RestClient::StreamResult& result) const;
  Status HandleEvent(const WatchEvent& event);
  Status Upsert(const ServerObject& object);
  void Filled(const std::string& version);
  void See(const std::string& version);
  void SkipUnreadable(const ServerObject& object, const Status& why);
  void Report(const Status& status);
  std::string Query(const std::string& parameters) const;

  RestClient& client_;
  const ReflectorOptions options_;
  ObjectSink& sink_;
  const Clock& clock_;
  Backoff backoff_;
  bool watch_list_ = true;      // the server may have it
  bool whole_list_ = false;     // the next list is not in pages: their token expired
  std::string continue_token_;  // of the list in progress; empty: it begins anew
  std::string version_;         // resourceVersion that the next watch starts from
  // Of the watch in progress.
  bool filling_ = false;
  int64_t events_ = 0;
  std::optional<Outcome> ended_;  // by an event

  int silent_watches_ = 0;                 // in a row
  StatusCode reported_ = StatusCode::kOk;  // of the failure that was logged last
  std::set<std::string> unreadable_;       // names that were logged, at most kMaxUnreadableNames
  std::atomic<bool> synced_ = false;
  mutable Mutex mutex_;
  std::string seen_ FF_GUARDED_BY(mutex_);  // version_, once the sink has seen it
  CounterMetric lists_, watches_, failures_, unreadable_objects_;
};

}  // namespace flamefleet
