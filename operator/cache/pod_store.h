// SPDX-License-Identifier: Apache-2.0
// PodStore: the pods of the cluster, pruned and packed, with an index by node.
//
// Thread, Errors: see Store. What is handed out is made for the caller.
// Bounds: one PackedPod per pod, during a new list too.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/metrics.h"
#include "base/mutex.h"
#include "operator/api/pod.h"
#include "operator/cache/packed_pod.h"
#include "operator/cache/store.h"
#include "operator/kube/object_sink.h"
#include "operator/kube/server_object.h"

namespace flamefleet {

class PodStore final : public ObjectSink {
 public:
  using Pointer = std::shared_ptr<const api::Pod>;
  // See Store::Listener.
  using Listener = std::function<void(const api::Pod* before, const api::Pod* after)>;

  PodStore(Mutex& mutex, GaugeMetric count) : mutex_(mutex), count_(count) {}

  // Before the reflector runs.
  void Listen(Listener listener) { listener_ = std::move(listener); }

  // nullptr when there is none.
  Pointer Get(const ObjectKey& key) const;
  // All of a namespace, by name.
  std::vector<Pointer> ListNamespace(const std::string& ns) const;
  // The pods scheduled to the node, by namespace and name.
  std::vector<Pointer> ListNode(const std::string& node) const;
  // Those of one namespace.
  std::vector<Pointer> ListNode(const std::string& node, const std::string& ns) const;
  // Nodes that have a pod.
  std::vector<std::string> Nodes() const;

  // What a reflector of one namespace fills: its lists say nothing of other namespaces. Each is
  // used from one thread; references this object.
  std::unique_ptr<ObjectSink> SinkOf(const std::string& ns);

  void BeginList() override { begun_ = NextList(); }
  void EndList() override { DropOlder("", begun_); }
  Status Upsert(const nlohmann::json& object) override;
  void Delete(const std::string& ns, const std::string& name) override;
  bool TakesMessages() const override { return true; }
  Status UpsertMessage(std::string_view message) override;

 private:
  struct KeyView {
    std::string_view ns;
    std::string_view name;
    friend auto operator<=>(const KeyView&, const KeyView&) = default;
  };
  struct Entry {
    PackedPod pod;
    mutable uint64_t list = 0;  // the newest that had begun when it was told
    KeyView Key() const { return {pod.ns.view(), pod.Name()}; }
  };
  struct ByKey {
    using is_transparent = void;
    bool operator()(const Entry& a, const Entry& b) const { return a.Key() < b.Key(); }
    bool operator()(const Entry& a, const KeyView& b) const { return a.Key() < b; }
    bool operator()(const KeyView& a, const Entry& b) const { return a < b.Key(); }
  };
  using Entries = std::set<Entry, ByKey>;
  class NamespaceSink;

  // A number that is larger than that of any list which began before.
  uint64_t NextList();
  // A list is complete: deletes what was not told since it began. `ns`: only of it; empty: of all.
  void DropOlder(std::string_view ns, uint64_t list);
  Status Put(const api::Pod& pod);
  // A pod that cannot be read is still there.
  Status Keep(const std::string& ns, const std::string& name, const Status& unreadable);
  // Takes the pod out of both indexes.
  void Erase(Entries::iterator entry) FF_REQUIRES(mutex_);
  void Insert(PackedPod pod) FF_REQUIRES(mutex_);

  Mutex& mutex_;
  GaugeMetric count_;
  Listener listener_;
  TextPool texts_ FF_GUARDED_BY(mutex_);
  Entries pods_ FF_GUARDED_BY(mutex_);
  // By namespace and name; entries of pods_.
  std::map<std::string, std::vector<const Entry*>, std::less<>> by_node_ FF_GUARDED_BY(mutex_);
  uint64_t list_ FF_GUARDED_BY(mutex_) = 0;  // how many began
  uint64_t begun_ = 0;  // the list of all namespaces; its reflector's thread only
};

}  // namespace flamefleet
