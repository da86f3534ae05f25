// SPDX-License-Identifier: Apache-2.0
// Reflector and RestClient against a real kube-apiserver, through a network that breaks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/mutex.h"
#include "base/thread.h"
#include "operator/kube/reflector.h"
#include "tests/fakes/tcp_proxy.h"
#include "tests/operator/apiserver_fixture.h"

namespace flamefleet {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr Resource kConfigMaps{"ConfigMap", "v1", "configmaps"};

// Every object of a list or of the sink: name to content.
using Objects = std::map<std::string, std::string>;

class RecordingSink final : public ObjectSink {
 public:
  void BeginList() override { listed_.clear(); }
  void EndList() override {
    MutexLock lock(&mutex_);
    std::erase_if(objects_, [this](const auto& object) { return !listed_.contains(object.first); });
  }
  Status Upsert(const json& object) override {
    MutexLock lock(&mutex_);
    listed_.insert(NameOf(object));
    objects_[NameOf(object)] = object.value("data", json()).dump();
    return OkStatus();
  }
  void Delete(const std::string& ns, const std::string& name) override {
    MutexLock lock(&mutex_);
    objects_.erase(ns + "/" + name);
  }
  Objects Get() const {
    MutexLock lock(&mutex_);
    return objects_;
  }

  static std::string NameOf(const json& object) {
    return object["metadata"]["namespace"].get<std::string>() + "/" +
           object["metadata"]["name"].get<std::string>();
  }

 private:
  mutable Mutex mutex_;
  Objects objects_;
  std::set<std::string> listed_;
};

class ReflectorTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    // Old versions are forgotten within seconds, so that "410 Gone" can be had.
    server_ = new ApiServer({"--watch-cache=false", "--etcd-compaction-interval=1s"});
  }
  static void TearDownTestSuite() { delete server_; }

  static uint16_t ServerPort() {
    const std::string& url = server_->config().base_url;
    return static_cast<uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
  }

  void Start(ReflectorOptions options = {}) {
    ClientConfig config = server_->config();
    config.base_url = "https://127.0.0.1:" + std::to_string(proxy_.port());
    Result<std::unique_ptr<RestClient>> client =
        RestClient::Create(config, SystemClock(), metrics_);
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
    options.resource = kConfigMaps;
    reflector_ = std::make_unique<Reflector>(*client_, options, sink_, SystemClock(), metrics_);
    thread_ =
        StartThread("reflector", [this](const std::stop_token& stop) { reflector_->Run(stop); });
  }
  void TearDown() override {
    thread_ = {};
    server_->MustKubectl({"delete", "configmap", "--all", "--wait=false"});
  }

  static void Put(const std::string& name, const std::string& value) {
    const json object = {{"apiVersion", "v1"},
                         {"kind", "ConfigMap"},
                         {"metadata", {{"name", name}}},
                         {"data", {{"value", value}}}};
    server_->MustKubectl({"apply", "--server-side", "-f", "-"}, object.dump());
  }
  static void Remove(const std::string& name) {
    server_->MustKubectl({"delete", "configmap", name});
  }
  static Objects Truth() {
    Objects objects;
    const json list = json::parse(server_->MustKubectl({"get", "cm", "-A", "-o", "json"}));
    for (const json& item : list["items"]) {
      objects[RecordingSink::NameOf(item)] = item.value("data", json()).dump();
    }
    return objects;
  }
  // The sink becomes what kubectl sees now.
  bool BecomesTrue() {
    const Objects truth = Truth();
    return Eventually([&] { return sink_.Get() == truth; });
  }
  double Lists() {
    return metrics_
        .Counter("flamefleet_operator_lists_total", "Complete lists read from the API server.",
                 {{"kind", "ConfigMap"}})
        .Value();
  }

  static ApiServer* server_;
  TcpProxy proxy_{ServerPort()};
  Metrics metrics_;
  RecordingSink sink_;
  std::unique_ptr<RestClient> client_;
  std::unique_ptr<Reflector> reflector_;
  std::jthread thread_;
};

ApiServer* ReflectorTest::server_ = nullptr;

TEST_F(ReflectorTest, AddsUpdatesAndDeletesArriveThroughTheWatch) {
  Put("a", "1");
  Put("b", "1");
  Start();
  EXPECT_TRUE(BecomesTrue());
  EXPECT_TRUE(reflector_->synced());
  Put("a", "2");
  Put("c", "1");
  Remove("b");
  EXPECT_TRUE(BecomesTrue());
  EXPECT_EQ(Lists(), 1);
}

TEST_F(ReflectorTest, OfObjectsWhoseMetadataIsEnoughNothingElseComes) {
  Put("a", "1");
  ReflectorOptions options;
  options.metadata_only = true;
  Start(options);
  const auto becomes = [&](const std::set<std::string>& names) {
    return Eventually([&] {
      std::set<std::string> known;
      for (const auto& [name, content] : sink_.Get())
        if (content == "null" && name.starts_with("default/")) known.insert(name);
      return known == names;
    });
  };
  EXPECT_TRUE(becomes({"default/a"}));
  Put("b", "1");
  EXPECT_TRUE(becomes({"default/a", "default/b"}));
  Remove("a");
  EXPECT_TRUE(becomes({"default/b"}));
}

TEST_F(ReflectorTest, AListOfManyPagesIsComplete) {
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g"})
    Put(name, "1");
  ReflectorOptions options;
  options.page_size = 2;
  Start(options);
  EXPECT_TRUE(BecomesTrue());
}

TEST_F(ReflectorTest, WhatChangesWhileTheConnectionIsCutIsNotMissed) {
  Put("a", "1");
  Put("b", "1");
  Start();
  ASSERT_TRUE(BecomesTrue());
  proxy_.SetDown(true);
  proxy_.CutAll();
  Put("a", "2");
  Remove("b");
  Put("c", "1");
  proxy_.SetDown(false);
  EXPECT_TRUE(BecomesTrue());
}

TEST_F(ReflectorTest, AConnectionCutInsideAnObjectLosesNothing) {
  Put("a", std::string(50'000, 'x'));
  Start();
  ASSERT_TRUE(BecomesTrue());
  proxy_.CutAfter(30'000);
  proxy_.CutAll();
  Put("a", std::string(50'000, 'y'));
  // The event does not fit in what a connection may carry: it is cut again and again.
  const int before = proxy_.accepted();
  ASSERT_TRUE(Eventually([&] { return proxy_.accepted() >= before + 2; }));
  proxy_.CutAfter(0);
  EXPECT_TRUE(BecomesTrue());
}

TEST_F(ReflectorTest, AVersionThatTheServerForgotMeansANewList) {
  Put("a", "1");
  Put("b", "1");
  Start();
  ASSERT_TRUE(BecomesTrue());
  const std::string old = json::parse(server_->MustKubectl(
      {"get", "--raw", "/api/v1/configmaps?limit=1"}))["metadata"]["resourceVersion"];
  proxy_.SetDown(true);
  proxy_.CutAll();
  Remove("b");
  Put("c", "1");
  ASSERT_TRUE(Eventually([&] {
    Put("other", std::to_string(proxy_.accepted()));  // versions go on, so the old ones go
    return server_
               ->Kubectl({"get", "--raw",
                          "/api/v1/configmaps?watch=1&timeoutSeconds=1&resourceVersion=" + old})
               .text.find("too old") != std::string::npos;
  }));
  proxy_.SetDown(false);
  EXPECT_TRUE(BecomesTrue());
  EXPECT_GE(Lists(), 2);
}

TEST_F(ReflectorTest, AHalfOpenConnectionIsGivenUp) {
  Put("a", "1");
  ReflectorOptions options;
  options.idle_timeout = std::chrono::seconds(1);
  Start(options);
  ASSERT_TRUE(BecomesTrue());
  proxy_.SetFrozen(true);
  Put("a", "2");
  const int before = proxy_.accepted();
  ASSERT_TRUE(Eventually([&] { return proxy_.accepted() > before; }));
  proxy_.SetFrozen(false);
  EXPECT_TRUE(BecomesTrue());
}

TEST_F(ReflectorTest, AWatchThatEndsByItsTimeGoesOn) {
  Put("a", "1");
  ReflectorOptions options;
  options.watch_timeout = std::chrono::seconds(1);
  Start(options);
  ASSERT_TRUE(BecomesTrue());
  for (const char* value : {"2", "3", "4"}) {
    Put("a", value);
    ASSERT_TRUE(
        Eventually([&] { return sink_.Get()["default/a"].find(value) != std::string::npos; }));
  }
}

TEST_F(ReflectorTest, ARefusedValueNamesItsField) {
  Metrics metrics;
  const std::unique_ptr<RestClient> client = server_->NewClient(metrics);
  const json pool = {{"apiVersion", "flamefleet.dev/v1alpha1"},
                     {"kind", "AgentPool"},
                     {"metadata", {{"name", "bad"}}},
                     {"spec", {{"sampling", {{"frequency", 5000}}}}}};
  const Result<std::string> answer =
      client->Apply({kAgentPools, "", "bad", "test", pool.dump(), false});
  EXPECT_EQ(answer.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(ErrorMessage(answer.status()), HasSubstr("spec.sampling.frequency"));
}

TEST_F(ReflectorTest, DeletingWhatIsGoneIsDone) {
  Metrics metrics;
  const std::unique_ptr<RestClient> client = server_->NewClient(metrics);
  Put("a", "1");
  EXPECT_TRUE(client->Get(kConfigMaps, "default", "a").ok());
  EXPECT_TRUE(client->Delete(kConfigMaps, "default", "a").ok());
  EXPECT_TRUE(client->Delete(kConfigMaps, "default", "a").ok());
  EXPECT_EQ(client->Get(kConfigMaps, "default", "a").status().code(), StatusCode::kNotFound);
}

TEST_F(ReflectorTest, WrongCredentialsAreToldAsSuch) {
  ClientConfig config = server_->config();
  config.tls.client_cert_pem.clear();
  config.tls.client_key_pem.clear();
  config.token = "nonsense";
  Metrics metrics;
  const auto client = RestClient::Create(config, SystemClock(), metrics);
  ASSERT_TRUE(client.ok()) << client.status();
  const Status status = (*client)->Get(kConfigMaps, "default", "a").status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(ErrorMessage(status), HasSubstr("Unauthorized"));
}

}  // namespace
}  // namespace flamefleet
