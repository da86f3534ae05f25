// SPDX-License-Identifier: Apache-2.0
#include "operator/api/pod.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace flamefleet::api {
namespace {

using nlohmann::json;

json CheckoutPod() {
  return json::parse(R"({
    "apiVersion": "v1", "kind": "Pod",
    "metadata": {
      "name": "checkout-7d9f-x2", "namespace": "shop", "uid": "u1", "resourceVersion": "42",
      "creationTimestamp": "2026-11-29T17:05:00Z",
      "labels": {"app": "checkout", "pod-template-hash": "7d9f"},
      "annotations": {"pyroscope.io/scrape": "true", "profiles.grafana.com/cpu.scrape": "true",
                      "resource.opentelemetry.io/service.name": "co", "kubectl.kubernetes.io/x": "big"},
      "ownerReferences": [{"kind": "Other", "name": "o"},
                          {"kind": "ReplicaSet", "name": "checkout-7d9f", "controller": true}]
    },
    "spec": {
      "nodeName": "n3",
      "initContainers": [{"name": "prepare"}, {"name": "mesh", "restartPolicy": "Always"}],
      "containers": [{"name": "checkout", "ports": [{"name": "pprof", "containerPort": 6060}, {"containerPort": 80}]}]
    },
    "status": {
      "phase": "Running", "podIP": "10.244.1.7",
      "conditions": [{"type": "Ready", "status": "True"}],
      "containerStatuses": [{"name": "checkout", "containerID": "containerd://abc", "state": {"running": {}}}],
      "initContainerStatuses": [{"name": "prepare", "containerID": "containerd://def", "state": {"terminated": {}}}]
    }
  })");
}

Pod Decode(const json& object) {
  Result<Pod> pod = DecodePod(object);
  EXPECT_TRUE(pod.ok()) << pod.status();
  return pod.ok() ? *pod : Pod{};
}

TEST(DecodePod, ReadsWhatDecidesAboutProfiling) {
  const Pod pod = Decode(CheckoutPod());
  EXPECT_EQ(pod.meta.ns, "shop");
  EXPECT_EQ(pod.meta.name, "checkout-7d9f-x2");
  EXPECT_EQ(pod.meta.uid, "u1");
  EXPECT_EQ(pod.meta.resource_version, "42");
  EXPECT_FALSE(pod.meta.deleting);
  EXPECT_EQ(pod.node, "n3");
  EXPECT_EQ(pod.ip, "10.244.1.7");
  EXPECT_TRUE(pod.ready);
  EXPECT_EQ(pod.phase, PodPhase::kRunning);
  EXPECT_EQ(pod.labels.at("app"), "checkout");
}

TEST(DecodePod, KeepsOnlyAnnotationsOfTheFamilies) {
  EXPECT_THAT(Decode(CheckoutPod()).annotations,
              testing::ElementsAre(testing::Key("profiles.grafana.com/cpu.scrape"),
                                   testing::Key("pyroscope.io/scrape"),
                                   testing::Key("resource.opentelemetry.io/service.name")));
}

TEST(DecodePod, TellsInitContainersFromSidecars) {
  const Pod pod = Decode(CheckoutPod());
  ASSERT_EQ(pod.containers.size(), 3U);
  EXPECT_EQ(
      pod.containers[0],
      (Container{"checkout", ContainerKind::kMain, "abc", true, {{"pprof", 6060}, {"", 80}}}));
  EXPECT_EQ(pod.containers[1], (Container{"prepare", ContainerKind::kInit, "def", false, {}}));
  EXPECT_EQ(pod.containers[2], (Container{"mesh", ContainerKind::kSidecar, "", false, {}}));
}

TEST(DecodePod, NamesTheDeploymentBehindItsReplicaSet) {
  const Pod pod = Decode(CheckoutPod());
  EXPECT_EQ(pod.workload_kind, "Deployment");
  EXPECT_EQ(pod.workload_name, "checkout");
}

TEST(DecodePod, KeepsTheNameOfAReplicaSetWithoutTemplateHash) {
  json object = CheckoutPod();
  object["metadata"]["labels"].erase("pod-template-hash");
  EXPECT_EQ(Decode(object).workload_kind, "ReplicaSet");
  EXPECT_EQ(Decode(object).workload_name, "checkout-7d9f");
}

TEST(DecodePod, SeesDeletionAndUnknownFieldsAreIgnored) {
  json object = CheckoutPod();
  object["metadata"]["deletionTimestamp"] = "2026-11-29T17:06:00Z";
  object["spec"]["fromTheFuture"] = {1, 2};
  EXPECT_TRUE(Decode(object).meta.deleting);
}

TEST(DecodePod, TakesNullForAbsent) {
  json object = CheckoutPod();
  object["metadata"]["annotations"] = nullptr;
  object["status"]["containerStatuses"] = nullptr;
  EXPECT_TRUE(Decode(object).annotations.empty());
}

TEST(DecodePod, NamesThePathOfAFieldOfTheWrongType) {
  struct Row {
    const char* pointer;
    json value;
    const char* message;
  };
  const Row rows[] = {
      {"/metadata", 1, "decode Pod.metadata: want object"},
      {"/metadata/labels/app", 1, "decode Pod.metadata.labels: want map of strings"},
      {"/metadata/generation", "x", "decode Pod.metadata.generation: want integer"},
      {"/metadata/creationTimestamp", "x",
       "decode Pod.metadata.creationTimestamp: want RFC 3339 time"},
      {"/spec/containers", json::object(), "decode Pod.spec.containers: want list"},
      {"/spec/containers/0/name", 1, "decode Pod.spec.containers[0].name: want string"},
      {"/spec/containers/0/ports/1/containerPort", 1LL << 40,
       "decode Pod.spec.containers[0].ports[1].containerPort: want integer in range"},
      {"/status/conditions/0", "x", "decode Pod.status.conditions: want list of objects"},
  };
  for (const Row& row : rows) {
    json object = CheckoutPod();
    object[json::json_pointer(row.pointer)] = row.value;
    const Result<Pod> pod = DecodePod(object);
    ASSERT_FALSE(pod.ok()) << row.pointer;
    EXPECT_EQ(ErrorMessage(pod.status()), row.message);
  }
}

TEST(DecodePod, RefusesWhatIsNoObject) {
  EXPECT_EQ(ErrorMessage(DecodePod(json::array()).status()), "decode Pod: want object");
}

}  // namespace
}  // namespace flamefleet::api
