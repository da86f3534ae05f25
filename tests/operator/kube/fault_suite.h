// SPDX-License-Identifier: Apache-2.0
// FaultSuite: a reflector that reads a real kube-apiserver through a FaultProxy, and what its cache
// must be like after each fault. Of protobuf pods, or of ConfigMaps in JSON.
//
// Thread: one; the reflector has its own. Errors: a server that does not start fails the program.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "operator/kube/reflector.h"
#include "tests/fakes/fault_proxy.h"
#include "tests/operator/apiserver_fixture.h"

namespace flamefleet {

// Name to version.
using Objects = std::map<std::string, std::string>;

// Takes both encodings, and remembers what was deleted from it.
class Mirror final : public ObjectSink {
 public:
  explicit Mirror(bool messages) : messages_(messages) {}
  bool TakesMessages() const override { return messages_; }
  void BeginList() override { listed_.clear(); }
  void EndList() override;
  Status Upsert(const nlohmann::json& object) override;
  Status UpsertMessage(std::string_view message) override;
  void Delete(const std::string& ns, const std::string& name) override;

  Objects Get() const;
  std::set<std::string> Deleted() const;

 private:
  Status Put(const std::string& name, const std::string& version);

  const bool messages_;
  std::set<std::string> listed_;
  mutable Mutex mutex_;
  Objects objects_ FF_GUARDED_BY(mutex_);
  std::set<std::string> deleted_ FF_GUARDED_BY(mutex_);
};

// Kinds of requests, told by path and query.
bool IsWatchList(const std::string& target);
bool IsWatch(const std::string& target);
bool Any(const std::string& target);

// An answer with a Status of this code and reason; `headers` each with its line end.
std::string Refusal(int code, const std::string& reason, const std::string& headers = "");
// A script that does `fault` to the first `times` requests that `concerned` accepts.
FaultProxy::Script Times(int times, std::function<bool(const std::string&)> concerned,
                         FaultProxy::Fault fault);
// A script that answers so, one after the other; what comes later passes.
FaultProxy::Script EachOnce(const std::vector<std::string>& answers);

// The parameter: protobuf pods, else ConfigMaps in JSON.
class FaultSuite : public testing::TestWithParam<bool> {
 protected:
  using Kind = FaultProxy::Fault::Kind;

  static void SetUpTestSuite();
  static void TearDownTestSuite();
  // Fails when something alive was reported as deleted.
  void TearDown() override;

  static std::string Path(const std::string& name) { return *folder_ + "/" + name; }
  static std::string Content(const std::string& name);
  // "one" and "two", each signed by itself.
  static FaultProxy::Certificate Certificate(const std::string& name);

  // Three objects, and a cache that has them.
  void Start(ReflectorOptions options = {}, ClientConfig config = {});
  void Put(const std::string& name, const std::string& value);
  void Remove(const std::string& name);
  // What the cache misses while it is cut off.
  void Change();

  // What the server has, and at which version.
  Objects Truth(std::string* version = nullptr);
  bool BecomesTrue();
  // Requests that have `part` in their target.
  size_t Requests(const std::string& part) const;
  // Requests to which the client heard this code; "<error>" for none.
  double Answers(const std::string& code);
  double Lists();
  // Watches that say this and end.
  std::string GoneEvent() const;
  std::string Bookmark(const std::string& version) const;

  static ApiServer* server_;
  static std::string* folder_;
  const Resource resource_ = GetParam() ? kPods : Resource{"ConfigMap", "v1", "configmaps"};
  Metrics admin_metrics_;
  std::unique_ptr<RestClient> admin_ = server_->NewClient(admin_metrics_);
  FaultProxy proxy_;
  Metrics metrics_;
  Mirror mirror_{GetParam()};
  std::set<std::string> removed_;
  std::unique_ptr<RestClient> client_;
  std::unique_ptr<Reflector> reflector_;
  std::jthread thread_;

  FaultSuite();

 private:
  static void MakeCertificate(const std::string& name);
  void StartReflector(ReflectorOptions options, ClientConfig config);
  // A watch that says this and ends.
  std::string WatchAnswer(const std::string& type, const nlohmann::json& object,
                          const std::string& message) const;
};

}  // namespace flamefleet
