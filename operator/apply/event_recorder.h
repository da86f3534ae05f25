// SPDX-License-Identifier: Apache-2.0
// EventRecorder: says on an object what its owner should know (events.k8s.io/v1: `kubectl
// describe`, `kubectl get events`).
//
// Reconciles say the same thing again and again; what is the same in object, type, reason and
// action is one event, as long as its note is the same too, which the server lets nobody change. It
// is written when it is first said, then as a series (count, last time) each kRefresh: often enough
// to outlive the server's time to live of an hour while it is true. So a caller need not remember
// what it said.
//
// Thread: Record from any, it does not block; one thread inside, `events`, writes.
// Bounds: kMaxSeries known events; per object kObjectBurst writes at once and one per
// kObjectInterval in the long run; kMaxTries per write; texts as long as the API server allows.
// What is beyond is dropped and counted. Nothing is written twice because it is late: a newer note
// replaces an older one.
// Errors: none; a failed write is tried again with back-off, then dropped, counted and logged.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "operator/api/kinds.h"
#include "operator/kube/rest_client.h"
#include "operator/runtime/token_bucket.h"

namespace flamefleet {

struct EventText {
  bool warning = false;
  std::string reason;  // CamelCase, from a closed set, at most 128 bytes
  std::string action;  // CamelCase, what was tried: "Profile", "Apply"; at most 128 bytes
  std::string note;    // for people; cut at kMaxNote
};

class EventRecorder {
 public:
  static constexpr size_t kMaxSeries = 4096;
  static constexpr size_t kMaxNote = 1024;
  static constexpr int kObjectBurst = 25;
  static constexpr std::chrono::minutes kObjectInterval{5};
  static constexpr std::chrono::minutes kRefresh{30};
  // A series that was not said again for so long is over.
  static constexpr std::chrono::hours kForget{1};
  static constexpr int kMaxTries = 12;

  // References outlive this object. `instance` names this process, at most 128 bytes.
  EventRecorder(RestClient& client, const Clock& clock, Metrics& metrics, std::string instance);
  ~EventRecorder();  // what is not written yet is dropped
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;

  void Record(const Resource& resource, const api::ObjectMeta& about, EventText text);

 private:
  struct Series;
  struct Object;
  // What one write needs; a copy, as the lock is not held while it is sent.
  struct Write {
    std::string object;
    std::string series;
    std::string ns;
    std::string name;
    std::string body;
  };

  void Run(const std::stop_token& stop);
  bool NextWrite(Write& write);
  void Written(const Write& write, const Status& status);
  // The series of this event, made if need be; nullptr: there are too many.
  Series* Find(const Resource& resource, const api::ObjectMeta& about, const EventText& text,
               int64_t now_ns) FF_REQUIRES(mutex_);
  void ForgetOld(int64_t now_ns) FF_REQUIRES(mutex_);

  RestClient& client_;
  const Clock& clock_;
  const std::string instance_;
  Mutex mutex_;
  CondVar changed_;
  std::map<std::string, Object> objects_ FF_GUARDED_BY(mutex_);  // by resource and UID
  size_t known_ FF_GUARDED_BY(mutex_) = 0;                       // series of all objects
  CounterMetric written_, repeated_, dropped_full_, dropped_rate_, dropped_failed_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace flamefleet
