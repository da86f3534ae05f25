// SPDX-License-Identifier: Apache-2.0
#include "operator/cache/secret_watcher.h"

#include <thread>
#include <utility>

#include "base/log.h"
#include "base/thread.h"
#include "operator/kube/reflector.h"

namespace flamefleet {
namespace {

ReflectorOptions OptionsFor(const std::string& ns, const std::string& name) {
  ReflectorOptions options;
  options.resource = kSecrets;
  options.ns = ns;
  options.field_selector = "metadata.name=" + name;
  return options;
}

}  // namespace

// One Secret and the thread that watches it.
class SecretWatcher::Entry final : public ObjectSink {
 public:
  Entry(SecretWatcher& owner, std::string name)
      : owner_(owner),
        name_(std::move(name)),
        reflector_(*owner.client_, OptionsFor(owner.ns_, name_), *this, *owner.clock_,
                   owner.metrics_),
        thread_(StartThread("watch-secret",
                            [this](const std::stop_token& stop) { reflector_.Run(stop); })) {}

  void BeginList() override { told_ = false; }
  void EndList() override {
    if (!told_) owner_.Changed(name_, nullptr);
  }
  Status Upsert(const nlohmann::json& object) override {
    told_ = true;  // one that cannot be read is there all the same
    FF_ASSIGN_OR_RETURN(api::Secret secret, api::DecodeSecret(object));
    owner_.Changed(name_, std::make_shared<const api::Secret>(std::move(secret)));
    return OkStatus();
  }
  void Delete(const std::string& /*ns*/, const std::string& /*name*/) override {
    owner_.Changed(name_, nullptr);
  }

 private:
  SecretWatcher& owner_;
  const std::string name_;
  bool told_ = false;  // by the list in progress
  Reflector reflector_;
  std::jthread thread_;  // last: it uses all of the above
};

SecretWatcher::SecretWatcher(std::string ns, Metrics& metrics)
    : ns_(std::move(ns)), metrics_(metrics) {}

SecretWatcher::~SecretWatcher() {
  Stop();
}

void SecretWatcher::Start(RestClient& client, const Clock& clock) {
  client_ = &client;
  clock_ = &clock;
}

void SecretWatcher::Watch(const std::set<std::string>& names) {
  if (client_ == nullptr) return;
  std::set<std::string> wanted;
  for (const std::string& name : names) {
    if (wanted.size() == kMaxSecrets) {
      Log(LogLevel::kError, "more Secrets are named by ProfilingBackends than are read",
          {{"read", kMaxSecrets}, {"named", names.size()}});
      break;
    }
    wanted.insert(name);
  }
  std::erase_if(entries_, [&](const auto& entry) { return !wanted.contains(entry.first); });
  {
    const MutexLock lock(&mutex_);
    std::erase_if(known_, [&](const auto& entry) { return !wanted.contains(entry.first); });
    watched_ = wanted;
  }
  for (const std::string& name : wanted) {
    if (!entries_.contains(name)) entries_[name] = std::make_unique<Entry>(*this, name);
  }
}

void SecretWatcher::Stop() {
  entries_.clear();
  client_ = nullptr;
}

api::SecretMap SecretWatcher::Known() const {
  const MutexLock lock(&mutex_);
  return known_;
}

bool SecretWatcher::synced() const {
  const MutexLock lock(&mutex_);
  return known_.size() == watched_.size();
}

void SecretWatcher::Changed(const std::string& name, std::shared_ptr<const api::Secret> secret) {
  {
    const MutexLock lock(&mutex_);
    if (!watched_.contains(name)) return;
    const auto [known, added] = known_.try_emplace(name, secret);
    const bool same = known->second == secret ||
                      (known->second && secret && known->second->type == secret->type &&
                       known->second->data == secret->data);
    if (!added && same) return;
    known->second = std::move(secret);
  }
  if (listener_) listener_();
}

}  // namespace flamefleet
