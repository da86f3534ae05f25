// SPDX-License-Identifier: Apache-2.0
// Store: the objects of one kind as the reflector last saw them, decoded to what we read of them.
//
// Thread: the ObjectSink part from the reflector's thread, the rest from any; locked by the mutex
// of the cache. What is handed out is immutable and lives as long as it is held.
// Bounds: one decoded object per object of the API server, during a new list too.
// Errors: an object that cannot be decoded is reported to the reflector and what was known of it
// stays, in a new list too: bad input must not look like a deletion.
#pragma once

#include <compare>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/metrics.h"
#include "base/mutex.h"
#include "base/status.h"
#include "operator/kube/object_sink.h"

namespace flamefleet {

struct ObjectKey {
  std::string ns;  // empty for cluster-scoped kinds
  std::string name;

  friend auto operator<=>(const ObjectKey&, const ObjectKey&) = default;
};

// T has `meta` of api::ObjectMeta and operator==.
template <typename T>
class Store : public ObjectSink {
 public:
  using Pointer = std::shared_ptr<const T>;
  using Decoder = std::function<Result<T>(const nlohmann::json& object)>;
  // Called on the reflector's thread after the store has changed, unlocked; nullptr: not there.
  // What decodes to the same as before is no change.
  using Listener = std::function<void(const T* before, const T* after)>;

  Store(Mutex& mutex, Decoder decode, GaugeMetric count)
      : mutex_(mutex), decode_(std::move(decode)), count_(count) {}

  // Before the reflector runs.
  void Listen(Listener listener) { listener_ = std::move(listener); }

  // nullptr when there is none.
  Pointer Get(const ObjectKey& key) const {
    MutexLock lock(&mutex_);
    const auto found = objects_.find(key);
    return found == objects_.end() ? nullptr : found->second.object;
  }

  // All, by namespace and name.
  std::vector<Pointer> List() const {
    MutexLock lock(&mutex_);
    std::vector<Pointer> all;
    all.reserve(objects_.size());
    for (const auto& [key, entry] : objects_)
      all.push_back(entry.object);
    return all;
  }

  std::vector<Pointer> ListNamespace(const std::string& ns) const {
    MutexLock lock(&mutex_);
    std::vector<Pointer> some;
    for (auto it = objects_.lower_bound({ns, ""}); it != objects_.end() && it->first.ns == ns;
         ++it) {
      some.push_back(it->second.object);
    }
    return some;
  }

  void BeginList() override { ++list_; }
  void EndList() override;
  Status Upsert(const nlohmann::json& object) override;
  void Delete(const std::string& ns, const std::string& name) override;

 private:
  struct Entry {
    Pointer object;
    uint64_t list = 0;  // the newest that told of it
  };

  static ObjectKey KeyOf(const T& object) { return {object.meta.ns, object.meta.name}; }
  // Puts `after` (nullptr: nothing) in the place of `key`.
  void Change(const ObjectKey& key, Pointer after);

  Mutex& mutex_;
  const Decoder decode_;
  GaugeMetric count_;
  Listener listener_;
  std::map<ObjectKey, Entry> objects_ FF_GUARDED_BY(mutex_);
  uint64_t list_ = 0;  // how many began; the reflector's thread only
};

// The key of an object that may be anything: parts that are missing are empty.
ObjectKey KeyOfJson(const nlohmann::json& object);

template <typename T>
void Store<T>::EndList() {
  std::vector<ObjectKey> gone;
  {
    MutexLock lock(&mutex_);
    for (const auto& [key, entry] : objects_) {
      if (entry.list != list_) gone.push_back(key);
    }
  }
  for (const ObjectKey& key : gone)
    Change(key, nullptr);
}

template <typename T>
Status Store<T>::Upsert(const nlohmann::json& object) {
  Result<T> decoded = decode_(object);
  if (!decoded.ok()) {
    MutexLock lock(&mutex_);
    if (const auto known = objects_.find(KeyOfJson(object)); known != objects_.end()) {
      known->second.list = list_;
    }
    return decoded.status();
  }
  ObjectKey key = KeyOf(*decoded);
  Change(key, std::make_shared<const T>(*std::move(decoded)));
  return OkStatus();
}

template <typename T>
void Store<T>::Delete(const std::string& ns, const std::string& name) {
  Change({ns, name}, nullptr);
}

template <typename T>
void Store<T>::Change(const ObjectKey& key, Pointer after) {
  Pointer before;
  {
    MutexLock lock(&mutex_);
    const auto known = objects_.find(key);
    if (known != objects_.end()) {
      known->second.list = list_;
      before = known->second.object;
    }
    if (before == after || (before && after && *before == *after)) return;
    if (after) {
      objects_[key] = {after, list_};
    } else {
      objects_.erase(known);
    }
    count_.Set(static_cast<double>(objects_.size()));
  }
  if (listener_) listener_(before.get(), after.get());
}

}  // namespace flamefleet
