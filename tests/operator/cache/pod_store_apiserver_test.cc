// SPDX-License-Identifier: Apache-2.0
// The pods of a real kube-apiserver, read in protobuf and in JSON.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/thread.h"
#include "operator/cache/pod_store.h"
#include "operator/kube/reflector.h"
#include "tests/operator/apiserver_fixture.h"

namespace flamefleet {
namespace {

using nlohmann::json;

// Has its kind asked for in JSON.
class JsonOnly final : public ObjectSink {
 public:
  explicit JsonOnly(PodStore& pods) : pods_(pods) {}
  void BeginList() override { pods_.BeginList(); }
  void EndList() override { pods_.EndList(); }
  Status Upsert(const json& object) override { return pods_.Upsert(object); }
  void Delete(const std::string& ns, const std::string& name) override { pods_.Delete(ns, name); }

 private:
  PodStore& pods_;
};

// Pods kept by a reflector of its own.
class Watched {
 public:
  Watched(const ApiServer& server, bool protobuf) : client_(server.NewClient(metrics_)) {
    ReflectorOptions options;
    options.resource = kPods;
    options.page_size = 2;
    reflector_ = std::make_unique<Reflector>(*client_, options,
                                             protobuf ? static_cast<ObjectSink&>(pods_) : json_,
                                             SystemClock(), metrics_);
    thread_ =
        StartThread("reflector", [this](const std::stop_token& stop) { reflector_->Run(stop); });
  }
  std::vector<api::Pod> All() const {
    std::vector<api::Pod> all;
    for (const auto& pod : pods_.ListNamespace("default"))
      all.push_back(*pod);
    return all;
  }
  bool synced() const { return reflector_->synced(); }

 private:
  Mutex mutex_;
  Metrics metrics_;
  PodStore pods_{mutex_, metrics_.Gauge("pods", "Pods.")};
  JsonOnly json_{pods_};
  std::unique_ptr<RestClient> client_;
  std::unique_ptr<Reflector> reflector_;
  std::jthread thread_;
};

json Pod(const std::string& name) {
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata",
           {{"name", name},
            {"labels", {{"app", "checkout"}, {"pod-template-hash", "7d9f"}}},
            {"annotations", {{"pyroscope.io/scrape", "true"}, {"other", "\u00e4\u20ac"}}},
            {"ownerReferences",
             {{{"apiVersion", "apps/v1"},
               {"kind", "ReplicaSet"},
               {"name", "checkout-7d9f"},
               {"uid", "u1"},
               {"controller", true}}}}}},
          {"spec",
           {{"nodeName", "n1"},
            {"initContainers",
             {{{"name", "init"}, {"image", "i"}},
              {{"name", "mesh"}, {"image", "i"}, {"restartPolicy", "Always"}}}},
            {"containers",
             {{{"name", "main"},
               {"image", "i"},
               {"ports", {{{"name", "pprof"}, {"containerPort", 6060}}, {{"containerPort", 80}}}}},
              {{"name", "side"}, {"image", "i"}}}}}}};
}

const char* const kRunning = R"({"status": {
  "phase": "Running", "podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}],
  "conditions": [{"type": "Ready", "status": "True"}],
  "initContainerStatuses": [{"name": "init", "image": "i", "imageID": "", "ready": true,
    "restartCount": 0, "containerID": "containerd://1", "state": {"terminated": {"exitCode": 0}}}],
  "containerStatuses": [{"name": "main", "image": "i", "imageID": "", "ready": true,
    "restartCount": 0, "containerID": "containerd://2",
    "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}}}]}})";

TEST(PodsOfAnApiServer, AreTheSameInProtobufAndInJson) {
  const ApiServer server;
  const auto create = [&](const std::string& name) {
    server.MustKubectl({"create", "-f", "-"}, Pod(name).dump());
  };
  create("p1");
  create("p2");
  server.MustKubectl({"patch", "pod", "p2", "--subresource=status", "-p", kRunning});
  const Watched protobuf(server, true);
  const Watched text(server, false);
  ASSERT_TRUE(Eventually([&] { return protobuf.synced() && text.synced(); }));
  ASSERT_EQ(protobuf.All().size(), 2U);
  EXPECT_EQ(protobuf.All(), text.All());
  EXPECT_EQ(protobuf.All()[1].ip, "10.1.2.3");
  EXPECT_TRUE(protobuf.All()[1].containers[0].running);

  create("p3");
  server.MustKubectl({"patch", "pod", "p1", "--subresource=status", "-p", kRunning});
  server.MustKubectl({"delete", "pod", "p2", "--force", "--grace-period=0"});
  const auto arrived = [](const std::vector<api::Pod>& pods) {
    return pods.size() == 2 && pods[0].ready && pods[1].meta.name == "p3";
  };
  EXPECT_TRUE(Eventually([&] { return arrived(protobuf.All()) && arrived(text.All()); }));
  EXPECT_EQ(protobuf.All(), text.All());
}

}  // namespace
}  // namespace flamefleet
