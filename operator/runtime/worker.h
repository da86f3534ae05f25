// SPDX-License-Identifier: Apache-2.0
// Worker: takes keys from the queue and has the controller of each reconcile it.
//
// A key is "<controller>/<name>". Reconcile is level-triggered: it gets a name, never an event,
// looks at everything as it is now, and may run again at any time.
//
// A key whose own last write the cache has not seen is put back, untouched (OwnWrites).
//
// Thread: Run on one thread; the controllers run on it. Bounds: one remembered message per key that
// fails. Errors: a failure is logged once per distinct message and tried again with the key's
// back-off; one that a retry does not help (see base/status.h) after kTerminalRetry.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/status.h"
#include "operator/runtime/own_writes.h"
#include "operator/runtime/work_queue.h"

namespace flamefleet {

class Controller {
 public:
  struct Outcome {
    std::chrono::nanoseconds recheck_after{0};  // 0: when something changes
    std::vector<std::string> concerns;          // other keys that depend on what was found
  };

  virtual ~Controller() = default;
  // The first part of its keys, and the value of the metric label `controller`.
  virtual std::string name() const = 0;
  virtual Result<Outcome> Reconcile(const std::string& object, const std::stop_token& stop) = 0;
};

class Worker {
 public:
  static constexpr std::chrono::minutes kTerminalRetry{5};
  // How often a key is looked at whose last write the cache has not seen yet.
  static constexpr std::chrono::milliseconds kUnseenRetry{100};
  // What another key's outcome concerns waits for more of them.
  static constexpr std::chrono::seconds kConcernDelay{1};

  // References outlive this object.
  Worker(WorkQueue& queue, OwnWrites& own_writes, const Clock& clock, Metrics& metrics);
  ~Worker();

  // Before Run.
  void Register(Controller& controller);

  void Run(const std::stop_token& stop);
  // One key that is due now; false when there is none.
  bool RunOnce(const std::stop_token& stop);

 private:
  struct Entry;

  void Process(const std::string& key, const std::stop_token& stop);
  void Fail(const std::string& key, const Status& why, Entry& entry);

  WorkQueue& queue_;
  OwnWrites& own_writes_;
  const Clock& clock_;
  Metrics& metrics_;
  std::map<std::string, std::unique_ptr<Entry>> controllers_;  // by name
  std::map<std::string, std::string> reported_;  // key to the failure that was logged last
};

}  // namespace flamefleet
