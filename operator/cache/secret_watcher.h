// SPDX-License-Identifier: Apache-2.0
// SecretWatcher: the Secrets that ProfilingBackends name, and no others: each by a list and watch
// of its own with the field selector metadata.name, so that RBAC may be narrowed to those names.
//
// Thread: Listen and Start before Watch; Watch from one thread; Known from any; Stop after the last
// Watch. Threads inside: one per watched Secret, which call the listener.
// Bounds: kMaxSecrets; those beyond are not read, which is logged.
// Errors: none; a Secret that cannot be read is tried again and stays unknown until then.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "operator/api/secret.h"
#include "operator/kube/rest_client.h"

namespace flamefleet {

class SecretWatcher {
 public:
  static constexpr size_t kMaxSecrets = 32;

  // `ns` is the only namespace that is read.
  SecretWatcher(std::string ns, Metrics& metrics);
  ~SecretWatcher();
  SecretWatcher(const SecretWatcher&) = delete;
  SecretWatcher& operator=(const SecretWatcher&) = delete;

  // Called when what is known has changed.
  void Listen(std::function<void()> listener) { listener_ = std::move(listener); }
  void Start(RestClient& client, const Clock& clock);
  // Replaces the names; what is known of those that stay is kept.
  void Watch(const std::set<std::string>& names);
  void Stop();

  api::SecretMap Known() const;
  // Everything that is watched has been read once.
  bool synced() const;

 private:
  class Entry;
  void Changed(const std::string& name, std::shared_ptr<const api::Secret> secret);

  const std::string ns_;
  Metrics& metrics_;
  std::function<void()> listener_;
  RestClient* client_ = nullptr;
  const Clock* clock_ = nullptr;

  mutable Mutex mutex_;
  std::set<std::string> watched_ FF_GUARDED_BY(mutex_);
  api::SecretMap known_ FF_GUARDED_BY(mutex_);

  std::map<std::string, std::unique_ptr<Entry>> entries_;  // of the thread that calls Watch
};

}  // namespace flamefleet
