// SPDX-License-Identifier: Apache-2.0
#include "operator/cache/pod_store.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace flamefleet {

PodStore::Pointer PodStore::Get(const ObjectKey& key) const {
  MutexLock lock(&mutex_);
  const auto found = pods_.find(KeyView{key.ns, key.name});
  return found == pods_.end() ? nullptr : std::make_shared<const api::Pod>(Unpack(found->pod));
}

std::vector<PodStore::Pointer> PodStore::ListNamespace(const std::string& ns) const {
  MutexLock lock(&mutex_);
  std::vector<Pointer> pods;
  for (auto it = pods_.lower_bound(KeyView{ns, ""}); it != pods_.end() && it->pod.ns.view() == ns;
       ++it) {
    pods.push_back(std::make_shared<const api::Pod>(Unpack(it->pod)));
  }
  return pods;
}

std::vector<PodStore::Pointer> PodStore::ListNode(const std::string& node) const {
  MutexLock lock(&mutex_);
  std::vector<Pointer> pods;
  if (const auto found = by_node_.find(node); found != by_node_.end()) {
    for (const Entry* entry : found->second)
      pods.push_back(std::make_shared<const api::Pod>(Unpack(entry->pod)));
  }
  return pods;
}

std::vector<PodStore::Pointer> PodStore::ListNode(const std::string& node,
                                                  const std::string& ns) const {
  MutexLock lock(&mutex_);
  std::vector<Pointer> pods;
  const auto found = by_node_.find(node);
  if (found == by_node_.end()) return pods;
  for (auto it = std::ranges::lower_bound(found->second, KeyView{ns, ""}, {}, &Entry::Key);
       it != found->second.end() && (*it)->pod.ns.view() == ns; ++it) {
    pods.push_back(std::make_shared<const api::Pod>(Unpack((*it)->pod)));
  }
  return pods;
}

std::vector<std::string> PodStore::Nodes() const {
  MutexLock lock(&mutex_);
  std::vector<std::string> nodes;
  for (const auto& [node, pods] : by_node_)
    nodes.push_back(node);
  return nodes;
}

class PodStore::NamespaceSink final : public ObjectSink {
 public:
  NamespaceSink(PodStore& store, std::string ns) : store_(store), ns_(std::move(ns)) {}
  void BeginList() override { begun_ = store_.NextList(); }
  void EndList() override { store_.DropOlder(ns_, begun_); }
  Status Upsert(const nlohmann::json& object) override { return store_.Upsert(object); }
  void Delete(const std::string& ns, const std::string& name) override { store_.Delete(ns, name); }
  bool TakesMessages() const override { return true; }
  Status UpsertMessage(std::string_view message) override { return store_.UpsertMessage(message); }

 private:
  PodStore& store_;
  const std::string ns_;
  uint64_t begun_ = 0;
};

std::unique_ptr<ObjectSink> PodStore::SinkOf(const std::string& ns) {
  return std::make_unique<NamespaceSink>(*this, ns);
}

uint64_t PodStore::NextList() {
  MutexLock lock(&mutex_);
  return ++list_;
}

void PodStore::DropOlder(std::string_view ns, uint64_t list) {
  std::vector<ObjectKey> gone;
  {
    MutexLock lock(&mutex_);
    for (auto it = pods_.lower_bound(KeyView{ns, ""});
         it != pods_.end() && (ns.empty() || it->pod.ns.view() == ns); ++it) {
      if (it->list < list)
        gone.push_back({std::string(it->pod.ns.view()), std::string(it->pod.Name())});
    }
  }
  for (const ObjectKey& key : gone)
    Delete(key.ns, key.name);
}

Status PodStore::Upsert(const nlohmann::json& object) {
  Result<api::Pod> decoded = api::DecodePod(object);
  if (decoded.ok()) return Put(*std::move(decoded));
  const ObjectKey key = KeyOfJson(object);
  return Keep(key.ns, key.name, decoded.status());
}

Status PodStore::UpsertMessage(std::string_view message) {
  Result<api::Pod> decoded = api::DecodePodMessage(message);
  if (decoded.ok()) return Put(*std::move(decoded));
  const ObjectHead head = HeadOf({nullptr, message});
  return Keep(head.ns, head.name, decoded.status());
}

Status PodStore::Put(const api::Pod& pod) {
  std::optional<api::Pod> before;
  std::optional<api::Pod> after;
  {
    MutexLock lock(&mutex_);
    PackedPod packed = Pack(pod, texts_);
    const auto known = pods_.find(KeyView{pod.meta.ns, pod.meta.name});
    if (known != pods_.end()) {
      known->list = list_;
      if (known->pod == packed) return OkStatus();
      before = Unpack(known->pod);
      Erase(known);
    }
    after = Unpack(packed);
    Insert(std::move(packed));
    count_.Set(static_cast<double>(pods_.size()));
  }
  if (listener_) listener_(before ? &*before : nullptr, &*after);
  return OkStatus();
}

Status PodStore::Keep(const std::string& ns, const std::string& name, const Status& unreadable) {
  MutexLock lock(&mutex_);
  if (const auto known = pods_.find(KeyView{ns, name}); known != pods_.end()) known->list = list_;
  return unreadable;
}

void PodStore::Delete(const std::string& ns, const std::string& name) {
  std::optional<api::Pod> before;
  {
    MutexLock lock(&mutex_);
    const auto known = pods_.find(KeyView{ns, name});
    if (known == pods_.end()) return;
    before = Unpack(known->pod);
    Erase(known);
    count_.Set(static_cast<double>(pods_.size()));
  }
  if (listener_) listener_(&*before, nullptr);
}

void PodStore::Erase(Entries::iterator entry) {
  if (const auto node = by_node_.find(entry->pod.node.view()); node != by_node_.end()) {
    std::erase(node->second, &*entry);
    if (node->second.empty()) by_node_.erase(node);
  }
  pods_.erase(entry);
}

void PodStore::Insert(PackedPod pod) {
  const Entry* const entry = &*pods_.insert(Entry{std::move(pod), list_}).first;
  if (entry->pod.node.view().empty()) return;
  std::vector<const Entry*>& node = by_node_[std::string(entry->pod.node.view())];
  const auto place = std::ranges::upper_bound(node, entry->Key(), {}, &Entry::Key);
  node.insert(place, entry);
}

}  // namespace flamefleet
