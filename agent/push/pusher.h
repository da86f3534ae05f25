// SPDX-License-Identifier: Apache-2.0
// Pusher: sends finished profiles to their backends by the Pyroscope push API. Nothing else in the
// agent opens a connection to a backend.
//
// A push blocks for about half a second on Pyroscope, so several are under way at once. What a
// backend does not take is sent again after a back-off with the same labels and time (see
// outcome.h). At any time: produced = delivered + dropped + waiting, in the metrics.
//
// Thread: Push, SetBackends and Drain from any. It owns kSenders threads, "ff-push-N", which call
// the observer.
// Bounds: the queue (push_queue.h); one profile being sent per sender.
// Errors: SetBackends: kInvalidArgument names the backend whose endpoint cannot be used; the others
//         are in force.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "agent/push/outcome.h"
#include "agent/push/push_queue.h"
#include "agent/types.h"
#include "base/backoff.h"
#include "base/http/client.h"
#include "base/metrics.h"
#include "base/mutex.h"

namespace flamefleet::agent {

// Told what became of the profiles of a collection. Called on the senders' threads.
class DeliveryObserver {
 public:
  DeliveryObserver() = default;
  DeliveryObserver(const DeliveryObserver&) = delete;
  DeliveryObserver& operator=(const DeliveryObserver&) = delete;
  virtual ~DeliveryObserver() = default;
  virtual void OnDelivered(const CollectionKey& collection) = 0;
  // The profile will be sent again, or is lost; `reason` from base/reasons.h.
  virtual void OnNotDelivered(const CollectionKey& collection, std::string_view reason,
                              const std::string& message) = 0;
};

struct BackendConfig {
  std::string name;
  std::string endpoint;  // http://host:port

  friend bool operator==(const BackendConfig&, const BackendConfig&) = default;
};

struct PusherOptions {
  size_t max_bytes = kMaxQueuedBytes;
  size_t max_profiles = kMaxQueuedProfiles;
  std::chrono::milliseconds first_backoff{500};
  std::chrono::milliseconds max_backoff{30'000};
};

class Pusher {
 public:
  // Pushes of one agent that are under way at once.
  static constexpr size_t kSenders = 4;

  // `metrics` and `observer` (may be null) must outlive it.
  Pusher(const PusherOptions& options, Metrics* metrics, DeliveryObserver* observer);
  // Stops; what still waits is counted as dropped, AgentStopped.
  ~Pusher();
  Pusher(const Pusher&) = delete;
  Pusher& operator=(const Pusher&) = delete;

  // Replaces the backends; the queue of one whose endpoint changed stays.
  Status SetBackends(const std::vector<BackendConfig>& backends);

  void Push(const FinishedProfile& profile);

  // Waits until everything is delivered or dropped; false when the time is over.
  bool Drain(std::chrono::nanoseconds timeout) { return queue_.AwaitEmpty(timeout); }

 private:
  struct Backend {
    std::string endpoint;
    std::shared_ptr<HttpClient> client;
    std::shared_ptr<Backoff> backoff;
    bool failing = false;
  };

  void SendUntilStopped(const std::stop_token& stop);
  void Send(QueuedPush push, const std::stop_token& stop);
  void Retry(QueuedPush push, const Outcome& outcome);
  std::chrono::milliseconds NoteFailure(const std::string& backend, const std::string& message);
  void NoteSuccess(const std::string& backend);
  void Drop(const QueuedPush& push, std::string_view reason, const std::string& message);
  void Drop(const std::vector<QueuedPush>& pushes, std::string_view reason,
            const std::string& message);
  void ShowQueue();
  std::shared_ptr<HttpClient> ClientOf(const std::string& backend);

  const PusherOptions options_;
  DeliveryObserver* const observer_;
  PushQueue queue_;

  CounterMetric produced_;
  CounterMetric delivered_;
  CounterMetric delivered_bytes_;
  CounterMetric retries_;
  std::map<std::string_view, CounterMetric> dropped_;  // by reason; constant after construction
  GaugeMetric waiting_;
  GaugeMetric waiting_bytes_;
  HistogramMetric seconds_;

  Mutex mutex_;
  std::map<std::string, Backend> backends_ FF_GUARDED_BY(mutex_);

  Mutex show_mutex_;  // the gauges show what the queue holds after the last change

  std::vector<std::jthread> senders_;  // last: joined first
};

}  // namespace flamefleet::agent
